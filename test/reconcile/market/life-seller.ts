import type { JsonObject } from '../../../src/registrations/index.ts';
import { randomOf } from '../../reliability/processes/random.ts';
import {
  type Booked,
  type Impairment,
  isEnded,
  type Life,
  MINUTE,
  type Seller,
  type Step,
  stepAt,
  wordOfEnd,
} from './lives.ts';
import { answerDelivery, mediaBuyRow } from './seller.ts';

/* What sellers answer about media buys that are impaired and end. */

const iso = (ms: number): string => new Date(ms).toISOString();

/** The same number for the same words. */
function chance(...words: readonly (string | number)[]): number {
  let hash = 7;
  for (const letter of words.join(' ')) hash = (Math.imul(hash, 31) + letter.charCodeAt(0)) >>> 0;
  return randomOf(hash).next();
}

/** As old as the seller's answers may be, another one each minute: they come from several of its machines. */
const viewAt = ({ name, ageMs }: Seller, now: number): number =>
  now - Math.floor(ageMs * chance(name, Math.floor(now / MINUTE)));

/** What impairs a media buy, as a seller gives it. */
export function impairmentObject(seller: Seller, { id, steps }: Impairment, { to, said }: Step): JsonObject {
  const word = wordOfEnd(seller);
  const at = steps.findIndex((one) => one.to === to && one.said === said);
  const from = at > 0 ? (steps[at - 1]?.to ?? word) : seller.isRound && word;
  return {
    impairment_id: id,
    resource_type: 'creative',
    resource_id: `cr-${id}`,
    package_ids: ['p1'],
    transition: { to: to ?? word, ...(from && { from }) },
    reason_code: 'creative_disapproved',
    observed_at: iso(said),
  };
}

/** A row of `get_media_buys`; undefined where the answer lacks it. */
function rowOf(life: Life, now: number, isWithActivity: boolean): JsonObject | undefined {
  const { buy, seller, impairments } = life;
  const quarter = Math.floor(now / (15 * MINUTE));
  const luck = seller.isPatchy ? chance(buy.id, quarter) : 1;
  if (luck < 0.1) return undefined;
  const view = viewAt(seller, now);
  const open = isEnded(life, view)
    ? []
    : impairments.flatMap((one) => {
        const step = stepAt(one, view);
        return step?.to === undefined ? [] : [impairmentObject(seller, one, step)];
      });
  const health = open.length > 0 ? 'impaired' : 'ok';
  const isHealthAlone = luck < 0.3 || (luck < 0.6 && open.length === 0);
  const state: JsonObject = isHealthAlone ? { health } : { health, impairments: open };
  return {
    ...mediaBuyRow(buy, view),
    ...(seller.edition !== '3.0' && luck >= 0.2 && state),
    ...(seller.saysAge && { status_as_of: iso(view) }),
    ...(isWithActivity &&
      seller.edition !== '3.0' && {
        webhook_activity: [{ url: 'https://buyer.example/webhooks/proto', status: 'success', attempt: 1 }],
      }),
  };
}

const listOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) ? (value as readonly string[]) : typeof value === 'string' ? [value] : undefined;

/** The answer to `get_media_buys`: of those that are asked for, or of a status; a page at a time. */
export function answerLives(lives: readonly Life[], args: JsonObject, now: number): JsonObject {
  const seller = lives[0]?.seller;
  const ids = listOf(args['media_buy_ids']);
  const account = (args['account'] as JsonObject | undefined)?.['account_id'];
  const statuses = listOf(args['status_filter']) ?? ['active'];
  const { max_results: most = 50, cursor = '0' } = (args['pagination'] ?? {}) as {
    readonly max_results?: number;
    readonly cursor?: string;
  };
  const own = lives.filter(({ buy }) => buy.account === account);
  const wanted = ids
    ? own.filter(({ buy }) => ids.includes(buy.id))
    : own.filter((life) =>
        statuses.includes(mediaBuyRow(life.buy, viewAt(life.seller, now))['status'] as string),
      );
  const from = Number(cursor);
  const size = Math.min(most, seller?.pageSize ?? 1);
  const page = wanted.slice(from, from + size);
  const isMore = from + size < wanted.length;
  const isWithActivity = args['include_webhook_activity'] === true;
  return {
    media_buys: page.map((life) => rowOf(life, now, isWithActivity)).filter((row) => row !== undefined),
    pagination: { has_more: isMore, ...(isMore && { cursor: String(from + size) }) },
  };
}

const DAY = 86_400_000;

/** Asked for more than a day, a seller says what was delivered in all of it. */
export const isForTotals = ({
  start_date: start,
  end_date: end,
  include_window_breakdown: by,
}: JsonObject): boolean => by !== true && !(Date.parse(end as string) - Date.parse(start as string) <= DAY);

/** The answer to `get_media_buy_delivery`. */
export function answerDeliveryOf(
  { buy, totals: { theirs } }: Life,
  args: JsonObject,
  now: number,
): JsonObject {
  if (!isForTotals(args)) return answerDelivery(buy, args, now);
  const { currency, ...totals }: Booked = theirs;
  return {
    reporting_period: { start: iso(buy.flight.start), end: iso(buy.flight.end) },
    currency,
    media_buy_deliveries: [{ media_buy_id: buy.id, status: 'completed', totals, by_package: [] }],
  };
}

/** A task that does not end. */
export const openTaskOf = ({ name }: Seller): string => `task-that-${name}-has-not-ended`;

/** The answer to `list_tasks`. */
export function answerTasks(seller: Seller, args: JsonObject): JsonObject {
  const at = '2026-02-28T18:00:00Z';
  const task = {
    task_id: openTaskOf(seller),
    task_type: 'update_media_buy',
    domain: 'media-buy',
    status: 'submitted',
    created_at: at,
    updated_at: at,
  };
  return { tasks: args['account'] === undefined ? [task] : [], pagination: { has_more: false } };
}

/** The answer to `get_adcp_capabilities`. */
export const answerCapabilities = ({ edition, surfaces }: Seller): JsonObject => ({
  adcp: { major_versions: [3], supported_versions: [edition] },
  adcp_version: edition,
  media_buy: { ...(surfaces && { propagation_surfaces: surfaces }) },
});

/** What a seller's agent offers. */
export const OPERATIONS: readonly string[] = [
  'get_adcp_capabilities',
  'get_media_buys',
  'get_media_buy_delivery',
  'get_task_status',
  'list_tasks',
];
