import type { EndSaid, Reported, Stream } from './stream.ts';

/*
 * The end of a media buy, as its seller says it by other channels than an answer about it (owed.md §7.1, §7.3). Pure: the rules of the
 * store run it inside their step.
 */

/** After these a media buy has no package that is active. */
const TERMINAL: ReadonlySet<unknown> = new Set(['completed', 'rejected', 'canceled']);

type TerminalStatus = 'completed' | 'rejected' | 'canceled';

export const isTerminalBuy = (status: unknown): status is TerminalStatus => TERMINAL.has(status);

/**
 * The stream with an end that was said: its seller is asked about it. Of several the earliest counts; those that follow ask for nothing
 * more, for else a seller that goes on saying so would never be asked to the end.
 */
export function withEndSaid<S extends Stream>(stream: S, { status, at }: EndSaid, now: number): S {
  if (isTerminalBuy(stream.status)) return stream;
  const known = stream.endSaid?.at;
  const endSaid = { status, at: Math.min(at, now, known ?? Infinity) };
  return { ...stream, endSaid, ...(known === undefined && { changedAt: now }) };
}

/**
 * What a report says of the end, beside its data. A correction tells of a period that is long over: it was written now.
 * @param now the store's clock, Unix ms.
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
