/** When key ids were first seen, by the minute, over a day. Its size is bounded, whatever is noted. */
export interface KeyHistory {
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
