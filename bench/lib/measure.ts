/** A measured figure: the median of the repetitions with their extremes; ratios have no unit. */
export interface Figure {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** A figure that has something to reach. */
export interface Targeted extends Figure {
  readonly target: string;
  readonly met: boolean;
}

export interface Contestant {
  readonly name: string;
  /**
   * Runs `count` operations; resolves when all are done. What it prepares in `setUp` is not counted.
   * @param round of the repetition, from 0; the first ones warm up and are not counted.
   */
  readonly run: (count: number, round: number) => void | Promise<void>;
  /** Before each repetition. */
  readonly setUp?: (count: number) => void | Promise<void>;
  readonly tearDown?: () => void | Promise<void>;
  /** After the last one. */
  readonly close?: () => void | Promise<void>;
}

export interface Plan {
  /** Operations a repetition. */
  readonly count: number;
  readonly repetitions: number;
  /** Repetitions before those that count. */
  readonly warmUps: number;
}

/** What a section returns: figures by their names. */
export type Figures = Readonly<Record<string, Figure | Targeted>>;

/** `npm run bench -- --quick`: shows that the benchmarks run; its figures mean nothing. */
export const QUICK: boolean = process.env['BENCH_QUICK'] === '1';

export function plan(count: number, repetitions = 9, warmUps = 1): Plan {
  return QUICK
    ? { count: Math.ceil(count / 20), repetitions: 2, warmUps: 1 }
    : { count, repetitions, warmUps };
}

/** V8 optimises what a delivery runs for the last time some 10,000 deliveries after the first. */
export const IN_SERVICE = 4;

export function figure(values: readonly number[]): Figure {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const low = sorted[Math.ceil(middle) - 1] ?? Number.NaN;
  const high = sorted[Math.floor(middle)] ?? Number.NaN;
  return { median: (low + high) / 2, min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN };
}

export function atMost(value: Figure, limit: number): Targeted {
  return { ...value, target: `≤ ${limit}`, met: value.median <= limit };
}

export function atLeast(value: Figure, limit: number): Targeted {
  return { ...value, target: `≥ ${limit}`, met: value.median >= limit };
}

/** A clock in µs. */
export type Clock = () => number;

export const wallClock: Clock = () => Number(process.hrtime.bigint()) / 1000;

/** Processor time of all threads of this process: garbage collection and compilation beside the main thread too. */
export const processorClock: Clock = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

/**
 * For sections that run on one thread and wait for nothing. With `--cpu` it counts the processor's time and not the
 * clock's: ratios then hold on a busy machine too.
 */
export const ownClock: Clock = process.env['BENCH_CPU'] === '1' ? processorClock : wallClock;

/** How many operations a contestant needs that has new ones in every repetition, those that warm up too. */
export function operations({ count, repetitions, warmUps }: Plan): number {
  return count * (repetitions + warmUps);
}

/**
 * µs an operation of one repetition. Nothing is collected by force: a full collection takes optimised code with it
 * where the objects that it was made for are gone, and no process in service does so.
 */
async function once(
  { run, setUp, tearDown }: Contestant,
  { count, round, clock }: { readonly count: number; readonly round: number; readonly clock: Clock },
): Promise<number> {
  await setUp?.(count);
  const start = clock();
  await run(count, round);
  const spent = clock() - start;
  await tearDown?.();
  return spent / count;
}

/** Times by contestant, repetition by repetition. */
export type Times = ReadonlyMap<string, readonly number[]>;

/**
 * Repetitions that alternate the contestants, each time in another order, so that what slows the machine down for a
 * while slows all of them.
 */
export async function alternate(
  contestants: readonly Contestant[],
  plan: Plan,
  clock: Clock = wallClock,
): Promise<Times> {
  const times = new Map<string, number[]>(contestants.map(({ name }) => [name, []]));
  const { count, repetitions, warmUps } = plan;
  for (let round = 0; round < warmUps + repetitions; round += 1) {
    const first = round % contestants.length;
    const order = [...contestants.slice(first), ...contestants.slice(0, first)];
    for (const contestant of order) {
      const spent = await once(contestant, { count, round, clock });
      if (round >= warmUps) times.get(contestant.name)?.push(spent);
    }
  }
  for (const { close } of contestants) await close?.();
  return times;
}

/** Time of one over time of the other, repetition by repetition. */
export function ratio(times: Times, of: string, to: string): Figure {
  const above = times.get(of) ?? [];
  const below = times.get(to) ?? [];
  return figure(above.map((value, at) => value / (below[at] ?? Number.NaN)));
}

/** µs an operation. */
export function micros(times: Times, of: string): Figure {
  return figure(times.get(of) ?? []);
}

/** Operations a second. */
export function rate(times: Times, of: string): Figure {
  return figure((times.get(of) ?? []).map((each) => 1_000_000 / each));
}

/** Runs `count` operations, at most `width` of them at once. */
export async function concurrently(
  count: number,
  width: number,
  run: (at: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      await run(next - 1);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, lane));
}
