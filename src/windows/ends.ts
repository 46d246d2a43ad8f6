// The end of a media buy that its seller reports elsewhere than in an answer about the buy (owed.md §7.1, §7.3).
// Pure.
// Called by the rules of reports inside their step, by registrations and the reconciler.
import type { EndSaid, Reported, Stream } from './stream.ts';

/** The statuses after which a media buy has no active package. */
const TERMINAL: ReadonlySet<unknown> = new Set(['completed', 'rejected', 'canceled']);

type TerminalStatus = 'completed' | 'rejected' | 'canceled';

export const isTerminalBuy = (status: unknown): status is TerminalStatus => TERMINAL.has(status);

/**
 * Returns the account with a reported end, so that the seller is asked about it. If several ends are reported, the
 * earliest is kept, and later reports cause no further request. Otherwise a seller that repeats its end would be
 * asked each time.
 */
export function withEndSaid<S extends Stream>(stream: S, { status, at }: EndSaid, now: number): S {
  if (isTerminalBuy(stream.status)) return stream;
  const known = stream.endSaid?.at;
  const endSaid = { status, at: Math.min(at, now, known ?? Infinity) };
  return { ...stream, endSaid, ...(known === undefined && { changedAt: now }) };
}

/**
 * Returns the account with the end that a report contains beside its data. A correction is about a period that is
 * long over, so for it the buy's end is now.
 *
 * @param now the store's time, Unix ms.
 */
export function withReportedEnd<S extends Stream>(
  stream: S,
  { isFinal, ending, isRevision, end }: Pick<Reported, 'isFinal' | 'ending' | 'isRevision' | 'end'>,
  now: number,
): S {
  const known: S = isFinal ? { ...stream, final: 'received' } : stream;
  const status = ending ?? (isFinal ? 'completed' : undefined);
  return status === undefined ? known : withEndSaid(known, { status, at: isRevision ? now : end }, now);
}
