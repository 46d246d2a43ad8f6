import { generateKey, type KeyPair } from '../../../src/sender/sign.ts';
import type { ReportSchedule } from '../../../src/reconcile/index.ts';
import type { JsonObject, OperationRequest } from '../../../src/registrations/index.ts';
import {
  agentOf,
  type Becomes,
  type Buy,
  type Frequency,
  isOwed,
  type Report,
  type Row,
  type Window,
} from './plan.ts';
import type { Truth } from './truth.ts';

/* The webhooks of the sellers of a market, by their plan: each is tried until it is taken, as its seller does. */

/** What a seller does at a time. */
export interface Action {
  readonly at: number;
  readonly run: () => Promise<void>;
}

/** What became of a delivery. */
export interface Posted {
  /** 0: there was no answer. */
  readonly status: number;
  /** The receiver has it, whatever its handler did; undefined: nobody knows yet. */
  readonly isStored: boolean | undefined;
  readonly code: string;
}

/** A key of each seller's, by its agent. */
export async function sellerKeys(buys: readonly Buy[]): Promise<ReadonlyMap<string, KeyPair>> {
  const keys = new Map<string, KeyPair>();
  for (const agent of new Set(buys.map(agentOf))) {
    keys.set(agent, await generateKey('ed25519', 'webhook-signing', { kid: `key-of-${agent}` }));
  }
  return keys;
}

type Send = (buy: Buy, window: Window, report: Report) => Promise<void>;

function agenda(buys: readonly Buy[], send: Send): Action[] {
  const actions = buys.flatMap((buy) =>
    buy.windows.flatMap((window) =>
      window.reports.map((report): Action => ({ at: report.at, run: () => send(buy, window, report) })),
    ),
  );
  return actions.toSorted((a, b) => a.at - b.at);
}

/** A call of the buyer's. */
export type Call = Pick<OperationRequest, 'taskType' | 'arguments'>;

export interface Sending {
  readonly truth: Truth;
  /** The buyer registers and makes a call whose task is `update-` and the id of the media buy. @returns the operation's id. */
  readonly update: (buy: Buy, call: Call) => Promise<string>;
  readonly post: (buy: Buy, body: Record<string, unknown>) => Promise<Posted>;
}

/** Everything that is to be done, the next one first. */
export interface Agenda {
  readonly next: () => Action | undefined;
  readonly add: (action: Action) => void;
}

/** The webhooks of all media buys. */
export function agendaOf(buys: readonly Buy[], sending: Sending): Agenda {
  const add = (action: Action): void => {
    const at = actions.findIndex((one) => one.at > action.at);
    if (at < 0) actions.push(action);
    else actions.splice(at, 0, action);
  };
  const scheduling: Scheduling = { ...sending, schedule: add };
  const actions = agenda(buys, (buy, window, report) => sendReport(scheduling, buy, window, report));
  for (const buy of buys) {
    const { becomes } = buy;
    if (becomes) add({ at: becomes.at - UPDATING, run: () => change(scheduling, buy, becomes) });
  }
  return { add, next: () => actions.shift() };
}

interface Scheduling extends Sending {
  readonly schedule: (action: Action) => void;
}

const webhookOf = (frequency: Frequency): JsonObject => ({
  url: 'https://buyer.example/webhooks/r',
  reporting_frequency: frequency,
});

/** The call that buys it. */
export const orderOf = ({ id, flight, frequency, account, isSilent }: Buy): Call => ({
  taskType: 'create_media_buy',
  arguments: {
    ...(account !== undefined && { account: { account_id: account } }),
    start_time: iso(flight.start),
    end_time: iso(flight.end),
    packages: [{ product_id: `product-of-${id}`, budget: 100 }],
    ...(!isSilent && { reporting_webhook: webhookOf(frequency) }),
  },
});

/** What the buyer knows of its product. */
export const scheduleOf = (buy: Buy): ReportSchedule => ({
  timeZone: buy.declared ?? buy.zone,
  expectedDelayMinutes: buy.delayMs / 60_000,
  windowedPullGranularities: buy.isWindowed ? [buy.becomes?.frequency ?? buy.frequency] : [],
  ...(buy.lifetimeOnly === 'declared' && { dateRangeSupport: 'lifetime_only' }),
});

