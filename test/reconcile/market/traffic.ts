import { generateKey, type KeyPair } from '../../../src/sender/sign.ts';
import { type Buy, type Kind, KINDS, type Report, type Window } from './plan.ts';
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

export async function sellerKeys(): Promise<ReadonlyMap<Kind, KeyPair>> {
  const keys = new Map<Kind, KeyPair>();
  for (const kind of KINDS) keys.set(kind, await generateKey('ed25519', 'webhook-signing', { kid: kind }));
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

export interface Sending {
  readonly truth: Truth;
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
  const send: Send = (buy, window, report) => sendReport({ ...sending, schedule: add }, buy, window, report);
  const actions = agenda(buys, send);
  return { add, next: () => actions.shift() };
}

interface Scheduling extends Sending {
  readonly schedule: (action: Action) => void;
}

const sequences = new Map<string, number>();

async function sendReport(sending: Scheduling, buy: Buy, window: Window, report: Report): Promise<void> {
  const { truth, schedule } = sending;
  if (!truth.isSent(buy, window)) return;
  const sequence = buy.kind === 'restarts' && window.index % 7 === 0 ? 1 : (sequences.get(buy.id) ?? 0) + 1;
  sequences.set(buy.id, sequence);
  const body = bodyOf(buy, window, report, sequence);
  const attempt = async (left: readonly number[]): Promise<void> => {
    const [, ...waits] = left;
    const status = report.isDropped ? 0 : await deliver(sending, buy, window, report, body);
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
  window: Window,
  report: Report,
  body: Record<string, unknown>,
): Promise<number> {
  const posted = await post(buy, body);
  truth.delivered(buy, window, report, posted);
  return posted.status;
}

function bodyOf(buy: Buy, { said }: Window, report: Report, sequence: number): Record<string, unknown> {
  const isLate = report.expected !== undefined;
  return {
    idempotency_key: report.key,
    task_id: buy.id,
    task_type: 'media_buy_delivery',
    status: 'completed',
    operation_id: `report-${buy.id}`,
    timestamp: new Date().toISOString(),
    result: {
      notification_type: report.type,
      sequence_number: sequence,
      reporting_period: { start: new Date(said.start).toISOString(), end: new Date(said.end).toISOString() },
      ...(report.next !== undefined && { next_expected_at: new Date(report.next).toISOString() }),
      currency: 'USD',
      media_buy_deliveries: [
        {
          media_buy_id: buy.id,
          status: isLate ? 'reporting_delayed' : 'active',
          ...(isLate && { expected_availability: new Date(report.expected).toISOString() }),
          totals: { impressions: isLate ? 0 : 1, spend: isLate ? 0 : 1 },
          by_package: [],
          ...(report.type === 'adjusted' && { is_adjusted: true }),
          ...(report.stage !== undefined && { measurement_window: report.stage }),
        },
      ],
    },
  };
}
