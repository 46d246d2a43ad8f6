import { vi } from 'vitest';
import type { Account, ReconcilerOptions } from '../../../src/reconcile/index.ts';
import type { CallSeller, JsonObject } from '../../../src/registrations/index.ts';
import type { Store } from '../../../src/stores/index.ts';
import { randomOf } from '../../reliability/processes/random.ts';
import { virtualClock } from '../../support/virtual-clock.ts';
import { type Buyer, buyerOf, type BuyerOptions, fleetOf } from './fleet.ts';
import {
  answerCapabilities,
  answerDeliveryOf,
  answerLives,
  answerTasks,
  isForTotals,
  openTaskOf,
  OPERATIONS,
} from './life-seller.ts';
import { lifeActions } from './life-traffic.ts';
import { createLifeTruth, type LifeFigures, type LifeTruth } from './life-truth.ts';
import { DAY, HOUR, type Life, MINUTE } from './lives.ts';
import { agentOf } from './plan.ts';
import { pagesOf, postedOf, quiet } from './run.ts';
import { agendaOf, orderOf, type Posted, scheduleOf, sellerKeys } from './traffic.ts';
import { createTruth, type Truth } from './truth.ts';
import type { Span } from './zones.ts';

/*
 * A market of media buys that are impaired and end. The buyer is several processes on one store, which are killed; in the dark none
 * of them lives. After each day what its handlers keep, its account and its alarms are compared with what the sellers know.
 */

export interface LiveOptions {
  readonly lives: readonly Life[];
  /** A handle on the store. @param generation another one is another store, and empty. */
  readonly open: (generation: number) => Store;
  readonly mode: 'inline' | 'inbox';
  /** Unix ms. */
  readonly begin: number;
  readonly end: number;
  readonly seed: number;
  readonly processes: number;
  /** A day. */
  readonly kills: number;
  readonly dark: readonly Span[];
  /** Between two comparisons. Default: a day. */
  readonly stepMs?: number;
  /** The store is lost then, in the dark. */
  readonly lostAt?: number;
  /** Buyers that are wrong. */
  readonly wrongly?: {
    readonly reconcile?: Partial<ReconcilerOptions>;
    readonly buyer?: (options: Omit<BuyerOptions, 'life'>) => Omit<BuyerOptions, 'life'>;
    /** What it reads as the account. */
    readonly account?: (real: readonly Account[]) => readonly Account[] | Promise<readonly Account[]>;
  };
}

export interface Lived extends LifeFigures {
  readonly wrong: readonly string[];
  readonly buys: number;
  readonly windows: number;
  readonly byWebhook: number;
  readonly byPull: number;
  readonly kills: number;
  readonly compared: number;
}

const SNAPSHOT_MS = 15 * MINUTE;
const LOOK_MS = 10 * MINUTE;

/** Nobody is there to take it. */
const NOBODY: Posted = { status: 0, isStored: false, code: 'gone' };
/** Its process has died at it. */
const DIED: Posted = { status: 0, isStored: undefined, code: 'gone' };

