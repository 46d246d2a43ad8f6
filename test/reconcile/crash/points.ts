import { setTimeout as wait } from 'node:timers/promises';
import { type Alarm, createReceiver, type Receiver, type Store } from '../../../src/index.ts';
import type { DeliveryReportEvent, Event } from '../../../src/events/index.ts';
import type { Account, Reconciler, ReconcilerOptions, StreamAccount } from '../../../src/reconcile/index.ts';
import { reconcilerOf } from '../../../src/reconcile/for-tests.ts';
import type { BuyStream } from '../../../src/registrations/for-tests.ts';
import { type CallSeller, createRegistrations } from '../../../src/registrations/index.ts';
import type { SignedDelivery } from '../../../src/sender/sign.ts';
import { type Life, lifeUntil } from '../../reliability/crash-points-life.ts';
import type { OpenStore } from '../../reliability/processes/stores.ts';
import { AGENT, sellerKey, URL_GIVEN } from '../../receiver/setup.ts';
import type { RegistrationRow } from '../../../src/stores/index.ts';
import { streamText } from '../../../src/windows/for-tests.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';
import { streamOf } from '../kit.ts';

/*
 * A buyer whose processes die at one of the steps by which a report comes or is pulled: around each call of the store, each question
 * to the seller, and the handler's effect. What a call writes is one step of the store, so that nothing lies in between.
 */

/** A store's data, which outlive the processes that open it. */
export interface Ground {
  readonly open: (clockOffsetMs: () => number) => OpenStore;
  readonly remove: () => Promise<void>;
}

/** What a handler was given, and has done. */
interface Handled {
  readonly key: string;
  readonly mediaBuyId: string;
  readonly isRepeated: boolean;
}

export interface ProcessOptions {
  /** See `lifeUntil`. */
  readonly diesAt?: number;
  /** Its handlers throw before their effect. */
  readonly fails?: boolean;
  /** What its owner has booked for any media buy. */
  readonly ours?: NonNullable<ReconcilerOptions['ours']>;
  /** The kind of rows of which a look is a point; looks at others find none. */
  readonly looks?: 'stream' | 'snapshot';
  /** A store with a mistake in it. */
  readonly breaks?: (store: Store) => Store;
}

/** A receiver, a worker and a reconciler in a process of their own; the last two begin when they are started. */
export interface Process {
  readonly life: Life;
  readonly receiver: Receiver;
  readonly reconciler: Reconciler;
  /** Delivers, as far as the process lives. */
  readonly tell: (delivery: SignedDelivery) => Promise<void>;
  readonly account: (mediaBuyId: string) => Promise<Stand>;
  /** Stops, as an operator would have it, unless it is dead. */
  readonly end: () => Promise<void>;
}

/** How the one window of a media buy stands. */
export interface Stand {
  readonly had: number;
  readonly missing: number;
  readonly held: number;
  /** Records that may still be handled. */
  readonly open: number;
  readonly closedAt?: string;
  readonly totals?: StreamAccount['totals'];
  readonly final?: StreamAccount['final'];
}

/** Processes of one buyer on one store, and what their seller and handlers have seen. */
export interface Buyer {
  /** A media buy is registered that reports daily, for one day that is over. @param more of its stream. */
  readonly buy: (mediaBuyId: string, more?: Partial<BuyStream>) => Promise<void>;
  readonly start: (options?: ProcessOptions) => Promise<Process>;
  /** Longer than any lease, place or wait of a process that died. */
  readonly leasesPass: () => void;
  readonly handled: (mediaBuyId: string) => readonly Handled[];
  /** How often the seller was asked for delivery. */
  readonly asked: (mediaBuyId: string) => number;
  /** Alarms about it. */
  readonly alarms: (mediaBuyId: string) => readonly string[];
  readonly end: () => Promise<void>;
}

const DAY_MS = 86_400_000;
const PASSES_MS = 120_000;

/** The day that is owed. */
export const DAY: { readonly start: string; readonly end: string } = (() => {
  const today = Math.floor(Date.now() / DAY_MS);
  const at = (day: number): string => new Date(day * DAY_MS).toISOString();
  return { start: at(today - 3), end: at(today - 2) };
})();