const sequences = new Map<string, number>();

async function sendReport(sending: Scheduling, buy: Buy, window: Window, report: Report): Promise<void> {
  const { truth, schedule } = sending;
  const rows = truth.rowsOf(report);
  // Of what nobody is owed nothing is said.
  if (report.rows.length > 0 ? rows.length === 0 : !isOwed(buy, window)) return;
  const sequence = buy.kind === 'restarts' && window.index % 7 === 0 ? 1 : (sequences.get(buy.id) ?? 0) + 1;
  sequences.set(buy.id, sequence);
  const body = bodyOf(buy, { window, report, rows, sequence });
  const attempt = async (left: readonly number[]): Promise<void> => {
    const [, ...waits] = left;
    const status = report.isDropped ? 0 : await deliver(sending, buy, report, body);
    if (status >= 200 && status < 300) return;
    const [wait] = waits;
    if (wait !== undefined) schedule({ at: Date.now() + wait, run: () => attempt(waits) });
    else if (report.againMs !== undefined && !report.key.endsWith('-r-r-r')) {
      const next: Report = {
        ...report,
        key: `${report.key}-r`,
        isDropped: false,
        at: Date.now() + report.againMs,
      };
      truth.added(next);
      schedule({ at: next.at, run: () => sendReport(sending, buy, window, next) });
    }
  };
  await attempt(report.waits);
}

async function deliver(
  { post, truth }: Sending,
  buy: Buy,
  report: Report,
  body: Record<string, unknown>,
): Promise<number> {
  const posted = await post(buy, body);
  truth.delivered(report, posted);
  return posted.status;
}

const iso = (ms: number): string => new Date(ms).toISOString();

interface Saying {
  readonly window: Window;
  readonly report: Report;
  readonly rows: readonly Row[];
  readonly sequence: number;
}

function bodyOf(buy: Buy, { window: { said }, report, rows, sequence }: Saying): Record<string, unknown> {
  const late = rows.filter(({ expected }) => expected !== undefined).length;
  return {
    idempotency_key: report.key,
    task_id: buy.id,
    task_type: 'media_buy_delivery',
    status: 'completed',
    operation_id: `report-${buy.id}`,
    timestamp: iso(Date.now()),
    result: {
      notification_type: report.type,
      sequence_number: sequence,
      reporting_period: { start: iso(said.start), end: iso(said.end) },
      ...(report.next !== undefined && { next_expected_at: iso(report.next) }),
      ...(late > 0 && rows.length > 1 && { partial_data: true, unavailable_count: late }),
      currency: 'USD',
      media_buy_deliveries: rows.map(({ id, expected }) => ({
        media_buy_id: id,
        status: expected === undefined ? 'active' : 'reporting_delayed',
        ...(expected !== undefined && { expected_availability: iso(expected) }),
        totals: { impressions: expected === undefined ? 1 : 0, spend: expected === undefined ? 1 : 0 },
        by_package: [],
        ...(report.type === 'adjusted' && { is_adjusted: true }),
        ...(report.stage !== undefined && { measurement_window: report.stage }),
      })),
    },
  };
}

/** A seller takes its time for the buyer's own change. Ms. */
const UPDATING = 3 * 3_600_000;

/** The buyer's own change: it is asked for, and completed by a webhook, which is sent until it is taken. */
async function change({ post, update, schedule }: Scheduling, buy: Buy, is: Becomes): Promise<void> {
  const operationId = await update(buy, {
    taskType: 'update_media_buy',
    arguments: { media_buy_id: buy.id, reporting_webhook: webhookOf(is.frequency) },
  });
  const body = {
    idempotency_key: `${buy.id}-updated-0123456789`,
    task_id: `update-${buy.id}`,
    task_type: 'update_media_buy',
    status: 'completed',
    operation_id: operationId,
    timestamp: iso(is.at),
    result: { media_buy_id: buy.id },
  };
  const attempt = async (): Promise<void> => {
    const { status } = await post(buy, body);
    if (status !== 200) schedule({ at: Date.now() + 60_000, run: attempt });
  };
  schedule({ at: is.at, run: attempt });
}
