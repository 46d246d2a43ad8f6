// Records the end of a media buy that its seller reports elsewhere than in an answer about the buy (owed.md §7.1,
// §7.3). Pure.
// Called by the rules of reports inside their atomic step, by registrations and the reconciler.
import type { EndSaid, Reported, Stream } from './stream.ts';

/** The statuses after which a media buy has no active package. */
const TERMINAL: ReadonlySet<unknown> = new Set(['completed', 'rejected', 'canceled']);

type TerminalStatus = 'completed' | 'rejected' | 'canceled';

export const isTerminalBuy = (status: unknown): status is TerminalStatus => TERMINAL.has(status);

/**
 * Returns a media buy's account with an end that was reported, so that the seller is asked about it. Of several
 * reported ends the earliest is kept, and only the first causes a request. Otherwise a seller that repeats the end
 * would be asked each time.
 */
export function withEndSaid<S extends Stream>(stream: S, { status, at }: EndSaid, now: number): S {
  if (isTerminalBuy(stream.status)) return stream;
  const known = stream.endSaid?.at;
  const endSaid = { status, at: Math.min(at, now, known ?? Infinity) };
  return { ...stream, endSaid, ...(known === undefined && { changedAt: now }) };
}

/**
 * Returns a media buy's account with the end of the buy that a report states beside its data. A correction is about a
 * period long ago, so for a correction the buy counts as ended now.
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
