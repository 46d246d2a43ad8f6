/**
 * Waits until it is let go.
 * @param what as a failure tells it.
 * @param by whose step it is, where it changes nothing that others see: two such steps of two of them come to the same in both
 * orders, and one of the two is played.
 */
export type Pass = (what: string, by?: number) => Promise<void>;

/** What is played, the same each time but for the order. */
export interface Played<World> {
  readonly prepare: () => Promise<World>;
  /** Waits for nothing else but what is over in a turn of the event loop. */
  readonly play: (world: World, pass: Pass) => Promise<void>;
  /** Throws where what came of an order is wrong. */
  readonly judge: (world: World, order: readonly string[]) => Promise<void>;
}

interface Waiting {
  readonly what: string;
  readonly by: number | undefined;
  /** So many were let go before. */
  readonly since: number;
  readonly go: () => void;
}

/** What was let go, of so many that could be. */
interface Choice extends Waiting {
  readonly at: number;
  readonly of: number;
}

/**
 * Plays it once for each order in which what waits can be let go, one at a time.
 * @returns how many orders there are.
 */
export async function everyOrder<World>({ prepare, play, judge }: Played<World>): Promise<number> {
  let orders = 0;
  for (let next: readonly number[] | undefined = []; next;) {
    const world = await prepare();
    const { made, isWhole } = await playOnce((pass) => play(world, pass), next);
    if (isWhole) {
      const order = made.map(({ what }) => what);
      await judge(world, order);
      orders += 1;
    }
    next = nextOf(made);
  }
  return orders;
}

/** `isWhole`: else it comes to the same as another order. */
async function playOnce(
  play: (pass: Pass) => Promise<void>,
  choices: readonly number[],
): Promise<{ readonly made: readonly Choice[]; readonly isWhole: boolean }> {
  const waiting = new Set<Waiting>();
  const made: Choice[] = [];
  let isOver = false;
  const playing = play(
    (what, by) => new Promise((go) => void waiting.add({ what, by, since: made.length, go })),
  ).finally(() => {
    isOver = true;
  });
  // Awaited below, when all is quiet.
  playing.catch(() => {});
  for (;;) {
    await allQuiet();
    if (isOver) {
      await playing;
      return { made, isWhole: true };
    }
    if (waiting.size === 0) {
      throw new Error(`Nothing goes on after: ${made.map(({ what }) => what).join('; ')}`);
    }
    const last = made.at(-1);
    const open = [...waiting].filter((one) => !last || !comesFirst(one, last, made.length));
    const at = choices[made.length] ?? 0;
    const one = open[at];
    if (!one) return { made, isWhole: false };
    waiting.delete(one);
    made.push({ ...one, at, of: open.length });
    one.go();
  }
}

/** It could have been let go before the last one, which would come to the same. */
function comesFirst(one: Waiting, last: Waiting, step: number): boolean {
  return one.by !== undefined && last.by !== undefined && one.by < last.by && one.since < step;
}

/** The last choice that can be another one is the next one. */
function nextOf(made: readonly Choice[]): readonly number[] | undefined {
  const last = made.findLastIndex(({ at, of }) => at + 1 < of);
  if (last < 0) return undefined;
  return made.slice(0, last + 1).map(({ at }, step) => (step === last ? at + 1 : at));
}

/** A call that is made in one turn is planned in the next one. */
const TURNS = 3;

async function allQuiet(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
