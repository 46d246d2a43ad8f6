// Counts signing keys that come into use, and alarms if there are unusually many (option
// `advanced.admissionPressure`).
// Called by the key resolver for each candidate; refuses nothing. `receiver.health()` shows the counts.

import type { RaiseAlarm } from '../shared/alarms.ts';

/**
 * The thresholds of the alarm for an unusual number of new signing keys: the option `advanced.admissionPressure`. A
 * key id counts once, when it is first found in the keys of a configured sender, so others cannot raise the count.
 *
 * The compared value is the number of new key ids of all senders in the last 5 minutes. Each threshold is off unless
 * it is set, and none refuses a delivery. `receiver.health()` always shows the values.
 */
export interface AdmissionPressure {
  /** The largest multiple of the mean per 5 minutes over the hour before. It is judged after one hour. */
  readonly shortRatio?: number;
  /** The largest multiple of the mean per 5 minutes over the 6 hours before. It is judged after 6 hours. */
  readonly mediumRatio?: number;
  /** The largest multiple of the mean per 5 minutes over the 24 hours before. It is judged after 24 hours. */
  readonly longRatio?: number;
  /**
   * The largest number: `absolute` + `proportional` × the key ids known before (0.1: a tenth of them). It is judged
   * from 5 minutes after the start, when most keys in use are known.
   */
  readonly ceiling?: { readonly absolute: number; readonly proportional: number };
}

/**
 * The number of signing keys that came into use in the last 5 minutes, over all senders, as `receiver.health()`
 * shows it. It is counted even if no threshold of `AdmissionPressure` is set.
 */
export interface PressureState {
  /** The key ids first seen in the last 5 minutes. */
  readonly recent: number;
  /** The key ids that this process has seen and still remembers. */
  readonly known: number;
  /**
   * The values that the thresholds of the same names are compared with. Each is absent until its time span has
   * passed.
   */
  readonly ratios: Readonly<Partial<Record<'shortRatio' | 'mediumRatio' | 'longRatio', number>>>;
}

interface PressureOptions {
  readonly thresholds: AdmissionPressure;
  /** Unix ms. */
  readonly now: () => number;
  readonly raiseAlarm: RaiseAlarm;
}

/** Minutes over which key ids are counted: the mean of a shorter time would jump with each key. */
const WINDOW_MIN = 5;
/**
 * A mean below one new key is treated as one. Otherwise the first key after a quiet day would exceed every ratio.
 */
const LEAST_MEAN = 1;

/** Length of the period before the window with which each ratio compares. Minutes. */
const LOOK_BACK: Readonly<Record<'shortRatio' | 'mediumRatio' | 'longRatio', number>> = {
  shortRatio: 60,
  mediumRatio: 360,
  longRatio: 1440,
};
const RATIOS = ['shortRatio', 'mediumRatio', 'longRatio'] as const;

/**
 * The mean number of new keys per 5 minutes over the `back` minutes before the judged window. Undefined until that
 * much time has been observed.
 */
function meanOf(history: KeyHistory, back: number): number | undefined {
  if (history.minutes() < back + WINDOW_MIN) return undefined;
  return Math.max((history.count(WINDOW_MIN, back) * WINDOW_MIN) / back, LEAST_MEAN);
}

/** A threshold that was exceeded: its name, and the number of key ids that it allows in 5 minutes. */
interface Tripped {
  readonly threshold: keyof AdmissionPressure;
  readonly limit: number;
}

function tripped(history: KeyHistory, thresholds: AdmissionPressure, count: number): Tripped[] {
  const found: Tripped[] = [];
  for (const threshold of RATIOS) {
    const ratio = thresholds[threshold];
    const mean = ratio === undefined ? undefined : meanOf(history, LOOK_BACK[threshold]);
    if (ratio !== undefined && mean !== undefined) found.push({ threshold, limit: ratio * mean });
  }
  const { ceiling } = thresholds;
  if (ceiling !== undefined && history.minutes() >= WINDOW_MIN) {
    const before = Math.max(0, history.known() - count);
    found.push({ threshold: 'ceiling', limit: ceiling.absolute + ceiling.proportional * before });
  }
  return found.filter(({ limit }) => count > limit);
}