export function buyerOn(ground: Ground): Buyer {
  const handled: Handled[] = [];
  const asked: string[] = [];
  const alarms: Alarm[] = [];
  let offsetMs = 0;
  const start: Buyer['start'] = async ({
    diesAt = Infinity,
    fails = false,
    looks = 'stream',
    breaks = (one: Store): Store => one,
    ours,
  } = {}) => {
    const life = lifeUntil(diesAt);
    const opened = ground.open(() => offsetMs);
    const store = breaks(looking(mortal(opened.store, life), looks));
    const registrations = createRegistrations({
      store,
      baseUrl: 'https://buyer.example/webhooks',
      secrets: ['a-secret-of-a-buyer-that-dies-at-every-step'],
      call: sellerIn(life, asked),
    });
    const { publicJwk } = await sellerKey();
    const receiver = createReceiver({
      publicUrl: URL_GIVEN,
      senders: [{ agentUrl: AGENT, pins: [publicJwk] }],
      store,
      registrations,
      mode: 'inline',
      durability: { require: 'process' },
      logger: SILENT_LOGGER,
      onAlarm: (alarm) => alarms.push(alarm),
      retry: { baseMs: 1, maxMs: 1 },
      worker: { concurrency: 1, pollMs: 10 },
      handlers: {
        other: async (event: Event) => {
          if (event.kind !== 'delivery-report') return;
          await life.point('before the effect');
          if (fails) throw new Error('the handler fails');
          handled.push(handledIn(event));
          await life.point('after the effect');
        },
      },
    });
    await receiver.ready();
    const reconciler = reconcilerOf(
      { receiver, registrations, expectedDelayMs: 0, graceMs: 0, ours },
      // A second look by time could come at any of the steps: it looks again after what it has done.
      { sleep: (_ms, signal) => aborted(signal), lookMs: PASSES_MS },
    );
    life.begin();
    return {
      life,
      receiver,
      reconciler,
      tell: (delivery) =>
        Promise.race([
          receiver
            .verifyAndDispatch(delivery.body, delivery.headers)
            .then(() => life.point('before the reply')),
          life.died,
        ]),
      account: (mediaBuyId) => standOf({ receiver, reconciler }, mediaBuyId),
      end: async () => {
        // It can die while it stops, too.
        const stopped = reconciler.stop().then(() => receiver.stop());
        await Promise.race([stopped, life.died]);
        // Nothing is under way in it: what its death leaves is what its calls have written.
        await opened.store.close();
        await opened.end();
      },
    };
  };
  const shop = ground.open(() => offsetMs);
  return {
    buy: async (mediaBuyId, more = {}) => {
      await shop.store.open();
      await shop.store.registrations?.run(AGENT, (rows, now) => rows.save(boughtRow(mediaBuyId, more, now)));
    },
    start,
    leasesPass: () => {
      offsetMs += PASSES_MS;
    },
    end: async () => {
      await shop.store.close();
      await shop.end();
    },
    handled: (id) => handled.filter(({ mediaBuyId }) => mediaBuyId === id),
    asked: (id) => asked.filter((one) => one === id).length,
    alarms: (id) => alarms.flatMap(({ code, mediaBuyId }) => (mediaBuyId === id ? code : [])),
  };
}