export async function live(options: LiveOptions): Promise<Lived> {
  const { lives, begin, end, seed, dark, processes, lostAt, wrongly = {} } = options;
  const buys = lives.map(({ buy }) => buy);
  const random = randomOf(seed);
  const clock = virtualClock(begin);
  const keys = await sellerKeys(buys);
  const byId = new Map(lives.map((life) => [life.buy.id, life]));
  const longest = Math.max(0, ...dark.map((one) => one.end - one.start));
  const windows = createTruth(buys, longest + 2 * HOUR);
  const truth = createLifeTruth({ lives, begin, snapshotMs: SNAPSHOT_MS, lookMs: LOOK_MS });
  let generation = 0;
  const reconcile: Partial<ReconcilerOptions> = {
    schedule: ({ mediaBuyId }) => {
      const life = byId.get(mediaBuyId);
      return life && scheduleOf(life.buy);
    },
    ours: async ({ mediaBuyId }) => byId.get(mediaBuyId)?.totals.ours,
    ...wrongly.reconcile,
  };
  const buyerOptions = (): Omit<BuyerOptions, 'life'> => {
    const honest: Omit<BuyerOptions, 'life'> = {
      store: options.open(generation),
      clock,
      call: sellersOf(lives, windows, truth),
      mode: options.mode,
      keys,
      handle: (event) => {
        if (!truth.handle(event, Date.now())) windows.handle(event, Date.now());
      },
      alarmed: (alarm) => {
        if (alarm.code === 'dead') windows.died(String(alarm['key']));
        truth.alarmed(alarm, Date.now());
      },
      reconcile,
      lookMs: LOOK_MS,
    };
    return wrongly.buyer?.(honest) ?? honest;
  };
  const fleet = fleetOf(buyerOptions, random);
  // It registers and looks on, and does nothing by itself.
  let observer = await observerOf(buyerOptions());
  const operations = new Map<string, string>();
  for (const { buy } of lives) {
    const made = await observer.registrations.create({ agentUrl: agentOf(buy), ...orderOf(buy) });
    await made.settle({ media_buy_id: buy.id, status: 'completed', packages: [] });
    operations.set(buy.id, made.operationId);
  }
  const beginAll = async (): Promise<void> => {
    for (let count = 0; count < processes; count += 1) await fleet.begin();
  };
  // A change of each seller's that it takes its time for: it is known by its list of tasks alone, when the store is lost.
  for (const seller of new Set(lives.map((life) => life.seller))) {
    const of = lives.find((life) => life.seller === seller && life.buy.account === undefined);
    if (!of) continue;
    const made = await observer.registrations.create({
      agentUrl: agentOf(of.buy),
      taskType: 'update_media_buy',
      arguments: { media_buy_id: of.buy.id },
    });
    await made.settle({ status: 'submitted', task_id: openTaskOf(seller) });
  }
  await beginAll();

  const postTo = async (agentUrl: string, body: Record<string, unknown>): Promise<Posted> => {
    if (dark.some((one) => one.start <= Date.now() && Date.now() < one.end)) return NOBODY;
    const outcome = await fleet.ask(({ receiver }) =>
      receiver.deliver(body, { key: keys.get(agentUrl)?.privateJwk ?? {} }),
    );
    if (!outcome) return DIED;
    const posted = postedOf(outcome);
    // A fault of the store, or a lease of a process that died: nobody knows, and the seller tries again.
    return posted.status === 503 ? { ...posted, isStored: undefined } : posted;
  };
  const agenda = agendaOf(buys, {
    truth: {
      ...windows,
      delivered: (report, of) => {
        windows.delivered(report, of);
        truth.delivered(report.key, of);
      },
    },
    post: (buy, body) => postTo(agentOf(buy), body),
    update: () => Promise.reject(new Error('nothing is changed here')),
  });
  for (const life of lives) {
    const actions = lifeActions(life, {
      post: ({ buy }, body) => postTo(agentOf(buy), body),
      delivered: truth.delivered,
      operationOf: ({ buy }) => operations.get(buy.id) ?? '',
      schedule: agenda.add,
    });
    actions.forEach(agenda.add);
  }
  for (const span of dark) {
    truth.disturbed(span, 'dark');
    agenda.add({ at: span.start, run: async () => fleet.killAll() });
    agenda.add({
      at: span.end,
      run: async () => {
        if (lostAt !== undefined && span.start <= lostAt && lostAt < span.end) await rebuild();
        await beginAll();
      },
    });
  }
  const isDark = (at: number): boolean => dark.some((one) => one.start - HOUR <= at && at < one.end);
  for (let left = Math.round((options.kills * (end - begin)) / DAY); left > 0; left -= 1) {
    const at = begin + random.below(end - begin - HOUR);
    if (isDark(at)) continue;
    truth.disturbed({ start: at - MINUTE, end: at + 30 * MINUTE }, 'kill');
    agenda.add({ at, run: async () => fleet.kill() });
    agenda.add({ at: at + 1 + random.below(20 * MINUTE), run: () => fleet.begin() });
  }
  const rebuild = async (): Promise<void> => {
    generation += 1;
    observer = await observerOf(buyerOptions());
    const known = await adoptAll(observer, lives, truth);
    windows.rebuilt(new Set(known.map(({ buy }) => buy.id)), Date.now());
    truth.rebuilt(new Set(known), Date.now());
  };
  let compared = 0;
  const compare = async (): Promise<void> => {
    let found: Readonly<Record<'windows' | 'lives', readonly string[]>> = { windows: [], lives: [] };
    // A buyer that is wrong stays so.
    for (let tries = options.wrongly ? 18 : 0; tries < 20; tries += 1) {
      await quiet(clock, observer.receiver);
      for (const is of [windows, truth]) {
        for (const [key, settle] of is.unsure) {
          settle((await observer.receiver.receiver.inbox.inspect(is.agentOf(key), key)) !== undefined);
        }
      }
      const real = await pagesOf(observer.reconciler);
      const accounts = (await wrongly.account?.(real)) ?? real;
      found = {
        windows: windows.compare(accounts, Date.now()),
        lives: truth.compare(accounts, Date.now()),
      };
      if (found.windows.length + found.lives.length === 0) break;
      await realWait();
    }
    windows.keep(found.windows);
    truth.keep(found.lives);
    compared += 1;
  };
  const { stepMs = DAY } = options;
  for (let at = begin + stepMs; at < end; at += stepMs) {
    const night = dark.find((one) => one.start - HOUR <= at && at < one.end + 3 * HOUR);
    agenda.add({ at: night ? night.end + 3 * HOUR : at, run: compare });
  }
  try {
    for (let action = agenda.next(); action && action.at < end; action = agenda.next()) {
      const wait = action.at - begin - clock.now();
      if (wait > 0) await clock.pass(wait);
      await action.run();
    }
    await clock.pass(Math.max(0, end - begin - clock.now()));
    await compare();
    windows.atEnd();
    truth.atEnd(Date.now());
  } finally {
    await fleet.end();
    await observer.receiver.receiver.stop();
    clock.end();
    vi.useRealTimers();
  }
  return {
    wrong: [...windows.wrong, ...truth.wrong],
    buys: buys.length,
    ...windows.figures(),
    ...truth.figures(),
    kills: fleet.deaths(),
    compared,
  };
}

