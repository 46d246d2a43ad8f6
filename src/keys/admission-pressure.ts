// Counts signing keys that come into use, and raises an alarm if there are unusually many (option
// `advanced.admissionPressure`).
// Called by the key resolver for each key that may verify a delivery; no delivery is refused because of the count.
// `receiver.health()` shows the counts.

import type { RaiseAlarm } from '../shared/alarms.ts';

/**
 * The thresholds of the alarm for an unusual number of new signing keys: the option `advanced.admissionPressure`. A
 * key id counts once, when it is first found among the keys of a configured sender. So unauthenticated callers cannot
 * raise the count.
 *
 * The number of new key ids of all senders in the last 5 minutes is compared with each threshold. Each threshold is
 * off unless it is set, and none refuses a delivery. `receiver.health()` always shows the values.
 */
export interface AdmissionPressure {
  /**
   * A multiple of the mean number of new key ids per 5 minutes in the preceding hour. A higher number in the last 5
   * minutes raises the alarm. The alarm is off in the first 65 minutes after the first key id.
   */
  readonly shortRatio?: number;
  /**
   * A multiple of the mean number of new key ids per 5 minutes in the preceding 6 hours. A higher number in the last 5
   * minutes raises the alarm. The alarm is off in the first 6 hours and 5 minutes after the first key id.
   */
  readonly mediumRatio?: number;
  /**
   * A multiple of the mean number of new key ids per 5 minutes in the preceding 24 hours. A higher number in the last 5
   * minutes raises the alarm. The alarm is off in the first 24 hours and 5 minutes after the first key id.
   */
  readonly longRatio?: number;
  /**
   * The limit of new key ids in 5 minutes: `absolute` + `proportional` × the number of key ids known before (0.1: a
   * tenth of them). A higher number raises the alarm. The alarm is off in the first 5 minutes after the first key id,
   * because then most keys are new to the process.
   */
  readonly ceiling?: { readonly absolute: number; readonly proportional: number };
}

/**
 * Counts of new signing keys of all senders, as `receiver.health()` shows them. They are kept even if no threshold of
 * `AdmissionPressure` is set.
 */
export interface PressureState {
  /** The number of key ids first seen in the last 5 minutes. */
  readonly recent: number;
  /** The number of key ids that this process has seen and still remembers. */
  readonly known: number;
  /**
   * For each threshold of `AdmissionPressure` that is a ratio, the current multiple of the mean. Each is absent until
   * its period (1, 6 or 24 hours) and 5 more minutes have passed.
   */
  readonly ratios: Readonly<Partial<Record<'shortRatio' | 'mediumRatio' | 'longRatio', number>>>;
}

interface PressureOptions {
  readonly thresholds: AdmissionPressure;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  readonly raiseAlarm: RaiseAlarm;
}

/**
 * The length in minutes of the window in which new key ids are counted. In a shorter window, single keys would change
 * the result too much.
 */
const WINDOW_MIN = 5;
/**
 * The least mean that a ratio is computed with. With a mean near 0, the first new key after a quiet day would exceed
 * every ratio.
 */
const LEAST_MEAN = 1;

/** The minutes before the current 5-minute window from which each ratio takes its mean. */
const LOOK_BACK: Readonly<Record<'shortRatio' | 'mediumRatio' | 'longRatio', number>> = {
  shortRatio: 60,
  mediumRatio: 360,
  longRatio: 1440,
};
const RATIOS = ['shortRatio', 'mediumRatio', 'longRatio'] as const;

/**
 * Returns the mean number of new keys per 5 minutes in the `back` minutes before the current 5-minute window. Undefined
 * until the history covers both periods.
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

/** Counts signing key ids that are new to this process. */
export interface PressureGauge {
  /** Counts the key id if it is new. Called each time a key is found; a known key id costs only two map look-ups. */
  readonly note: (sender: string, keyid: string) => void;
  readonly state: () => PressureState;
}

/**
 * Creates a gauge that raises the alarm `admission_pressure` if the count exceeds a threshold. For each threshold,
 * alarms are at least 5 minutes apart.
 */
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

/** Counts the key ids that were first seen in each minute of the last day, in bounded memory. */
interface KeyHistory {
  /** True if this sender's key id was noted before. Allocates nothing, because it is called for each delivery. */
  knows(sender: string, keyid: string): boolean;
  /**
   * Moves the history on to this minute, so that old counts leave it even if no new key id comes.
   * @param minute whole minutes of the receiver's clock.
   */
  passTo(minute: number): void;
  /**
   * Counts this sender's key id in the given minute if it is new.
   * @param minute whole minutes of the receiver's clock.
   * @returns true if the key id is new.
   */
  note(sender: string, keyid: string, minute: number): boolean;
  /**
   * Returns the number of key ids first seen in a period of `minutes` minutes. The period ended `ago` minutes before
   * the end of the current minute.
   */
  count(ago: number, minutes: number): number;
  /** Returns the number of key ids that are remembered. */
  known(): number;
  /** Returns the whole minutes of history: since the first key id, or since the counts were restarted. */
  minutes(): number;
}

/** The minutes of history that are kept: one day, plus the current window of 5 minutes. */
const MINUTES = 1440 + 5;
/** If the clock is set back by more minutes than this, all counts restart, because they no longer fit the time. */
const TOLERATED = 5;
/**
 * The maximum number of key ids remembered, about 10 MB. A forgotten key id is treated as new when it occurs again.
 */
const MAX_KNOWN = 100_000;
/**
 * The maximum number of characters of all remembered key ids together. A limit on their number is not enough, because
 * one key id may have thousands of characters.
 */
const MAX_CHARACTERS = 5_000_000;

/**
 * Creates the memory of key ids by sender, with a bounded size. When it is full, a sender's new key id replaces the
 * oldest one of the same sender. Only a sender without key ids displaces a key id of another sender.
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
