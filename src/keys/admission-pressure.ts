import type { RaiseAlarm } from '../alarms.ts';

/**
 * When to be told that more new keys come into use than usual. A key id counts once, when it is first found in the keys
 * of a configured sender: others cannot raise the count. What is compared is the number of them in the last
 * 5 minutes, over all senders. Every threshold is off where it is not set; none ever refuses a delivery.
 */
export interface AdmissionPressure {
  /** Alarm above this multiple of the mean per 5 minutes over the hour before; judged once an hour was seen. */
  readonly shortRatio?: number;
  /** The same over the 6 hours before; judged once they were seen. */
  readonly mediumRatio?: number;
  /** The same over the 24 hours before; judged once they were seen. */
  readonly longRatio?: number;
  /**
   * Alarm above `absolute` + `proportional` × the key ids known before (0.1: a tenth of them). Judged 5 minutes after the
   * start, when most keys in use are known.
   */
  readonly ceiling?: { readonly absolute: number; readonly proportional: number };
}

interface PressureOptions {
  readonly thresholds: AdmissionPressure;
  /** Unix ms. */
  readonly now: () => number;
  readonly raiseAlarm: RaiseAlarm;
}

/** Key ids are counted over so many minutes: a mean of a shorter time jumps with each one. */
const WINDOW_MIN = 5;
/** A mean below one new key counts as one, or the first key after a quiet day would be an infinite multiple of it. */
const LEAST_MEAN = 1;

/** Minutes before the window that each ratio looks back on. */
const LOOK_BACK: Readonly<Record<'shortRatio' | 'mediumRatio' | 'longRatio', number>> = {
  shortRatio: 60,
  mediumRatio: 360,
  longRatio: 1440,
};
const RATIOS = ['shortRatio', 'mediumRatio', 'longRatio'] as const;

/** A threshold that was passed: its name, and how many key ids it allows in 5 minutes. */
interface Tripped {
  readonly threshold: keyof AdmissionPressure;
  readonly limit: number;
}

function tripped(history: KeyHistory, thresholds: AdmissionPressure, count: number): Tripped[] {
  const found: Tripped[] = [];
  for (const threshold of RATIOS) {
    const ratio = thresholds[threshold];
    const back = LOOK_BACK[threshold];
    if (ratio === undefined || history.minutes() < back + WINDOW_MIN) continue;
    const mean = (history.count(WINDOW_MIN, back) * WINDOW_MIN) / back;
    found.push({ threshold, limit: ratio * Math.max(mean, LEAST_MEAN) });
  }
  const { ceiling } = thresholds;
  if (ceiling !== undefined && history.minutes() >= WINDOW_MIN) {
    const before = Math.max(0, history.known() - count);
    found.push({ threshold: 'ceiling', limit: ceiling.absolute + ceiling.proportional * before });
  }
  return found.filter(({ limit }) => count > limit);
}

/**
 * Counts key ids as they come into use, and raises `admission_pressure`: each threshold once in 5 minutes.
 * @returns what to call with each key that is found; undefined where no threshold is set.
 */
export function createPressureGauge(
  options: PressureOptions,
): ((sender: string, keyid: string) => void) | undefined {
  const { thresholds, now, raiseAlarm } = options;
  if (Object.values(thresholds).every((threshold) => threshold === undefined)) return undefined;
  const history = createKeyHistory();
  const lastRaised = new Map<keyof AdmissionPressure, number>();
  return (sender, keyid) => {
    const minute = Math.floor(now() / 60_000);
    if (!history.note(sender, keyid, minute)) return;
    const count = history.count(0, WINDOW_MIN);
    const due = tripped(history, thresholds, count).filter(
      ({ threshold }) =>
        Math.abs(minute - (lastRaised.get(threshold) ?? Number.NEGATIVE_INFINITY)) >= WINDOW_MIN,
    );
    if (due.length === 0) return;
    for (const { threshold } of due) lastRaised.set(threshold, minute);
    const names = due.map(({ threshold }) => threshold);
    raiseAlarm({
      code: 'admission_pressure',
      message: `${count} key ids came into use within 5 minutes, more than ${names.join(' and ')} allow${names.length === 1 ? 's' : ''}; the last is of ${sender}. Nothing is refused for it.`,
      sender,
      tripped: names,
      count,
      limits: Object.fromEntries(due.map(({ threshold, limit }) => [threshold, limit])),
    });
  };
}

/** When key ids were first seen, by the minute, over a day. Its size is bounded, whatever is noted. */
interface KeyHistory {
  /** @returns whether this sender's key id is new. @param minute whole minutes of the receiver's clock. */
  note(sender: string, keyid: string, minute: number): boolean;
  /** Key ids first seen in the `minutes` that ended `ago` minutes before the end of the current one. */
  count(ago: number, minutes: number): number;
  /** Key ids ever seen and still remembered. */
  known(): number;
  /** Whole minutes since the first note. */
  minutes(): number;
}

/** A day before the window of 5 minutes that is judged. */
const MINUTES = 1440 + 5;
/** A clock that was set back by more minutes than this makes the counts meaningless: they start again. */
const TOLERATED = 5;
/** Some 10 MB. The one seen first is forgotten first, and would count as new again. */
const MAX_KNOWN = 100_000;

function remember(known: Set<string>, name: string): void {
  const [oldest] = known;
  if (known.size >= MAX_KNOWN && oldest !== undefined) known.delete(oldest);
  known.add(name);
}

export function createKeyHistory(): KeyHistory {
  const known = new Set<string>();
  const byMinute = new Uint32Array(MINUTES);
  let first: number | undefined;
  let current = 0;
  const slot = (minute: number): number => minute % MINUTES;
  const moveTo = (minute: number): void => {
    if (first === undefined || minute < current - TOLERATED) {
      byMinute.fill(0);
      first = minute;
      current = minute;
    }
    if (minute <= current) return;
    const from = Math.max(current + 1, minute - MINUTES + 1);
    for (let passed = from; passed <= minute; passed += 1) byMinute[slot(passed)] = 0;
    current = minute;
  };
  return {
    note: (sender, keyid, minute) => {
      moveTo(minute);
      const name = JSON.stringify([sender, keyid]);
      if (known.has(name)) return false;
      remember(known, name);
      byMinute[slot(current)] = (byMinute[slot(current)] ?? 0) + 1;
      return true;
    },
    count: (ago, minutes) => {
      let sum = 0;
      for (let back = ago; back < ago + minutes && back < MINUTES; back += 1) {
        sum += byMinute[slot(current - back + MINUTES)] ?? 0;
      }
      return sum;
    },
    known: () => known.size,
    minutes: () => (first === undefined ? 0 : current - first),
  };
}
