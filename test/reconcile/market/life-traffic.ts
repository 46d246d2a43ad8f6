import { type Fire, type Impairment, isNamed, type Life, MINUTE, promises, stepAt } from './lives.ts';
import { impairmentObject } from './life-seller.ts';
import type { Report } from './plan.ts';
import type { Action, Posted } from './traffic.ts';

/* The webhooks of media buys that are impaired and end, by their plan. */

type Body = Record<string, unknown>;

/** A webhook's way to the buyer. */
export interface LifeSending {
  readonly post: (life: Life, body: Body) => Promise<Posted>;
  /** What became of a try. */
  readonly delivered: (key: string, posted: Posted) => void;
  /** The operation that bought it. */
  readonly operationOf: (life: Life) => string;
  readonly schedule: (action: Action) => void;
}

const WAITS = [0, 2000, 10_000, MINUTE, 5 * MINUTE, 30 * MINUTE] as const;

const iso = (ms: number): string => new Date(ms).toISOString();

/** The webhooks of one media buy, each as what its seller does at a time. */
export function lifeActions(life: Life, sending: LifeSending): readonly Action[] {
  const impaired = promises(life.seller) ? life.impairments : [];
  const fires = impaired.flatMap((impairment) =>
    impairment.fires
      .filter(({ isLost }) => !isLost)
      .map((fire): Action => ({
        at: fire.at,
        run: () =>
          send(sending, life, {
            ...fire,
            waits: WAITS,
            body: () => impairedBody(life, impairment, fire, sending),
          }),
      })),
  );
  const finals = (life.isFinalOwed ? [] : life.finals)
    .filter(({ isDropped }) => !isDropped)
    .map((report): Action => ({
      at: report.at,
      run: () => send(sending, life, { ...report, body: () => finalBody(life, report) }),
    }));
  return [...fires, ...finals];
}

interface Sent {
  readonly key: string;
  readonly waits: readonly number[];
  readonly twiceMs?: number;
  readonly body: () => Body;
}

/** It is tried until it is taken, as its seller does; some are sent once more behind that. */
async function send({ post, delivered, schedule }: LifeSending, life: Life, sent: Sent): Promise<void> {
  // Each try has the same bytes.
  const body = sent.body();
  const attempt = async ([, ...waits]: readonly number[]): Promise<void> => {
    const posted = await post(life, body);
    delivered(sent.key, posted);
    const [wait] = waits;
    if (posted.status >= 200 && posted.status < 300) {
      const { twiceMs } = sent;
      if (twiceMs !== undefined)
        schedule({ at: Date.now() + twiceMs, run: async () => void (await post(life, body)) });
      return;
    }
    if (wait !== undefined) schedule({ at: Date.now() + wait, run: () => attempt(waits) });
  };
  await attempt(sent.waits);
}

/** Some name their media buy, others the operation alone; some stand in a task's envelope, beside the health of the media buy. */
function impairedBody(
  life: Life,
  impairment: Impairment,
  { key, step: at }: Fire,
  { operationOf }: LifeSending,
): Body {
  const { buy } = life;
  const step = impairment.steps[at];
  if (!step) throw new Error(`${key} tells of nothing`);
  const object = impairmentObject(life.seller, impairment, step);
  const isImpaired = life.impairments.some((one) => stepAt(one, Date.now())?.to !== undefined);
  const shape = key.length % 2 === 0 ? 'envelope' : 'plain';
  const named = isNamed(impairment) ? { media_buy_id: buy.id } : {};
  const known = {
    idempotency_key: key,
    notification_id: impairment.id,
    operation_id: operationOf(life),
    timestamp: iso(Date.now()),
  };
  if (shape === 'plain') return { ...known, notification_type: 'impairment', ...named, ...object };
  return {
    ...known,
    task_id: `task-of-${buy.id}`,
    task_type: 'create_media_buy',
    status: 'completed',
    result: { ...named, impairment: object, health: isImpaired ? 'impaired' : 'ok' },
  };
}

/** The last report of a media buy that has ended before its flight: of the window in which it did. */
function finalBody({ buy, end }: Life, { key, type }: Report): Body {
  const window = buy.windows.find((one) => one.start < end.at && end.at <= one.end) ?? buy.windows[0];
  const { start, end: until } = window?.said ?? { start: end.at - 1, end: end.at };
  return {
    idempotency_key: key,
    task_id: buy.id,
    task_type: 'media_buy_delivery',
    status: 'completed',
    operation_id: `report-${buy.id}`,
    timestamp: iso(Date.now()),
    result: {
      notification_type: type,
      sequence_number: 99,
      reporting_period: { start: iso(start), end: iso(until) },
      currency: 'USD',
      media_buy_deliveries: [
        { media_buy_id: buy.id, status: end.status, totals: { impressions: 1, spend: 1 }, by_package: [] },
      ],
    },
  };
}
