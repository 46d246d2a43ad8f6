import type { SenderEntry } from '../senders.ts';
import { within } from './freshness.ts';
import { newRegister, noteUse, type Register } from './revocation-register.ts';
import type { ListSource } from './revocation-source.ts';

/** Every list that senders depend on, or did. */
export interface Registers {
  /** What is known of the list at a URL. */
  get(url: string): Register | undefined;
  /** The register of the list that this sender depends on now; a delivery needs it. */
  use(source: ListSource, sender: SenderEntry): Register;
  /** Whether the list is to be kept fresh without a delivery. */
  isPolled(url: string): boolean;
}

export interface RegistersOptions {
  /** Unix ms. */
  readonly now: () => number;
  /** Where a sender's list lies by what is held. */
  readonly sourceOf: (sender: SenderEntry) => ListSource | undefined;
  /** A list is forgotten. */
  readonly forget: (url: string) => void;
}

/** Ms without a delivery after which a list is no longer polled: reports come once a day. */
const IDLE_MS = 2 * 86_400_000;
/** verification.md §5.23: ms for which a list is polled that no brand.json leads to any more. */
const GRACE_MS = 3_600_000;
/**
 * Lists that their senders left, for the case that brand.json leads there again. A seller can name another origin every
 * minute; one list is some megabytes at most.
 */
const MAX_LEFT = 100;

/**
 * Registers by URL. One that a sender depends on is never forgotten, or an outage would let a key through that it
 * revoked: there are as many of these as senders. Of those that were left the ones left last are kept.
 */
export function createRegisters({ now, sourceOf, forget }: RegistersOptions): Registers {
  const registers = new Map<string, Register>();
  const current = new Map<string, Register>();
  const isNamed = ({ url, senders }: Register): boolean => {
    for (const sender of senders.values()) if (sourceOf(sender)?.url === url) return true;
    return false;
  };
  const left = createLeft(isNamed, (url) => {
    registers.delete(url);
    forget(url);
  });
  return {
    get: (url) => registers.get(url),
    use: ({ url, required }, sender) => {
      const register = registers.get(url) ?? newRegister(url);
      registers.set(url, register);
      noteUse(register, sender, required, now());
      const before = current.get(sender.agentUrl);
      if (before !== register) {
        current.set(sender.agentUrl, register);
        left.back(url);
        if (before !== undefined) left.add(before, now());
      }
      return register;
    },
    isPolled: (url) => {
      const register = registers.get(url);
      if (register?.required !== true || !within(now(), register.usedAt, IDLE_MS)) return false;
      if (isNamed(register)) register.namedAt = now();
      return within(now(), register.namedAt, GRACE_MS);
    },
  };
}

interface Left {
  /** A sender has gone over to another list. */
  add(register: Register, now: number): void;
  /** A sender has come, or come back. */
  back(url: string): void;
}

function createLeft(isNamed: (register: Register) => boolean, drop: (url: string) => void): Left {
  const left = new Map<string, { readonly register: Register; readonly at: number }>();
  return {
    add: (register, now) => {
      left.delete(register.url);
      left.set(register.url, { register, at: now });
      for (const [url, oldest] of left) {
        if (left.size <= MAX_LEFT) return;
        left.delete(url);
        // Another sender depends on it.
        if (oldest.register.usedAt <= oldest.at && !isNamed(oldest.register)) drop(url);
      }
    },
    back: (url) => void left.delete(url),
  };
}
