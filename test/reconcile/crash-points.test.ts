import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { loadOnDemand } from '../../src/for-tests.ts';
import { signDelivery, type SignedDelivery } from '../../src/sender/sign.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { sellerKey, URL_GIVEN } from '../receiver/setup.ts';
import { inThisForm, LONG } from '../reliability/form.ts';
import { BACKENDS } from '../reliability/processes/backends.ts';
import { OWN } from '../reliability/processes/build.ts';
import { type Kind, openStore } from '../reliability/processes/stores.ts';
import {
  type Buyer,
  buyerOn,
  DAY,
  type Ground,
  type Process,
  type ProcessOptions,
  untilHad,
  untilStands,
} from './crash/points.ts';
import type { BuyStream } from '../../src/registrations/for-tests.ts';
import { reportBody } from './kit.ts';
import { marksBeside } from './market/controls.ts';

const GROUNDS: readonly (readonly [string, () => Promise<Ground>])[] = [
  ['memory', async () => inMemory()],
  ...(Object.keys(BACKENDS) as Kind[]).map((kind) => [kind, () => onServer(kind)] as const),
];

function inMemory(): Ground {
  const state = createMemoryState();
  const open: Ground['open'] = (clockOffsetMs) => {
    const { inbox, ...store } = memoryStore({ state, clockOffsetMs });
    if (!inbox) throw new Error('a store without an inbox');
    return { store: { ...store, inbox }, end: async () => undefined };
  };
  return { open, remove: async () => undefined };
}

async function onServer(kind: Kind): Promise<Ground> {
  const { place, remove } = await BACKENDS[kind](inject('shared'));
  return { open: (clockOffsetMs) => openStore(place, OWN, { clockOffsetMs }), remove };
}

async function reportOf(mediaBuyId: string): Promise<SignedDelivery> {
  const { privateJwk } = await sellerKey();
  const body = reportBody(DAY, { key: `report-of-${mediaBuyId}`, mediaBuyId });
  return signDelivery({ url: URL_GIVEN, key: privateJwk, body });
}

/** What a process does, until it has done it or has died. */
type Play = (mortal: Process, mediaBuyId: string) => Promise<void>;

interface Sweep {
  /** Before it begins, in a process that lives. */
  readonly before?: (buyer: Buyer, mediaBuyId: string) => Promise<void>;
  readonly play: Play;
  /** The seller's, after the death. */
  readonly retries?: boolean;
  readonly options?: ProcessOptions;
  /** See `untilHad`: with a mistake the end may never come. */
  readonly most?: number;
}

let sweeps = 0;

/**
 * Plays with a process that dies at its first point, at its second one, and so on, until one lives. Behind each another process begins:
 * then the window is had, missing or about to be handled, and in the end it is had, by one event that does not say that it repeats.
 * @returns the points, and what was wrong where.
 */
async function sweep(
  buyer: Buyer,
  { before, play, retries = false, options = {}, most = 12_000 }: Sweep,
): Promise<{ readonly points: readonly string[]; readonly wrong: readonly string[] }> {
  sweeps += 1;
  const wrong: string[] = [];
  for (let diesAt = 0; ; diesAt += 1) {
    const id = `buy-${sweeps}-${diesAt}`;
    await buyer.buy(id);
    await before?.(buyer, id);
    const mortal = await buyer.start({ ...options, diesAt });
    await Promise.race([play(mortal, id), mortal.life.died]);
    await mortal.end();
    const { passed } = mortal.life;
    const where = `${diesAt}, ${passed.at(-1) ?? ''}`;
    buyer.leasesPass();
    const heir = await buyer.start();
    const stand = await heir.account(id);
    const isNamed = stand.had + stand.missing + (stand.had === 0 && stand.open > 0 ? 1 : 0) === 1;
    if (!isNamed || stand.held > 0) wrong.push(`${where}: ${JSON.stringify(stand)}`);
    if (retries) await heir.tell(await reportOf(id));
    await heir.receiver.start();
    await heir.reconciler.start();
    const end = await untilHad(heir, id, most);
    await heir.end();
    const handled = buyer.handled(id);
    const firsts = new Set(handled.filter(({ isRepeated }) => !isRepeated).map(({ key }) => key));
    const isOnce = firsts.size === 1 && end.had === 1 && end.missing === 0 && end.held === 0;
    if (!isOnce) wrong.push(`${where}: ${JSON.stringify({ end, handled })}`);
    // A pull whose answer was lost is asked for again.
    if (buyer.asked(id) > 2) wrong.push(`${where}: asked ${buyer.asked(id)} times`);
    if (!mortal.life.isOver()) return { points: passed, wrong };
  }
}

const around = (...calls: readonly string[]): readonly string[] =>
  calls.flatMap((call) => [`before ${call}`, `after ${call}`]);

/** A reconciler at work in a process without a worker, until it has done these things in this order. */
const reconciling =
  (...names: readonly string[]): Play =>
  async ({ reconciler, life }) => {
    await reconciler.start();
    for (const name of names) await life.reached(new RegExp(`^after ${name}$`));
  };

const ASKING = around('due', 'run', 'get_media_buys', 'run', 'due', 'run');
const PULLING = around('get_media_buy_delivery', 'accept', 'run', 'due', 'run');

/** In a process that lives. */
const inOne =
  (play: Play, options: ProcessOptions = {}): Required<Sweep>['before'] =>
  async (buyer, id) => {
    const one = await buyer.start(options);
    await play(one, id);
    await one.end();
  };

