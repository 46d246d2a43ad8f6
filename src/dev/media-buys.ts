// Keeps the orders of one seller of dev, and makes the answers about them: tasks, media buys, figures (dev.md §1.5).
// called-seller.ts calls it. Arguments are untrusted, so each is checked and limited in size.
import { randomUUID } from 'node:crypto';
import { isJsonObject, type JsonObject, textMember } from '../codec/members.ts';
import { DAY_MS, FREQUENCIES, type Frequency } from '../windows/calendar.ts';
import { putBounded } from '../shared/bounded.ts';
import { ToolError } from './tool-server.ts';

/** The most orders that are kept for each seller; the oldest are dropped. */
const MOST_ORDERS = 200;
/** The most ids in a list, and the most packages in an order. */
const MOST_ITEMS = 100;
/** The most characters of an id. The next two constants are the limits for a URL and a token. */
const MAX_ID = 255;
const MAX_URL = 2_048;
const MAX_TOKEN = 4_096;
/** The most characters of the `context` of a call as JSON. The answer repeats the context. */
const MAX_CONTEXT = 65_536;
const FLIGHT_MS = 30 * DAY_MS;
/** The first instant after the year 9999, the last year with four digits. Unix ms. */
const MOST_INSTANT = Date.UTC(10_000, 0);

/** The webhook that an order names. Dev shows its URL, and never calls it (dev.md §1.3). */
export interface NamedWebhook {
  readonly url: string;
  readonly operationId?: string;
  readonly token?: string;
}

/** A media buy that the buyer has ordered from a seller of dev. */
export interface Order {
  readonly taskId: string;
  readonly mediaBuyId: string;
  /** The time of the order, Unix ms. */
  readonly at: number;
  readonly start: number;
  readonly end: number;
  readonly packages: readonly JsonObject[];
  readonly webhook?: NamedWebhook;
  readonly reports?: { readonly url: string; readonly frequency: Frequency };
  readonly context?: JsonObject;
}

/** The orders of one seller. */
export interface MediaBuys {
  /**
   * Makes an order. If the same `idempotency_key` was used before, returns the order of that call.
   * @param isDue true to begin the flight so early that delivery reports are due now, if the order has reports.
   * @throws ToolError if an argument is wrong
   */
  readonly order: (args: JsonObject, isDue: boolean) => { readonly order: Order; readonly isNew: boolean };
  /** Returns the order whose task the argument `task_id` names. @throws ToolError if there is none */
  readonly byTask: (args: JsonObject) => Order;
  /** Returns the orders in the argument `media_buy_ids`, or the latest orders if it is absent. @throws ToolError */
  readonly named: (args: JsonObject) => readonly Order[];
}

const invalid = (field: string, message: string): ToolError =>
  new ToolError('VALIDATION_ERROR', `${field}: ${message}`, field);

/** Reads a text of at most `most` characters, or returns undefined if the member is absent. @throws ToolError */
function textIn(args: JsonObject, name: string, most: number, where: string = name): string | undefined {
  const value = args[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value !== '' && value.length <= most) return value;
  throw invalid(where, `expected text of at most ${most} characters.`);
}

/** Reads an object, or returns undefined if the member is absent. @throws ToolError */
function objectIn(args: JsonObject, name: string): JsonObject | undefined {
  const value = args[name];
  if (value === undefined || value === null) return undefined;
  if (isJsonObject(value)) return value;
  throw invalid(name, 'expected an object.');
}

