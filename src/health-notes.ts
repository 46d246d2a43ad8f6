import { putBounded } from './bounded.ts';
import type { HealthFault, SenderHealth, WorkerHealth } from './options.ts';
import type { Outcome } from './outcome.ts';
import type { SenderEntry } from './senders.ts';

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

interface SenderNote extends Writable<Omit<SenderHealth, 'keysFreshUntil'>> {
  readonly entry: SenderEntry | undefined;
}

/** What deliveries and the worker leave for `receiver.health()`. */
export interface HealthNotes {
  /** By agent URL; none but senders that the owner configured. */
  readonly senders: Map<string, SenderNote>;
  readonly worker: Writable<Omit<WorkerHealth, 'handlers'>>;
  /** Of a delivery, for the store's sake. */
  storeFault?: HealthFault | undefined;
  /** Notes an outcome; loaded before the first delivery that can have a sender. */
  outcome?: (
    outcome: Outcome,
    known: { readonly selected?: { readonly senders: readonly SenderEntry[] | undefined } },
  ) => void;
}

/** Twice the 500 sellers that a large buyer has; they are listed by each `health()`. */
const MAX_SENDERS = 1_000;

/** @param among where the sender's entry is found. */
export function noteOf(
  { senders }: HealthNotes,
  agentUrl: string,
  among: readonly SenderEntry[] | undefined,
): SenderNote {
  const known = senders.get(agentUrl);
  if (known) return known;
  const entry = among?.find((sender) => sender.agentUrl === agentUrl);
  return putBounded(senders, agentUrl, { agentUrl, entry }, MAX_SENDERS);
}

const STORE_CODES: readonly unknown[] = ['store_unavailable', 'not_durable', 'misconfigured'];

/** Refusals are noted by `noteRefusal`, which looks whose key they name. */
export function noteOutcomes(notes: HealthNotes, now: () => number): void {
  notes.outcome = (outcome, { selected }) => {
    const { kind, sender } = outcome;
    if (sender === undefined || kind === 'refused') return;
    const note = noteOf(notes, sender, selected?.senders);
    const at = now();
    if (kind === 'unavailable') {
      const { code, detail } = outcome;
      note.lastRefusedAt = at;
      note.lastCode = code;
      if (STORE_CODES.includes(code)) notes.storeFault = { code, message: detail, at };
    } else {
      note.lastAcceptedAt = at;
      notes.storeFault = undefined;
    }
  };
}
