import type { SenderEntry } from '../senders.ts';
import { MAX_LIFE_MS } from './freshness.ts';
import type { RevocationList } from './revocation-list.ts';

/** The list in force at one URL. */
export interface HeldList extends RevocationList {
  /** The register's own: what lists of the same `updated` revoke is added to it. */
  readonly kids: Set<string>;
  /** When the fetch that last confirmed it began, Unix ms. */
  readonly began: number;
  /** The lists of this `updated` revoke too many keys to hold together: the newest counts alone. */
  readonly alone: boolean;
}

/** What is known of the list at one URL, beyond the copy that was fetched last. */
export interface Register {
  readonly url: string;
  /** A list has to be had: configuration names it, or one was served once. */
  required: boolean;
  held: HeldList | undefined;
  /** Order of the copy that was looked at last. */
  lookedAt: number;
  /** Why the last copy was not taken. */
  flaw: string | undefined;
  /** The alarm `revocation_stale` was raised, and the list has not been fresh since. */
  reported: boolean;
  /** Unix ms. */
  usedAt: number;
  /** When a sender was last seen to depend on it, by a delivery or by a look at its brand.json; Unix ms. */
  namedAt: number;
  /** Senders that share the list, by agent URL: a key of any of them may sign it. */
  readonly senders: Map<string, SenderEntry>;
}

/** Enough for an operator's agents; more would be a `senders` function that invents them. */
const MAX_SENDERS = 100;
/** Key ids that the lists of one `updated` may revoke together: verification.md §5.23. */
export const MAX_KIDS = 10_000;
/** Intervals after `next_update` for which a list that could not be refreshed is still fresh enough. */
const GRACE_INTERVALS = 4;

export function newRegister(url: string): Register {
  return {
    url,
    required: false,
    held: undefined,
    lookedAt: 0,
    flaw: undefined,
    reported: false,
    usedAt: 0,
    namedAt: 0,
    senders: new Map(),
  };
}

/** Notes that a sender's deliveries depend on this list. */
export function noteUse(register: Register, sender: SenderEntry, required: boolean, now: number): void {
  register.required ||= required;
  register.usedAt = now;
  register.namedAt = now;
  const joins = !register.senders.has(sender.agentUrl);
  if (joins && register.senders.size >= MAX_SENDERS) return;
  register.senders.set(sender.agentUrl, sender);
  // What none of the others' keys signed may be signed by this one's: or whoever asks first could block the rest.
  if (joins && register.flaw !== undefined) register.lookedAt = 0;
}

/** `alone`: too many key ids with those of earlier lists of the same `updated`, which count no longer. */
export type Taken = 'taken' | 'alone' | { readonly flaw: string };

/**
 * Takes a list into force, unless one that says it is newer is held: an old one served again, by mistake or not, must
 * not make a revoked key valid.
 */
export function take(register: Register, list: RevocationList, began: number): Taken {
  const { held } = register;
  // As the list says it: a clock of ours that was set back must not make every new list an old one.
  if (held !== undefined && list.updated < held.updated) {
    return { flaw: 'its updated is older than that of the list in force, which stays so' };
  }
  // Kept as the future, it would shut out every later list.
  const updated = Math.min(list.updated, began);
  // Two lists of one instant: whichever is the later, no key that either revokes may verify.
  const earlier = held?.updated === updated ? held : undefined;
  const united = earlier?.alone === false && unite(earlier.kids, list.kids);
  const kids = united ? earlier.kids : new Set(list.kids);
  register.held = { ...list, kids, updated, began, alone: earlier !== undefined && !united };
  return earlier?.alone === false && !united ? 'alone' : 'taken';
}

/** Adds what is new: a list that is fetched again every minute must not cost what all before it revoked. */
function unite(kids: Set<string>, more: ReadonlySet<string>): boolean {
  const added = [...more].filter((kid) => !kids.has(kid));
  if (added.length > 0 && kids.size + added.length > MAX_KIDS) return false;
  for (const kid of added) kids.add(kid);
  return true;
}

/** Whether the list in force is fresh enough to say that a key is not revoked. A `next_update` far ahead is 30 min. */
export function isFresh(
  { held }: { readonly held: Omit<HeldList, 'kids' | 'alone'> | undefined },
  now: number,
): boolean {
  if (held === undefined) return false;
  const due = Math.min(held.nextUpdate, held.began + MAX_LIFE_MS);
  return now <= due + GRACE_INTERVALS * held.interval;
}
