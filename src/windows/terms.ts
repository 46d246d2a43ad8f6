// The report windows that a seller owes for a media buy, by its reporting terms (owed.md §1.3 to §1.5). Pure.
// Called by registrations, which make terms, and by the reconciler, which counts owed windows.
import { type Clock, type Frequency, type Period, windowAt, windowPeriod } from './calendar.ts';
import { type Run, type Runs, union } from './runs.ts';

/** The reporting terms of a media buy, which are in force from one instant until the next terms begin. */
export interface Terms {
  /** The instant from which the terms are in force. Unix ms. */
  readonly from: number;
  /** The frequency of the reports; null if no reports are requested. */
  readonly frequency: Frequency | null;
  /**
   * The spans in which at least one package is active, in ascending order, without overlaps. An open end is Infinity.
   */
  readonly spans: readonly Period[];
}

/**
 * The largest number of spans that are kept. Further spans are joined into the last one, because a seller can name any
 * number of packages.
 */
const MOST_SPANS = 100;

/** Joins the spans of packages: the result is in ascending order, and spans that touch or overlap become one. */
export function joined(spans: readonly Period[]): readonly Period[] {
  const apart = union(
    [],
    spans.map(({ start, end }): Run => [start, end]),
  ).map(([start, end]) => ({ start, end }));
  const [next] = apart.slice(MOST_SPANS - 1);
  const last = apart.at(-1);
  return next && last ? [...apart.slice(0, MOST_SPANS - 1), { start: next.start, end: last.end }] : apart;
}

/** True if both terms have the same frequency and spans. */
export function sameTerms(a: Terms, b: Terms): boolean {
  return (
    a.frequency === b.frequency &&
    a.spans.length === b.spans.length &&
    a.spans.every(({ start, end }, at) => start === b.spans[at]?.start && end === b.spans[at]?.end)
  );
}

/**
 * The largest number of terms that a media buy keeps. A media buy has few; if there are more, the oldest are forgotten.
 */
export const MOST_TERMS = 100;

/**
 * Adds terms, unless they are the same as the last ones. They replace known terms that begin at the same time or later.
 */
export function withTerms(known: readonly Terms[], next: Terms): readonly Terms[] {
  const before = known.filter(({ from }) => from < next.from);
  const last = before.at(-1);
  if (last && sameTerms(last, next)) return before;
  return [...before, next].slice(-MOST_TERMS);
}

/**
 * Returns the numbers of the windows of a frequency that the seller owes and that have ended by `until`.
 *
 * @param until Unix ms.
 */
export function owedRuns(terms: readonly Terms[], frequency: Frequency, clock: Clock, until: number): Runs {
  let owed: Runs = [];
  for (const [at, is] of terms.entries()) {
    if (is.frequency !== frequency) continue;
    // The first terms are also in force before they begin, because there were no terms before them.
    const inForce = { after: at === 0 ? -Infinity : is.from, until: terms[at + 1]?.from ?? Infinity };
    for (const span of is.spans) {
      const run = owedOf(
        { span, lastEnd: is.spans.at(-1)?.end ?? span.end, inForce, until },
        frequency,
        clock,
      );
      if (run) owed = union(owed, [run]);
    }
  }
  return owed;
}

interface Owing {
  readonly span: Period;
  /** The end of the last span. The window that contains this end is cut there. */
  readonly lastEnd: number;
  /** The terms are in force after `after`, up to and including `until`. */
  readonly inForce: { readonly after: number; readonly until: number };
  readonly until: number;
}

/** Returns the windows that a span overlaps, and that end while the terms are in force. Undefined if there are none. */
function owedOf(
  { span, lastEnd, inForce, until }: Owing,
  frequency: Frequency,
  clock: Clock,
): Run | undefined {
  const numberAt = (instant: number): number => windowAt(frequency, clock, instant);
  const endOf = (number: number): number => Math.min(windowPeriod(frequency, clock, number).end, lastEnd);
  /** Returns the number after the last window that has ended by `instant`. */
  const endedBy = (instant: number): number => (instant === Infinity ? Infinity : numberAt(instant));
  if (span.start >= Math.min(span.end, until) || lastEnd <= inForce.after) return undefined;
  let first = numberAt(Math.max(span.start, inForce.after));
  if (endOf(first) <= inForce.after) first += 1;
  const overlapped = span.end === Infinity ? Infinity : numberAt(span.end - 1) + 1;
  const ended = lastEnd <= inForce.until ? Infinity : endedBy(inForce.until);
  const end = Math.min(overlapped, ended, endedBy(until));
  return first < end ? [first, end] : undefined;
}
