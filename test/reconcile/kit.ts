import { randomBytes, randomUUID } from 'node:crypto';
import { loadOnDemand } from '../../src/for-tests.ts';
import type { Outcome, Store } from '../../src/index.ts';
import type { Reconciler, ReconcilerOptions } from '../../src/reconcile/index.ts';
import { factsIn, type MediaBuyFacts, mediaBuyRows, reconcilerOf } from '../../src/reconcile/for-tests.ts';
import type { CallSeller, JsonObject, Registrations } from '../../src/registrations/index.ts';
import { type BuyStream, registrationsOf } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { AGENT, testReceiver, type TestReceiver, type TestReceiverOptions } from '../receiver/setup.ts';
import { hashes, NEWEST } from '../registrations/kit.ts';
import { type VirtualClock, virtualClock } from '../support/virtual-clock.ts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** The facts of a media buy in an answer; undefined where it has none. */
export function mediaBuyFacts(data: unknown, mediaBuyId: string): MediaBuyFacts | undefined {
  const row = mediaBuyRows(data, new Set([mediaBuyId])).get(mediaBuyId);
  return row && factsIn(row);
}

/** A question, as the seller got it. */
export interface Question {
  readonly at: number;
  readonly operation: string;
  readonly args: JsonObject;
}

type Answer = (args: JsonObject) => unknown;

/** Answers in the seller's place, and keeps its own log. */
export interface TestSeller {
  readonly questions: Question[];
  /** What it says of its media buys. Default: those of `buy`. */
  buys: Answer;
  /** What it says of delivery. Default: there is no such buy. */
  delivery: Answer;
  /** What it says to other operations, by their names. */
  readonly others: Map<string, Answer>;
  /** Names of its operations; undefined: it does not list them. */
  operations: readonly string[] | undefined;
  transport: 'tool' | 'agent';
  readonly asked: (operation: string) => readonly Question[];
}

/** A process of the buyer. */
export interface Process extends TestReceiver {
  readonly registrations: Registrations;
  readonly reconciler: Reconciler;
  /** A report comes by webhook. */
  readonly report: (period: Period, more?: Partial<ReportDraft>) => Promise<Outcome>;
}

export interface Period {
  readonly start: string;
  readonly end: string;
}

export interface ReportDraft {
  readonly key: string;
  readonly mediaBuyId: string;
  readonly type: string;
  readonly row: JsonObject;
  readonly report: JsonObject;
}

export interface World {
  readonly clock: VirtualClock;
  readonly seller: TestSeller;
  readonly process: (
    options?: Partial<ReconcilerOptions>,
    receiving?: TestReceiverOptions,
  ) => Promise<Process>;
  /** Lets time pass until an instant. */
  readonly until: (instant: string) => Promise<void>;
  /** It has died: it is not asked to stop. */
  readonly died: (process: Process) => void;
  readonly end: () => Promise<void>;
}

/** Processes of one buyer on one store, under one clock that begins at an instant. */
export function world(begin: string): World {
  const began = Date.parse(begin);
  const clock = virtualClock(began);
  const seller: TestSeller = {
    questions: [],
    buys: () => ({ media_buys: [] }),
    delivery: () => ({ media_buy_deliveries: [] }),
    others: new Map(),
    operations: undefined,
    transport: 'tool',
    asked: (operation) => seller.questions.filter((one) => one.operation === operation),
  };
  const call: CallSeller = async (_agentUrl, operation, args) => {
    seller.questions.push({ at: Date.now(), operation, args });
    if (operation === 'get_media_buys') return seller.buys(args);
    if (operation === 'get_media_buy_delivery') return seller.delivery(args);
    const other = seller.others.get(operation);
    if (other) return other(args);
    throw new Error(`Unknown tool: ${operation}`);
  };
  const caller: CallSeller = Object.assign(call, {
    operations: async () => seller.operations,
    transport: () => seller.transport,
  });
  const state = createMemoryState();
  const processes = new Set<Process>();
  return {
    clock,
    seller,
    until: (instant) => clock.pass(Date.parse(instant) - began - clock.now()),
    process: async (options = {}, receiving = {}) => {
      const store = receiving.store ?? memoryStore({ state });
      const registrations = registrationsOf(
        { store, call: caller, baseUrl: 'https://buyer.example/webhooks', secrets: [NEWEST] },
        {
          hashes,
          randomBytes: (count) => new Uint8Array(randomBytes(count)),
          newId: () => randomUUID(),
          now: clock.now,
          sleep: clock.sleep,
        },
      );
      const made = await testReceiver({
        store,
        registrations,
        retry: { baseMs: 1, maxMs: 1 },
        ...receiving,
      });
      await made.receiver.start();
      // Loaded when it is first needed, which takes time that is not this clock's.
      await loadOnDemand();
      const reconciler = reconcilerOf(
        { receiver: made.receiver, registrations, expectedDelayMs: HOUR_MS, ...options },
        { sleep: clock.sleep, lookMs: 10 * 60_000 },
      );
      const process: Process = {
        ...made,
        registrations,
        reconciler,
        report: (period, more = {}) => made.deliver(reportBody(period, more)),
      };
      processes.add(process);
      return process;
    },
    died: (process) => processes.delete(process),
    end: async () => {
      await Promise.all([...processes].map(({ reconciler }) => reconciler.stop()));
      await Promise.all([...processes].map(({ receiver }) => receiver.stop()));
      clock.end();
    },
  };
}