async function observerOf(options: Omit<BuyerOptions, 'life'>): Promise<Buyer> {
  const observer = await buyerOf(options);
  await observer.receiver.receiver.ready();
  return observer;
}

/** What all sellers answer. */
function sellersOf(lives: readonly Life[], windows: Truth, truth: LifeTruth): CallSeller {
  const byAgent = new Map<string, Life[]>();
  for (const life of lives) {
    const agent = agentOf(life.buy);
    byAgent.set(agent, [...(byAgent.get(agent) ?? []), life]);
  }
  const call = async (agentUrl: string, operation: string, args: JsonObject): Promise<unknown> => {
    const own = byAgent.get(agentUrl) ?? [];
    const [first] = own;
    const now = Date.now();
    if (!first) throw new Error(`nobody has ${agentUrl}`);
    if (operation === 'get_adcp_capabilities') return answerCapabilities(first.seller);
    if (operation === 'get_media_buys') {
      truth.asked(agentUrl, args, now);
      return answerLives(own, args, now);
    }
    if (operation === 'list_tasks') return answerTasks(first.seller, args);
    const [id] = (args['media_buy_ids'] ?? []) as readonly string[];
    const life = own.find(({ buy }) => buy.id === id);
    if (!life || operation !== 'get_media_buy_delivery')
      throw new Error(`a question for nobody: ${operation}`);
    if (!isForTotals(args)) windows.asked(life.buy, now);
    return answerDeliveryOf(life, args, now);
  };
  return Object.assign(call, { operations: async () => OPERATIONS });
}

/** What sellers say is running is taken over, of each account. @returns its media buys. */
async function adoptAll(
  { reconciler, registrations }: Buyer,
  lives: readonly Life[],
  truth: LifeTruth,
): Promise<readonly Life[]> {
  const found: Life[] = [];
  const accounts = new Map(lives.map(({ buy }) => [`${agentOf(buy)} ${buy.account}`, buy]));
  for (const buy of accounts.values()) {
    const agentUrl = agentOf(buy);
    const account = buy.account === undefined ? {} : { account: { account_id: buy.account } };
    const {
      mediaBuys,
      tasks = [],
      errors,
      next,
    } = await reconciler.discover({
      agentUrl,
      ...account,
    });
    const own = lives.filter((life) => agentOf(life.buy) === agentUrl && life.buy.account === buy.account);
    const known = own.filter((life) => mediaBuys.some(({ mediaBuyId }) => mediaBuyId === life.buy.id));
    truth.discovered(
      own,
      {
        mediaBuys: mediaBuys.map(({ mediaBuyId, usesOurUrl }) => ({ mediaBuyId, usesOurUrl })),
        tasks: tasks.map(({ taskId }) => taskId),
        isWhole: errors.length === 0 && next === undefined,
      },
      Date.now(),
    );
    for (const { buy: one } of known) {
      const adoption = mediaBuys.find(({ mediaBuyId }) => mediaBuyId === one.id)?.adoption;
      if (!adoption) continue;
      await registrations.adopt({
        ...adoption,
        ...(!one.isSilent && { reporting: { frequency: one.frequency } }),
      });
    }
    for (const { adoption } of tasks) await registrations.adopt(adoption);
    found.push(...known);
  }
  return found;
}

const realWait = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 2);
  });
