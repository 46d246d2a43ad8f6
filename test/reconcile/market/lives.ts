import { type Random, randomOf } from '../../reliability/processes/random.ts';
import { type Buy, buyOf, type BuyDraft, GRACE, type Kind, type Report } from './plan.ts';
import { daysOf, type Span, type Zone } from './zones.ts';

/*
 * What happens to media buys beside their reports: what impairs them and how it ends, which webhooks tell of that, how they come to
 * their own end, and what was booked. Everything is decided before the buyer begins, and nothing of the buyer's code is used.
 */

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** A seller, as it tells of its media buys. */
export interface Seller {
  readonly name: string;
  readonly kind: Kind;
  readonly edition: '3.0' | '3.1';
  /** `propagation_surfaces` of its capabilities; absent: it declares none. */
  readonly surfaces?: readonly string[];
  /** The longest age of what its answers say. Ms. */
  readonly ageMs: number;
  /** Its answers have `status_as_of`. */
  readonly saysAge: boolean;
  /** The media buys of a page, however many are asked for. */
  readonly pageSize: number;
  /** Some answers lack a media buy, or what impairs it. */
  readonly isPatchy?: true;
  /** Instants are written by the minute. */
  readonly isCoarse?: true;
  /** A transition leads back to where the first one came from. Default: it ends in a word of its own, and the first comes from nowhere. */
  readonly isRound?: true;
  /** Of 1: webhooks of impairments that are lost, late, sent twice, and sent again under a new key. */
  readonly lost: number;
  readonly late: number;
  readonly doubled: number;
  readonly again: number;
  /** Its `final` reports: each in time, or of all sorts. */
  readonly finals: 'in time' | 'of all sorts';
}

/** What impairs a media buy becomes this, or ends. */
export interface Step {
  readonly at: number;
  /** As its seller writes the instant. */
  readonly said: number;
  /** undefined: it has ended. */
  readonly to: string | undefined;
}

/** A webhook of an impairment. */
export interface Fire {
  readonly key: string;
  readonly at: number;
  /** Of `Impairment.steps`: which it tells. */
  readonly step: number;
  /** All tries get lost on the way. */
  readonly isLost: boolean;
  /** It comes once more after it was taken, so long after. */
  readonly twiceMs?: number;
  /** The same notification under another key. */
  readonly isAgain?: true;
  /** The buyer's handler throws so many times. */
  readonly throws: number;
}

/** What impairs a media buy. */
export interface Impairment {
  readonly id: string;
  readonly steps: readonly Step[];
  readonly fires: readonly Fire[];
}

/** How a media buy ends before its flight does, or with it. */
export interface End {
  readonly at: number;
  readonly status: 'completed' | 'canceled' | 'rejected';
}

/** What was delivered and booked. */
export interface Booked {
  readonly impressions?: number;
  readonly spend?: number;
  readonly currency: string;
}

/** What the two sides have booked. */
export interface Totals {
  readonly name: string;
  /** The seller's, and the buyer's. */
  readonly theirs: Booked;
  readonly ours: Booked;
  readonly isDifferent: boolean;
}

/** A media buy. */
export interface Life {
  readonly buy: Buy;
  readonly seller: Seller;
  readonly end: End;
  readonly impairments: readonly Impairment[];
  /** The reports of its end: of none where nobody asked for reports. */
  readonly finals: readonly Report[];
  /** They are of a window that is owed, and are sent with its other reports. */
  readonly isFinalOwed: boolean;
  readonly totals: Totals;
}

const HONEST = { kind: 'never-final', edition: '3.1', lost: 0, late: 0, doubled: 0.1, again: 0 } as const;
const LOSSY = { ...HONEST, lost: 0.3, late: 0.2, doubled: 0.2, again: 0.15 } as const;

const BOTH = ['snapshot', 'webhook'] as const;