export const BUY = 'buy-1';

export function reportBody(
  { start, end }: Period,
  { key = randomUUID(), mediaBuyId = BUY, type = 'scheduled', row = {}, report = {} }: Partial<ReportDraft>,
): Record<string, unknown> {
  const delivery = {
    media_buy_id: mediaBuyId,
    status: 'active',
    totals: { impressions: 1, spend: 1 },
    by_package: [],
  };
  return {
    idempotency_key: key,
    task_id: mediaBuyId,
    task_type: 'media_buy_delivery',
    status: 'completed',
    operation_id: 'report',
    timestamp: new Date().toISOString(),
    result: {
      notification_type: type,
      sequence_number: 1,
      reporting_period: { start, end },
      currency: 'USD',
      media_buy_deliveries: [{ ...delivery, ...row }],
      ...report,
    },
  };
}

interface BuyDraft {
  readonly mediaBuyId?: string;
  readonly account?: JsonObject;
  readonly ref?: string;
}

/** An order with daily reports, answered with its media buy. @param frequency null: no reports are asked for. */
export async function buy(
  { registrations }: Pick<Process, 'registrations'>,
  { start, end }: Period,
  frequency: string | null = 'daily',
  agentUrl: string = AGENT,
  { mediaBuyId = BUY, account, ref }: BuyDraft = {},
): Promise<void> {
  const made = await registrations.create({
    agentUrl,
    taskType: 'create_media_buy',
    ...(ref !== undefined && { ref }),
    arguments: {
      ...(account && { account }),
      start_time: start,
      end_time: end,
      packages: [{ product_id: 'product-1', budget: 100 }],
      ...(frequency !== null && {
        reporting_webhook: { url: 'https://buyer.example/webhooks/r', reporting_frequency: frequency },
      }),
    },
  });
  await made.settle({ media_buy_id: mediaBuyId, status: 'completed', packages: [] });
}

/** A subscription as `subscribed` stores it. */
export const SUBSCRIPTION = 'n'.repeat(43);
export const SUBSCRIBER = `${SUBSCRIPTION}.${'s'.repeat(16)}`;

/** Stores a subscription of an account to these types of events; its row is replaced. */
export async function subscribed(
  { registrations }: Pick<Store, 'registrations'>,
  eventTypes: readonly string[],
): Promise<void> {
  const of = {
    ref: 'creatives',
    subscriberId: SUBSCRIBER,
    eventTypes,
    scheme: 'signature',
    state: 'active',
    since: 0,
  };
  const set = {
    seller: { agentUrl: AGENT },
    account: '{"account_id":"a1"}',
    accountId: 'a1',
    subscriptions: [of],
  };
  const row = { kind: 'subscription', sender: AGENT, id: SUBSCRIPTION, value: JSON.stringify(set) } as const;
  await registrations?.run(AGENT, (rows) => rows.save({ ...row, dueAt: null, list: null, expiresAt: null }));
}

/** An impairment as a seller shows it. */
export const impairment = (observedAt: string, id = 'i1', to = 'rejected'): JsonObject => ({
  impairment_id: id,
  resource_type: 'creative',
  resource_id: 'c1',
  package_ids: ['p1'],
  transition: { from: 'approved', to },
  reason_code: 'policy',
  observed_at: observedAt,
});

/** The state of a creative, as `creative.status_changed` tells it. */
export const creative = (to: string, observedAt: string): JsonObject => ({
  creative_id: 'c1',
  transition: { from: 'pending_review', to, observed_at: observedAt },
});

/** The seller declares its capabilities. */
export function declares({ seller }: Pick<World, 'seller'>, capabilities: JsonObject): void {
  seller.operations = ['get_adcp_capabilities'];
  seller.others.set('get_adcp_capabilities', () => capabilities);
}

/** What a seller says of that media buy. */
export const buysOf =
  ({ start, end }: Period, more: JsonObject = {}): Answer =>
  () => ({
    media_buys: [
      {
        media_buy_id: BUY,
        status: 'active',
        start_time: start,
        end_time: end,
        packages: [{ package_id: 'p1', product_id: 'product-1' }],
        ...more,
      },
    ],
  });

/** The answer about whole days. */
export const daysDelivery: Answer = ({ start_date: start, end_date: end }) => ({
  reporting_period: { start: `${start as string}T00:00:00Z`, end: `${end as string}T00:00:00Z` },
  currency: 'USD',
  media_buy_deliveries: [
    { media_buy_id: BUY, status: 'active', totals: { impressions: 2, spend: 2 }, by_package: [] },
  ],
});

export const day = (n: number): Period => ({
  start: `2026-03-${String(n).padStart(2, '0')}T00:00:00Z`,
  end: `2026-03-${String(n + 1).padStart(2, '0')}T00:00:00Z`,
});

/** A stream as it is stored, of a buy whose seller was asked about it. */
export const streamOf = (more: Partial<BuyStream> = {}): BuyStream => ({
  mediaBuyId: BUY,
  frequency: 'daily',
  terms: [],
  clock: { zone: 'UTC', source: 'default' },
  had: [],
  claims: [],
  unplaced: [],
  counts: { byWebhook: 0, byPull: 0, repeated: 0 },
  products: [],
  since: 0,
  missed: [],
  lost: {},
  ...more,
});