function urlIn(of: JsonObject, where: string): string {
  const url = textIn(of, 'url', MAX_URL, `${where}.url`);
  if (url !== undefined && /^https?:\/\//.test(url) && URL.canParse(url)) return url;
  throw invalid(`${where}.url`, 'expected an absolute http or https URL.');
}

function webhookIn(args: JsonObject): NamedWebhook | undefined {
  const where = 'push_notification_config';
  const config = objectIn(args, where);
  if (!config) return undefined;
  const operationId = textIn(config, 'operation_id', MAX_ID, `${where}.operation_id`);
  const token = textIn(config, 'token', MAX_TOKEN, `${where}.token`);
  return {
    url: urlIn(config, where),
    ...(operationId !== undefined && { operationId }),
    ...(token !== undefined && { token }),
  };
}

function reportsIn(args: JsonObject): Order['reports'] {
  const where = 'reporting_webhook';
  const config = objectIn(args, where);
  if (!config) return undefined;
  const frequency = FREQUENCIES.find((known) => known === config['reporting_frequency']);
  if (frequency === undefined) {
    throw invalid(`${where}.reporting_frequency`, `expected one of ${FREQUENCIES.join(', ')}.`);
  }
  return { url: urlIn(config, where), frequency };
}

function instantIn(args: JsonObject, name: string): number | undefined {
  const text = textIn(args, name, MAX_ID);
  if (text === undefined || text === 'asap') return undefined;
  const instant = Date.parse(text);
  if (instant >= 0 && instant < MOST_INSTANT) return instant;
  throw invalid(name, 'expected a time, ISO 8601.');
}

function packagesIn(args: JsonObject): readonly JsonObject[] {
  const { packages = [] } = args;
  if (!Array.isArray(packages) || packages.length > MOST_ITEMS || !packages.every(isJsonObject)) {
    throw invalid('packages', `expected a list of at most ${MOST_ITEMS} objects.`);
  }
  return packages.map((one, index) => {
    const productId = textIn(one, 'product_id', MAX_ID, `packages[${index}].product_id`);
    const { budget } = one;
    return {
      package_id: `pkg_${index + 1}`,
      ...(productId !== undefined && { product_id: productId }),
      ...(typeof budget === 'number' && { budget }),
    };
  });
}

function contextIn(args: JsonObject): JsonObject | undefined {
  const context = objectIn(args, 'context');
  if (context && JSON.stringify(context).length > MAX_CONTEXT) {
    throw invalid('context', `is longer than ${MAX_CONTEXT} characters.`);
  }
  return context;
}

/**
 * Returns a midnight (UTC) in the past. If a flight begins then, some of its reports are due by now, whatever time of
 * day the seller sends them.
 */
function startOfDue(frequency: Frequency, now: number): number {
  const date = new Date(now);
  return frequency === 'monthly'
    ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - 2)
    : Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() - 3);
}

function flightOf(args: JsonObject, due: Frequency | undefined, now: number): Pick<Order, 'start' | 'end'> {
  const start = instantIn(args, 'start_time') ?? now;
  const end = instantIn(args, 'end_time') ?? start + FLIGHT_MS;
  if (end <= start) throw invalid('end_time', 'is not behind start_time.');
  if (due === undefined || start <= startOfDue(due, now)) return { start, end };
  return { start: startOfDue(due, now), end: Math.max(end, now + DAY_MS) };
}

/** Makes an empty list of orders for one seller. @param now returns the current time, Unix ms. */
export function createMediaBuys(now: () => number): MediaBuys {
  const byTask = new Map<string, Order>();
  const byId = new Map<string, Order>();
  const byRequest = new Map<string, Order>();

  return {
    order(args, isDue) {
      const key = textIn(args, 'idempotency_key', MAX_ID);
      const known = key === undefined ? undefined : byRequest.get(key);
      if (known) return { order: known, isNew: false };
      const [webhook, reports, context] = [webhookIn(args), reportsIn(args), contextIn(args)];
      const id = randomUUID();
      const at = now();
      const order: Order = {
        taskId: `task_${id}`,
        mediaBuyId: `mb_${id}`,
        at,
        ...flightOf(args, isDue ? reports?.frequency : undefined, at),
        packages: packagesIn(args),
        ...(webhook && { webhook }),
        ...(reports && { reports }),
        ...(context && { context }),
      };
      putBounded(byTask, order.taskId, order, MOST_ORDERS);
      putBounded(byId, order.mediaBuyId, order, MOST_ORDERS);
      if (key !== undefined) putBounded(byRequest, key, order, MOST_ORDERS);
      return { order, isNew: true };
    },
    byTask(args) {
      const taskId = textIn(args, 'task_id', MAX_ID);
      if (taskId === undefined) throw invalid('task_id', 'is missing.');
      const order = byTask.get(taskId);
      if (order) return order;
      throw new ToolError(
        'REFERENCE_NOT_FOUND',
        'There is no such task of this seller. What was ordered before dev was started is forgotten.',
        'task_id',
      );
    },
    named(args) {
      const ids = args['media_buy_ids'];
      if (ids === undefined || ids === null) return [...byId.values()].slice(-MOST_ITEMS);
      const areIds =
        Array.isArray(ids) && ids.length <= MOST_ITEMS && ids.every((id) => typeof id === 'string');
      if (!areIds) throw invalid('media_buy_ids', `expected a list of at most ${MOST_ITEMS} ids.`);
      return [...new Set(ids)].flatMap((id) => byId.get(id) ?? []);
    },
  };
}