/** Counts key ids when they come into use. */
export interface PressureGauge {
  /** Called each time a key is found; for a known key this costs two look-ups. */
  readonly note: (sender: string, keyid: string) => void;
  readonly state: () => PressureState;
}

/** Counts key ids, and raises `admission_pressure` for each threshold that is set, once in 5 minutes. */
export function createPressureGauge({ thresholds, now, raiseAlarm }: PressureOptions): PressureGauge {
  const history = createKeyHistory();
  const lastRaised = new Map<keyof AdmissionPressure, number>();
  const minuteNow = (): number => Math.floor(now() / 60_000);
  const judge = (sender: string, minute: number): void => {
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
  return {
    note: (sender, keyid) => {
      if (history.knows(sender, keyid)) return;
      const minute = minuteNow();
      history.note(sender, keyid, minute);
      judge(sender, minute);
    },
    state: () => {
      history.passTo(minuteNow());
      const recent = history.count(0, WINDOW_MIN);
      const means = RATIOS.map((name) => [name, meanOf(history, LOOK_BACK[name])] as const);
      const ratios = means.flatMap(([name, mean]) => (mean === undefined ? [] : [[name, recent / mean]]));
      return { recent, known: history.known(), ratios: Object.fromEntries(ratios) };
    },
  };
}

/** Counts, for each minute of the last day, the key ids first seen then. Memory is bounded. */
interface KeyHistory {
  /** True if this sender's key id was noted before. Allocates nothing, because it is called for each delivery. */
  knows(sender: string, keyid: string): boolean;
  /**
   * Advances the time to this minute even if no key id is noted.
   * @param minute as in `note`.
   */
  passTo(minute: number): void;
  /** @returns true if this sender's key id is new. @param minute whole minutes of the receiver's clock. */
  note(sender: string, keyid: string, minute: number): boolean;
  /**
   * Number of key ids first seen during `minutes` minutes, a period that ended `ago` minutes before the end of the
   * current minute.
   */
  count(ago: number, minutes: number): number;
  /** Number of key ids that were ever seen and are still remembered. */
  known(): number;
  /** Whole minutes since the first note. */
  minutes(): number;
}

/** Minutes of history: one day, plus the judged window of 5 minutes. */
const MINUTES = 1440 + 5;
/** If the clock was set back by more minutes than this, the counts are meaningless and start again. */
const TOLERATED = 5;
/** Most key ids remembered, about 10 MB. A forgotten key id is treated as new when it occurs again. */
const MAX_KNOWN = 100_000;
/** Most characters of all remembered key ids together, because one id may have thousands. */
const MAX_CHARACTERS = 5_000_000;

/**
 * The remembered key ids by sender, with bounded memory. A sender with too many loses its own oldest key ids first;
 * another sender's are not dropped for it.
 */
function createKnownIds(): {
  readonly has: (sender: string, keyid: string) => boolean;
  readonly add: (sender: string, keyid: string) => void;
  readonly size: () => number;
} {
  const bySender = new Map<string, Set<string>>();
  let size = 0;
  let characters = 0;
  const forget = (sender: string): void => {
    const ids = bySender.get(sender) ?? new Set();
    const [oldest] = ids;
    if (oldest === undefined) return;
    ids.delete(oldest);
    size -= 1;
    characters -= oldest.length;
    if (ids.size === 0) bySender.delete(sender);
  };
  return {
    has: (sender, keyid) => bySender.get(sender)?.has(keyid) === true,
    add: (sender, keyid) => {
      const isFull = (): boolean => size >= MAX_KNOWN || characters + keyid.length > MAX_CHARACTERS;
      while (bySender.size > 0 && isFull()) {
        const [first = sender] = bySender.keys();
        forget(bySender.has(sender) ? sender : first);
      }
      const ids = bySender.get(sender) ?? new Set<string>();
      bySender.set(sender, ids.add(keyid));
      size += 1;
      characters += keyid.length;
    },
    size: () => size,
  };
}

export function createKeyHistory(): KeyHistory {
  const known = createKnownIds();
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
    knows: known.has,
    passTo: (minute) => {
      if (first !== undefined) moveTo(minute);
    },
    note: (sender, keyid, minute) => {
      moveTo(minute);
      if (known.has(sender, keyid)) return false;
      known.add(sender, keyid);
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
    known: known.size,
    minutes: () => (first === undefined ? 0 : current - first),
  };
}