export const SELLERS: readonly Seller[] = [
  {
    ...HONEST,
    name: 'keeps-its-word',
    surfaces: BOTH,
    ageMs: 0,
    saysAge: true,
    pageSize: 100,
    finals: 'in time',
  },
  {
    ...HONEST,
    isRound: true,
    name: 'minutes-old',
    surfaces: BOTH,
    ageMs: 5 * MINUTE,
    saysAge: false,
    pageSize: 2,
    finals: 'in time',
  },
  {
    ...LOSSY,
    name: 'loses',
    surfaces: BOTH,
    ageMs: 5 * MINUTE,
    saysAge: false,
    pageSize: 100,
    finals: 'of all sorts',
  },
  {
    ...LOSSY,
    name: 'loses-by-the-minute',
    kind: 'gives-up',
    surfaces: ['webhook'],
    ageMs: 2 * MINUTE,
    saysAge: true,
    pageSize: 3,
    isPatchy: true,
    isCoarse: true,
    isRound: true,
    finals: 'of all sorts',
  },
  {
    ...LOSSY,
    name: 'snapshot-alone',
    ageMs: 5 * MINUTE,
    saysAge: true,
    pageSize: 50,
    lost: 1,
    finals: 'in time',
  },
  {
    ...LOSSY,
    isRound: true,
    name: 'hours-old',
    surfaces: BOTH,
    ageMs: 3 * HOUR,
    saysAge: true,
    pageSize: 100,
    finals: 'in time',
  },
  {
    ...LOSSY,
    name: 'hides-its-age',
    surfaces: BOTH,
    ageMs: 3 * HOUR,
    saysAge: false,
    pageSize: 100,
    finals: 'in time',
  },
  {
    ...HONEST,
    name: 'out-of-band',
    surfaces: ['out_of_band'],
    ageMs: 0,
    saysAge: true,
    pageSize: 100,
    finals: 'in time',
  },
  {
    ...HONEST,
    name: 'three-point-zero',
    edition: '3.0',
    ageMs: 0,
    saysAge: false,
    pageSize: 100,
    finals: 'in time',
  },
];

/** Many media buys without reports: more than a call asks for. */
export const WIDE: Seller = {
  ...HONEST,
  name: 'wide',
  surfaces: BOTH,
  ageMs: MINUTE,
  saysAge: true,
  pageSize: 40,
  finals: 'in time',
};

/** Nobody tells of impairments. */
const isMute = ({ edition, surfaces }: Seller): boolean =>
  edition === '3.0' ||
  (surfaces !== undefined && !surfaces.includes('snapshot') && !surfaces.includes('webhook'));

/** Its media buys are asked for by snapshots. */
export const isAsked = (seller: Seller): boolean => !isMute(seller);

/** It promises webhooks of impairments. */
export const promises = ({ edition, surfaces = [] }: Seller): boolean =>
  edition !== '3.0' && surfaces.includes('webhook');

export interface LivesOptions {
  readonly seed: number;
  readonly sellers: readonly Seller[];
  /** Media buys of each seller with reports. */
  readonly each: number;
  /** Of the wide seller. */
  readonly many: number;
  /** Windows of a flight, at least and at most. */
  readonly days: readonly [number, number];
  /** No process of the buyer lives in these. */
  readonly dark: readonly Span[];
}

/** The media buys of a market. */
export function livesOf({ seed, sellers, each, many, days, dark }: LivesOptions): readonly Life[] {
  const random = randomOf(seed);
  const lives: Life[] = [];
  for (const seller of sellers) {
    for (let at = 0; at < each; at += 1) {
      lives.push(lifeOf(random, { seller, at, days, dark, isSilent: at === each - 1, count: lives.length }));
    }
  }
  for (let at = 0; at < many; at += 1) {
    lives.push(lifeOf(random, { seller: WIDE, at, days, dark, isSilent: true, count: lives.length }));
  }
  return lives;
}

interface LifeDraft {
  readonly seller: Seller;
  /** Among the media buys of its seller. */
  readonly at: number;
  /** Among all. */
  readonly count: number;
  readonly days: readonly [number, number];
  readonly dark: readonly Span[];
  readonly isSilent: boolean;
}

const ZONES: readonly Zone[] = ['America/New_York', 'Europe/Berlin', 'UTC'];

function lifeOf(random: Random, draft: LifeDraft): Life {
  const { seller, at, count, days, dark, isSilent } = draft;
  const zone = ZONES[count % ZONES.length] ?? 'UTC';
  const length = days[0] + random.below(days[1] - days[0] + 1);
  const ends = endOf(random, daysOf(zone).slice(0, length), draft);
  const traits: BuyDraft = {
    id: `${seller.name}-${at}`,
    kind: seller.kind,
    seller: seller.name,
    zone,
    frequency: 'daily',
    drop: seller.lost > 0 ? 0.2 : 0,
    length,
    isWithoutFinal: true,
    ...(at % 2 === 1 && { account: 'second' }),
    ...(isSilent && { isSilent: true }),
    changes: ends.isEarly ? [{ at: ends.at, status: ends.status }] : [],
  };
  const made = buyOf(random, traits);
  const end: End = { at: ends.at, status: ends.status };
  const { buy, finals, isFinalOwed } = isSilent
    ? { buy: made, finals: [], isFinalOwed: false }
    : withFinals(random, made, { seller, end });
  return {
    buy,
    seller,
    end,
    finals,
    isFinalOwed,
    totals: TOTALS[count % TOTALS.length] ?? SAME,
    impairments: isMute(seller) ? [] : impairmentsOf(random, { buy, seller, end, dark }),
  };
}