const iso = (instant: number): string => new Date(instant).toISOString();

/** Returns the result of an order, the same for its webhook and for the answer to a poll. */
export const resultOf = ({ mediaBuyId, at, packages }: Order): JsonObject => ({
  media_buy_id: mediaBuyId,
  confirmed_at: iso(at),
  revision: 1,
  packages,
});

/** Returns the answer to a buyer who asks for the task of an order. */
export const taskOf = (order: Order): JsonObject => ({
  task_id: order.taskId,
  task_type: 'create_media_buy',
  protocol: 'media-buy',
  status: 'completed',
  created_at: iso(order.at),
  updated_at: iso(order.at),
  completed_at: iso(order.at),
  has_webhook: order.webhook !== undefined,
  result: resultOf(order),
});

/** Returns a media buy in the form of an answer to `get_media_buys`. */
export function buyOf({ mediaBuyId, at, start, end, packages }: Order, now: number): JsonObject {
  return {
    media_buy_id: mediaBuyId,
    status: now < start ? 'pending_start' : now < end ? 'active' : 'completed',
    revision: 1,
    created_at: iso(at),
    updated_at: iso(at),
    start_time: iso(start),
    end_time: iso(end),
    packages,
  };
}

const DATE = /^\d{4}-\d\d-\d\d$/;
const TOTALS = { impressions: 1_000, clicks: 10, spend: 10 } as const;

function dateIn(args: JsonObject, name: string): number | undefined {
  const text = textIn(args, name, MAX_ID);
  if (text === undefined) return undefined;
  const instant = DATE.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  if (Number.isFinite(instant)) return instant;
  throw new ToolError('INVALID_DATE_RANGE', `${name}: expected a date like 2026-01-31.`, name);
}

/**
 * Returns the answer to `get_media_buy_delivery`. The figures are the same for every media buy and period. @throws
 * ToolError
 */
export function deliveryOf(orders: readonly Order[], args: JsonObject, now: number): JsonObject {
  if (textMember(args, 'time_granularity') !== undefined) {
    throw new ToolError('UNSUPPORTED_GRANULARITY', 'Reports are given for days alone.', 'time_granularity');
  }
  const [from, until] = [dateIn(args, 'start_date'), dateIn(args, 'end_date')];
  if ((from === undefined) !== (until === undefined) || (from ?? 0) >= (until ?? 1)) {
    throw new ToolError('INVALID_DATE_RANGE', 'Expected both dates, or none, and the end behind the start.');
  }
  return {
    reporting_period: {
      start: iso(from ?? Math.min(now, ...orders.map(({ start }) => start))),
      end: iso(until ?? now),
    },
    currency: 'USD',
    media_buy_deliveries: orders.map((order) => ({
      media_buy_id: order.mediaBuyId,
      status: buyOf(order, now)['status'],
      totals: TOTALS,
      by_package: order.packages.map(({ package_id }) => ({ package_id, ...TOTALS })),
    })),
  };
}