function boughtRow(mediaBuyId: string, more: Partial<BuyStream>, now: number): RegistrationRow {
  const day = { start: Date.parse(DAY.start), end: Date.parse(DAY.end) };
  const terms = [{ from: day.start, frequency: 'daily', spans: [day] }] as const;
  const value = streamText(streamOf({ mediaBuyId, terms, since: day.start, ...more }));
  const dueAt = Math.floor(now);
  return { kind: 'stream', sender: AGENT, id: mediaBuyId, value, dueAt, list: 'open', expiresAt: null };
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

function handledIn({ idempotencyKey: key, windows }: DeliveryReportEvent): Handled {
  const [window] = windows ?? [];
  if (!window) throw new Error(`${key} is of no window`);
  return { key, mediaBuyId: window.mediaBuyId, isRepeated: window.repeated };
}

/** The seller has what is asked for. The process can die before it asks, and when the answer is there. */
function sellerIn(life: Life, asked: string[]): CallSeller {
  return async (_agentUrl, operation, args) => {
    const [id = ''] = args['media_buy_ids'] as readonly string[];
    await life.point(`before ${operation}`);
    const packages = [{ package_id: 'p1', product_id: 'product-1' }];
    const buy = { media_buy_id: id, status: 'active', start_time: DAY.start, end_time: DAY.end, packages };
    const row = { media_buy_id: id, status: 'active', totals: { impressions: 2, spend: 2 }, by_package: [] };
    if (operation === 'get_media_buy_delivery') asked.push(id);
    const answer =
      operation === 'get_media_buys'
        ? { media_buys: [buy] }
        : { reporting_period: DAY, currency: 'USD', media_buy_deliveries: [row] };
    await life.point(`after ${operation}`);
    return answer;
  };
}

async function openIn({ inbox }: Receiver): Promise<number> {
  const pages = await Promise.all(
    (['queued', 'leased'] as const).map((state) => inbox.list({ state, limit: 1000 })),
  );
  return pages.reduce((sum, { records }) => sum + records.length, 0);
}

async function standOf(
  { receiver, reconciler }: { readonly receiver: Receiver; readonly reconciler: Reconciler },
  mediaBuyId: string,
): Promise<Stand> {
  const { streams }: Account = await reconciler.account({ agentUrl: AGENT, mediaBuyId });
  const [stream] = streams;
  if (!stream) throw new Error(`no account of ${mediaBuyId}`);
  return {
    had: stream.windows.byWebhook + stream.windows.byPull,
    missing: stream.missing.length,
    held: stream.held.length,
    open: await openIn(receiver),
    ...(stream.closedAt !== undefined && { closedAt: stream.closedAt }),
    ...(stream.totals && { totals: stream.totals }),
    ...(stream.final && { final: stream.final }),
  };
}

/** Calls that write, or choose what is done next. */
const POINTS: ReadonlySet<string> = new Set(['accept', 'complete', 'fail', 'lease', 'run', 'due']);

/** How a process passes its points, and whether it has died at one. */
export type Mortality = Pick<Life, 'point' | 'isOver'>;

/** The store, in a process that can die before and after these calls; of a dead one no call comes back. */
export function mortal(store: Store, life: Mortality): Store {
  const { inbox, registrations } = store;
  const parts = {
    inbox: inbox && calls(inbox, life),
    registrations: registrations && calls(registrations, life),
  };
  return { ...calls(store, life), ...parts } as Store;
}

/** The store, whose looks are those at one kind of rows. */
function looking(store: Store, looks: string): Store {
  const { registrations } = store;
  if (!registrations) return store;
  const due: typeof registrations.due = async (request) =>
    request.kind === looks ? registrations.due(request) : { rows: [] };
  return { ...store, registrations: { ...registrations, due } };
}

function calls<T extends object>(of: T, life: Mortality): T {
  const around = Object.entries(of).map(([name, call]: [string, unknown]) => {
    if (typeof call !== 'function') return [name, call];
    return [
      name,
      (...given: readonly unknown[]): unknown => {
        if (life.isOver()) return new Promise(() => {});
        const made = (): unknown => Reflect.apply(call, of, given);
        return POINTS.has(name) ? between(life, name, made) : made();
      },
    ];
  });
  return Object.fromEntries(around) as T;
}

async function between(life: Mortality, name: string, call: () => unknown): Promise<unknown> {
  await life.point(`before ${name}`);
  const result = await call();
  await life.point(`after ${name}`);
  return result;
}

/** Passes when it stands so; looks at most so often, 5 ms apart. */
export async function untilStands(
  { account }: Pick<Process, 'account'>,
  mediaBuyId: string,
  isSo: (stand: Stand) => boolean,
  most: number,
): Promise<Stand> {
  for (let looks = 1; ; looks += 1) {
    const stand = await account(mediaBuyId);
    if (isSo(stand) || looks >= most) return stand;
    await wait(5);
  }
}

/** Passes when the window is had, and nothing of it is under way. */
export const untilHad = (process: Pick<Process, 'account'>, id: string, most: number): Promise<Stand> =>
  untilStands(process, id, (stand) => stand.had > 0 && stand.open === 0, most);