/** A flight ends by itself, or before: in the dark where there is any. */
function endOf(
  random: Random,
  periods: readonly Span[],
  { at, dark }: Pick<LifeDraft, 'at' | 'dark'>,
): End & { readonly isEarly: boolean } {
  const [first, last] = [periods[0], periods.at(-1)];
  if (!first || !last) throw new Error('an empty flight');
  const statuses = ['completed', 'canceled', 'rejected'] as const;
  const night = dark.find(({ start, end }) => first.start < start && end < last.end);
  if (at % 3 === 1 && night) {
    const within = night.start + random.below(night.end - night.start);
    return { at: within, status: random.pick(statuses), isEarly: true };
  }
  if (at % 3 === 2) {
    const within = first.end + random.below(last.start - first.start);
    return { at: within, status: random.pick(statuses), isEarly: true };
  }
  return { at: last.end, status: 'completed', isEarly: false };
}

/** When the window in which a media buy ends is missing. */
export function finalDueOf({ buy, end }: Pick<Life, 'buy' | 'end'>): number {
  const window = buy.windows.find((one) => one.start < end.at && end.at <= one.end) ?? buy.windows[0];
  return (window?.end ?? end.at) + buy.delayMs + GRACE;
}

const NO_WAITS = [0, 2000, 10_000, MINUTE, 10 * MINUTE] as const;

/** The `final` of a media buy: in the list of its last window where that is owed whole, else apart. */
function withFinals(
  random: Random,
  buy: Buy,
  { seller, end }: Pick<Life, 'seller' | 'end'>,
): Pick<Life, 'buy' | 'finals' | 'isFinalOwed'> {
  const due = finalDueOf({ buy, end });
  const sort =
    seller.finals === 'in time'
      ? 'in time'
      : random.pick(['in time', 'none', 'late', 'twice', 'lost'] as const);
  const report = (name: string, at: number, isDropped = false): Report => ({
    key: `${buy.id}-${name}-final-0123456789`,
    type: 'final',
    at,
    rows: [{ id: buy.id }],
    waits: NO_WAITS,
    isDropped,
    throws: 0,
  });
  const inTime = end.at + 10 * MINUTE + random.below(HOUR);
  const sorts = {
    'in time': [report('first', inTime)],
    none: [],
    late: [report('late', due + 3 * HOUR + random.below(6 * HOUR))],
    twice: [report('first', inTime), report('again', inTime + random.below(2 * HOUR))],
    lost: [report('lost', inTime, true)],
  };
  const reports = sorts[sort];
  const last = buy.windows.at(-1);
  if (last?.end !== end.at) return { buy, finals: reports, isFinalOwed: false };
  const windows = [...buy.windows.slice(0, -1), { ...last, reports: [...last.reports, ...reports] }];
  return { buy: { ...buy, windows }, finals: reports, isFinalOwed: true };
}

const STATES = ['blocked', 'limited', 'disapproved'] as const;

interface Impaired {
  readonly buy: Buy;
  readonly seller: Seller;
  readonly end: End;
  readonly dark: readonly Span[];
}

function impairmentsOf(random: Random, of: Impaired): readonly Impairment[] {
  const { buy, seller, end, dark } = of;
  const from = buy.flight.start + HOUR;
  if (end.at - from < HOUR) return [];
  const isWide = seller.name === WIDE.name;
  const count = isWide ? (random.next() < 0.1 ? 1 : 0) : 2 + random.below(4);
  const starts = Array.from({ length: count }, () => from + random.below(end.at - from));
  // One opens while nobody looks, or before, and its end is not seen either.
  const night = dark.find((one) => from < one.start - HOUR && one.end < end.at);
  if (night && !isWide) starts.push(night.start - HOUR + random.below(2 * HOUR));
  return starts.map((start, at) => {
    const steps = stepsOf(random, start, of);
    return { id: `imp-${buy.id}-${at}`, steps, fires: firesOf(random, `${buy.id}-${at}`, steps, of) };
  });
}

/** How long a state lasts. Ms. */
function gapOf(random: Random): number {
  const n = random.next();
  if (n < 0.05) return 15_000 + random.below(35_000);
  if (n < 0.15) return MINUTE + random.below(3 * MINUTE);
  if (n < 0.35) return 6 * MINUTE + random.below(20 * MINUTE);
  if (n < 0.85) return HOUR + random.below(7 * HOUR);
  return DAY + random.below(DAY);
}

/** It opens, changes at most twice, and ends; rarely it is back under the same id. */
function stepsOf(random: Random, start: number, { seller, end }: Impaired): readonly Step[] {
  const words: (string | undefined)[] = [STATES[random.below(3)]];
  for (let left = random.below(3); left > 0; left -= 1) {
    words.push(STATES[(STATES.indexOf(words.at(-1) as 'limited') + 1) % 3]);
  }
  words.push(undefined);
  if (random.next() < 0.1) words.push('blocked', undefined);
  let at = start;
  const steps = words.map((to): Step => {
    const step = { at, said: seller.isCoarse ? at - (at % MINUTE) : at, to };
    at += gapOf(random);
    return step;
  });
  // Of a media buy that has ended nothing is said any more.
  return steps.filter((one) => one.at < end.at);
}

