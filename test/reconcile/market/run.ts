import type { Outcome } from '../../../src/index.ts';
import type { Account, Reconciler, ReconcilerOptions } from '../../../src/reconcile/index.ts';
import type { CallSeller } from '../../../src/registrations/index.ts';
import type { Store } from '../../../src/stores/index.ts';
import type { TestReceiver } from '../../receiver/setup.ts';
import { type VirtualClock, virtualClock } from '../../support/virtual-clock.ts';
import { buyerOf, started } from './fleet.ts';
import { agentOf, type Buy } from './plan.ts';
import { answerDelivery, answerMediaBuys } from './seller.ts';
import { agendaOf, orderOf, type Posted, scheduleOf, sellerKeys, type Sending } from './traffic.ts';
import { createTruth, type Truth } from './truth.ts';

/*
 * A market under one virtual clock: sellers send what their plan says, the buyer's receiver and reconciler do what they do, and after
 * each day the account is compared with what the sellers know.
 */

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

export interface MarketOptions {
  readonly buys: readonly Buy[];
  readonly store: Store;
  readonly mode: 'inline' | 'inbox';
  /** Unix ms. */
  readonly begin: number;
  readonly end: number;
  /** Between two comparisons. */
  readonly stepMs?: number;
  /** The longest wait between two looks of the reconciler. */
  readonly lookMs?: number;
  /** A buyer that is wrong: what it reads as the account. */
  readonly account?: (real: Reconciler, truth: Truth) => Promise<readonly Account[]>;
  /** What it says of the zone. */
  readonly timeZone?: (buy: Buy) => string;
}

/** What a market came to. */
export interface Played {
  /** Sentences about what was wrong, some of them. */
  readonly wrong: readonly string[];
  readonly windows: number;
  readonly byWebhook: number;
  readonly byPull: number;
  readonly repeated: number;
  readonly pulls: number;
  readonly asks: number;
  readonly compared: number;
}

export async function play(options: MarketOptions): Promise<Played> {
  const { buys, begin, end, stepMs = DAY } = options;
  const clock = virtualClock(begin);
  const truth = createTruth(buys);
  const keys = await sellerKeys(buys);
  const byId = new Map(buys.map((buy) => [buy.id, buy]));
  const questions = { pulls: 0, asks: 0 };
  const call: CallSeller = async (agentUrl, operation, args) => {
    const ids = (args['media_buy_ids'] ?? []) as readonly string[];
    const asked = ids.flatMap((id) => byId.get(id) ?? []);
    const [buy] = asked;
    if (!buy || agentOf(buy) !== agentUrl) throw new Error(`a question for nobody's buy: ${operation}`);
    if (operation === 'get_media_buys') {
      questions.asks += 1;
      return answerMediaBuys(asked, Date.now());
    }
    questions.pulls += 1;
    truth.asked(buy, Date.now());
    return answerDelivery(buy, args, Date.now());
  };
  const schedule: ReconcilerOptions['schedule'] = ({ mediaBuyId }) => {
    const buy = byId.get(mediaBuyId);
    if (!buy) return undefined;
    return {
      ...scheduleOf(buy),
      ...(options.timeZone && { timeZone: options.timeZone(buy) }),
    };
  };
  const buyer = await buyerOf({
    store: options.store,
    clock,
    call,
    mode: options.mode,
    keys,
    handle: (event) => truth.handle(event, Date.now()),
    alarmed: (alarm) => {
      if (alarm.code === 'dead') truth.died(String(alarm['key']));
      truth.alarmed(alarm);
    },
    // What impairs media buys is another market's: live.ts.
    reconcile: { schedule, snapshotMs: DAY },
    lookMs: options.lookMs ?? 10 * MINUTE,
  });
  const { receiver, registrations, reconciler } = buyer;
  await started(buyer);
  for (const buy of buys) {
    const made = await registrations.create({ agentUrl: agentOf(buy), ...orderOf(buy) });
    await made.settle({ media_buy_id: buy.id, status: 'completed', packages: [] });
  }
  const post: Sending['post'] = async (buy, body) =>
    postedOf(await receiver.deliver(body, { key: keys.get(agentOf(buy))?.privateJwk ?? {} }));
  const agenda = agendaOf(buys, {
    truth,
    post,
    update: async (buy, update) => {
      const made = await registrations.create({ agentUrl: agentOf(buy), ...update });
      await made.settle({ status: 'submitted', task_id: `update-${buy.id}` });
      return made.operationId;
    },
  });
  let compared = 0;
  const compare = async (): Promise<void> => {
    let found: readonly string[] = [];
    // What takes time of this machine and none of the clock may be under way.
    for (let tries = 0; tries < 20; tries += 1) {
      await quiet(clock, receiver);
      const accounts = await (options.account?.(reconciler, truth) ?? pagesOf(reconciler));
      found = truth.compare(accounts, Date.now());
      if (found.length === 0) break;
      await realWait();
    }
    truth.keep(found);
    compared += 1;
  };
  for (let at = begin + stepMs + 37 * MINUTE; at < end; at += stepMs) agenda.add({ at, run: compare });
  try {
    for (let action = agenda.next(); action && action.at < end; action = agenda.next()) {
      const wait = action.at - begin - clock.now();
      if (wait > 0) await clock.pass(wait);
      await action.run();
    }
    await clock.pass(Math.max(0, end - begin - clock.now()));
    await compare();
    truth.atEnd();
    truth.alarmsAtEnd(Date.now());
  } finally {
    await reconciler.stop();
    await receiver.receiver.stop();
    clock.end();
  }
  return { wrong: truth.wrong, ...truth.figures(), ...questions, compared };
}

export async function pagesOf(reconciler: Reconciler): Promise<readonly Account[]> {
  const pages: Account[] = [];
  let after: string | undefined;
  do {
    const page = await reconciler.account({ limit: 20, ...(after !== undefined && { after }) });
    pages.push(page);
    after = page.next;
  } while (after !== undefined);
  return pages;
}

const realWait = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 2);
  });

/** An event is stored where it is safe, and where its handler has failed. */
export function postedOf({ kind, code, response: { status } }: Outcome): Posted {
  const isStored = (status >= 200 && status < 300) || code === 'handler_failed' || code === 'in_flight';
  return { status, isStored, code: `${kind} ${code ?? ''} ${status}` };
}

/** Lets workers run what is acknowledged, back-offs included. */
export async function quiet(clock: VirtualClock, { receiver }: TestReceiver): Promise<void> {
  for (let turn = 0; turn < 400; turn += 1) {
    // A process that is slow may have lost a lease: what that puts off waits for minutes.
    await clock.pass(turn < 200 ? 50 : 30_000);
    const queued = await receiver.inbox.list({ state: 'queued', limit: 1000 });
    const leased = await receiver.inbox.list({ state: 'leased', limit: 1000 });
    if (![...queued.records, ...leased.records].some(({ acked }) => acked)) return;
    await realWait();
  }
  throw new Error('the workers do not end');
}