const pulls = reconciling('get_media_buy_delivery', 'accept', 'run', 'due', 'run');
const tells: Play = async ({ tell }, id) => tell(await reportOf(id));
const works: Play = async ({ receiver, life }) => {
  const done = life.reached(/^after complete$/);
  await receiver.start();
  await done;
};

const TOLD = [...around('accept', 'run', 'the effect', 'complete'), 'before the reply'];

/** A process's work, and its points; behind them a worker looks for more. */
const SWEEPS: readonly (readonly [is: string, of: Sweep, points: readonly string[]])[] = [
  ['a report comes, whose seller gives up', { play: tells }, TOLD],
  ['a window is pulled: look, question, answer, event, account', { play: pulls }, [...ASKING, ...PULLING]],
  ['a report comes, whose seller tries again', { play: tells, retries: true }, TOLD],
  [
    'a worker runs what was pulled',
    { before: inOne(pulls), play: works },
    around('lease', 'run', 'the effect', 'complete'),
  ],
  [
    'a report is made safe whose handler failed, and whose seller gave up',
    { before: inOne(tells, { fails: true }), play: reconciling('get_media_buys', 'due', 'run') },
    ASKING,
  ],
];

/** A media buy that has ended, and whose window is had. */
const ENDED = (): Partial<BuyStream> => {
  const end = Date.parse(DAY.end);
  const number = end / 86_400_000 - 1;
  return {
    had: [{ stage: '', windows: { daily: [number, number + 1] } }],
    counts: { byWebhook: 1, byPull: 0, repeated: 0 },
    status: 'completed',
    endedAt: end,
    askedAt: end,
  };
};

const CLOSING = around('due', 'run', 'ours', 'get_media_buy_delivery', 'run', 'due', 'run');

/** As `sweep`, of a media buy that is closed: what its seller is asked and its owner is told. */
async function closings(
  buyer: Buyer,
): Promise<{ readonly points: readonly string[]; readonly wrong: readonly string[] }> {
  const wrong: string[] = [];
  for (let diesAt = 0; ; diesAt += 1) {
    const id = `ended-${diesAt}`;
    await buyer.buy(id, ENDED());
    const ours = (life: () => Process['life']) => async () => {
      await life().point('before ours');
      await life().point('after ours');
      return { impressions: 9, spend: 2 };
    };
    const mortal: Process = await buyer.start({ diesAt, ours: ours(() => mortal.life) });
    const isClosed = async (): Promise<void> => {
      await mortal.reconciler.start();
      for (const name of ['ours', 'run', 'due', 'run'])
        await mortal.life.reached(new RegExp(`^after ${name}$`));
    };
    await Promise.race([isClosed(), mortal.life.died]);
    await mortal.end();
    const where = `${diesAt}, ${mortal.life.passed.at(-1) ?? ''}`;
    buyer.leasesPass();
    const heir: Process = await buyer.start({ ours: ours(() => heir.life) });
    const known = await heir.account(id);
    await heir.reconciler.start();
    const end = await untilStands(heir, id, ({ closedAt }) => closedAt !== undefined, 2_000);
    await heir.end();
    const { closedAt = '', totals, final } = end;
    if (final !== 'absent' || !totals || !('differs' in totals) || !totals.differs)
      wrong.push(`${where}: ${JSON.stringify(end)}`);
    if (known.closedAt !== undefined && known.closedAt !== closedAt) wrong.push(`${where}: closed twice`);
    // Of a process that dies behind its step nobody is told: the account says it.
    const told = buyer.alarms(id);
    if (told.length > new Set(told).size) wrong.push(`${where}: ${told.join()}`);
    if (buyer.asked(id) > 2) wrong.push(`${where}: asked ${buyer.asked(id)} times`);
    if (!mortal.life.isOver()) return { points: mortal.life.passed, wrong };
  }
}

/** All of them in memory and on Redis; the first two on the stores whose processes take longest to begin, and in the long form all. */
const sweepsOn = (name: string): typeof SWEEPS =>
  LONG || name === 'memory' || name === 'Redis' ? SWEEPS : SWEEPS.slice(0, 2);

describe.each(inThisForm(GROUNDS, ([name]) => name === 'memory'))(
  '%s: a process dies at every step, and a window is had once',
  (name, newGround) => {
    let ground: Ground;
    let buyer: Buyer;
    beforeAll(async () => {
      await loadOnDemand();
      ground = await newGround();
      buyer = buyerOn(ground);
    });
    afterAll(async () => {
      await buyer.end();
      await ground.remove();
    });

    it.each(sweepsOn(name))('while %s', async (_is, of, expected) => {
      const { points, wrong } = await sweep(buyer, of);
      expect(wrong).toEqual([]);
      expect(points.slice(0, expected.length)).toEqual(expected);
    });

    it.runIf(LONG || name === 'memory')(
      'while a media buy is closed, and its totals are compared',
      async () => {
        const { points, wrong } = await closings(buyer);
        expect(wrong).toEqual([]);
        expect(points.slice(0, CLOSING.length)).toEqual(CLOSING);
      },
    );
  },
);

it.each(inThisForm([marksBeside], () => true))(
  'a store that marks windows in a step behind the completion is found, where its process dies between the two',
  async (marks) => {
    await loadOnDemand();
    const breaks: ProcessOptions['breaks'] = (store) => marks(store, () => false);
    const { wrong } = await sweep(buyerOn(inMemory()), { play: tells, options: { breaks }, most: 20 });
    expect(wrong.map((one) => /^\d+, ([^:]*)/.exec(one)?.[1])).toEqual(['after run', 'before run']);
  },
);