/** Near-simultaneous changes are one webhook; those that wait when the media buy ends come before. */
function firesOf(random: Random, id: string, steps: readonly Step[], of: Impaired): readonly Fire[] {
  const { seller, end } = of;
  const fires: Fire[] = [];
  for (let first = 0; first < steps.length; first += 1) {
    const began = steps[first]?.at ?? 0;
    const at = Math.min(end.at, began + random.below(5 * MINUTE));
    const step = steps.findLastIndex((one) => one.at <= at);
    const n = random.next();
    const isLost = n < seller.lost;
    const isLate = !isLost && n < seller.lost + seller.late;
    const fire: Fire = {
      key: `impaired-${id}-${fires.length}-0123456789`,
      at: isLate ? at + 11 * MINUTE + random.below(2 * HOUR) : at,
      step,
      isLost,
      throws: random.next() < 0.05 ? 1 : 0,
      ...(random.next() < seller.doubled && { twiceMs: random.below(6 * HOUR) }),
    };
    // What came and went within the time of coalescence is told by nobody.
    const isNothing = first === 0 && steps[step]?.to === undefined;
    if (!isNothing) fires.push(fire);
    if (!isNothing && random.next() < seller.again) {
      const later = fire.at + 20 * MINUTE + random.below(3 * HOUR);
      if (later < end.at) {
        fires.push({
          key: `${fire.key}-again`,
          at: later,
          step: steps.findLastIndex((one) => one.at <= later),
          isLost: false,
          isAgain: true,
          throws: 0,
        });
      }
    }
    first = step;
  }
  return fires;
}

const USD = (impressions: number, spend: number): Booked => ({ impressions, spend, currency: 'USD' });

const SAME: Totals = {
  name: 'equal',
  theirs: USD(10_000, 1000),
  ours: USD(10_000, 1000),
  isDifferent: false,
};

/** Each side of each tolerance: 2 % of impressions and 1 % of spend, of the seller's number. */
const TOTALS: readonly Totals[] = [
  SAME,
  {
    name: 'more impressions at the tolerance',
    theirs: USD(10_000, 1000),
    ours: USD(10_200, 1000),
    isDifferent: false,
  },
  { name: 'more impressions', theirs: USD(10_000, 1000), ours: USD(10_201, 1000), isDifferent: true },
  {
    name: 'fewer impressions at the tolerance',
    theirs: USD(10_000, 1000),
    ours: USD(9800, 1000),
    isDifferent: false,
  },
  { name: 'fewer impressions', theirs: USD(10_000, 1000), ours: USD(9799, 1000), isDifferent: true },
  {
    name: 'more spend at the tolerance',
    theirs: USD(500, 123.45),
    ours: USD(500, 124.6845),
    isDifferent: false,
  },
  { name: 'more spend', theirs: USD(500, 123.45), ours: USD(500, 124.6846), isDifferent: true },
  { name: 'less spend at the tolerance', theirs: USD(500, 0.3), ours: USD(500, 0.297), isDifferent: false },
  { name: 'less spend', theirs: USD(500, 0.3), ours: USD(500, 0.2969), isDifferent: true },
  { name: 'nothing on both sides', theirs: USD(0, 0), ours: USD(0, 0), isDifferent: false },
  { name: 'nothing there', theirs: USD(0, 0), ours: USD(1, 0), isDifferent: true },
  { name: 'nothing here', theirs: USD(1, 0.01), ours: USD(0, 0.01), isDifferent: true },
  {
    name: 'another currency',
    theirs: USD(10_000, 1000),
    ours: { impressions: 10_000, spend: 1000, currency: 'EUR' },
    isDifferent: true,
  },
  {
    name: 'impressions that nobody measured',
    theirs: { spend: 1000, currency: 'USD' },
    ours: USD(10_000, 1009.99),
    isDifferent: false,
  },
];

/** The words of states that sellers' plans close. */
export const wordOfEnd = ({ isRound }: Seller): string => (isRound ? 'active' : 'resolved');

/** Its webhooks name their media buy; those of others name the operation that bought it alone. */
export const isNamed = ({ id }: Impairment): boolean => !id.endsWith('0');

/** What is so at an instant. */
export const stepAt = ({ steps }: Impairment, at: number): Step | undefined =>
  steps.findLast((one) => one.at <= at);

/** Whether a media buy has come to its end. */
export const isEnded = ({ end }: Life, at: number): boolean => end.at <= at;
