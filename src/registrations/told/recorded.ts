// Collects the calls, media buys and subscriptions that use a seller's webhook URLs. For URLs that nothing uses any
// more, finds since when (told.md §1.2, §3.5). Used to list and to retire URLs.
import type { Hashes } from '../../crypto/engine.ts';
import { declaredIn } from '../../keys/declarations.ts';
import type { RegistrationRow, StoreRegistrations } from '../../stores/store.ts';
import { DAY_MS, type Frequency, HOUR_MS } from '../../windows/calendar.ts';
import { type CallTold, type OurUrl, type Told, TOLD_CHANNELS } from '../../windows/told.ts';
import { storedIn } from '../operation.ts';
import { allRows, storedObject } from '../operation-rows.ts';
import { type BuyStream, buyStreamIn } from '../streams.ts';
import { setIn, urlsOf } from '../subscriptions/set-row.ts';
import { formerUsedAt, ownRoutesIn } from './own-routes.ts';
import { leftAt, MONTH_MS } from './quiet.ts';
import type { MovingMediaBuy } from './state-types.ts';

/** The most ids that are listed for a URL, for each of calls, media buys and subscriptions. */
export const MOST_NAMED = 100;

const INTERVAL_MS: Readonly<Record<Frequency, number>> = {
  hourly: HOUR_MS,
  daily: DAY_MS,
  monthly: MONTH_MS,
};

interface Named {
  count: number;
  readonly first: string[];
}

/** The calls, media buys and subscriptions that use one URL, and facts about those that no longer use it. */
export interface Recorded {
  readonly operations: Named;
  readonly mediaBuys: Named;
  readonly subscriptions: Named;
  readonly moving: MovingMediaBuy[];
  /** The latest time at which a call or a media buy stopped using the URL; 0: none has. */
  leftAt: number;
  /** The longest reporting interval of the media buys that no longer use the URL. Ms. */
  intervalMs: number;
}

/** The calls, media buys and subscriptions that use one seller's URLs. `of` returns those that use one URL. */
export interface SellersUrls {
  readonly of: (url: OurUrl) => Recorded;
  /** The seller's `delivery_retry_horizon_seconds`, in ms; undefined: unknown. */
  readonly horizonMs: number | undefined;
  /**
   * Returns the latest time at which a delivery at another route may have used the credentials of `route`, a former
   * route. Undefined: none has, since the route was replaced.
   * @param lastAt the time at which the URL of `route` was last used, or at which its last media buy or subscription
   *   left it. Unix ms.
   */
  readonly usedAt: (route: string, lastAt: number) => number | undefined;
}

export interface RecordedContext {
  readonly registrations: StoreRegistrations;
  readonly hashes: Hashes;
}

/**
 * Collects the calls, media buys and subscriptions that use a seller's URLs. @param now the store's current time, Unix
 * ms.
 */
export async function recordedOf(
  { registrations, hashes }: RecordedContext,
  agentUrl: string,
  now: number,
): Promise<SellersUrls> {
  const horizonMs = await horizonOf({ registrations, hashes }, agentUrl);
  const urls = new Map<string, Recorded>();
  const of = (url: OurUrl): Recorded => {
    const key = JSON.stringify([url.base, url.route]);
    const known = urls.get(key) ?? nobody();
    urls.set(key, known);
    return known;
  };
  const moving = await movingOf(registrations, agentUrl);
  for await (const row of allRows(registrations, { kind: 'operation', sender: agentUrl })) noteCall(row, of);
  for await (const row of allRows(registrations, { kind: 'stream', sender: agentUrl })) {
    noteMediaBuy(row, of, { now, horizonMs, move: moving.get(row.id) });
  }
  for await (const row of allRows(registrations, { kind: 'subscription', sender: agentUrl })) {
    for (const one of setIn(row).subscriptions) {
      for (const url of urlsOf(one)) note(of(url).subscriptions, one.ref);
    }
  }
  const routes = await registrations.run(agentUrl, ownRoutesIn);
  const usedAt = (route: string, lastAt: number): number | undefined => {
    const heir = Object.values(routes).find(({ formers }) => formers?.includes(route));
    return heir && formerUsedAt(heir, lastAt);
  };
  return { of, horizonMs, usedAt };
}

/** Returns the time for which a seller declares to repeat failed deliveries; undefined: unknown. Ms. */
export const horizonOf = (
  { registrations, hashes }: RecordedContext,
  agentUrl: string,
): Promise<number | undefined> =>
  registrations.run('', (rows) => declaredIn(rows, hashes, agentUrl)?.horizonMs);

export const nobody = (): Recorded => ({
  operations: { count: 0, first: [] },
  mediaBuys: { count: 0, first: [] },
  subscriptions: { count: 0, first: [] },
  moving: [],
  leftAt: 0,
  intervalMs: 0,
});

function note(named: Named, name: string): void {
  named.count += 1;
  if (named.first.length < MOST_NAMED) named.first.push(name);
}

type Of = SellersUrls['of'];

/**
 * Records a call as a user of the URLs that the call names, until the call has ended. A call whose outcome is unknown
 * stays a user, because the seller may have acted on it.
 */
function noteCall(row: RegistrationRow, of: Of): void {
  const { told, state, withoutConfig, closedAt, createdAt } = storedIn(row);
  const isOver = state === 'ended' || state === 'refused';
  for (const url of callUrls(told ?? {}, withoutConfig === true)) {
    const on = of(url);
    if (isOver) on.leftAt = Math.max(on.leftAt, closedAt ?? createdAt);
    else note(on.operations, row.id);
  }
}

/**
 * Returns the distinct webhook URLs that a call gives the seller.
 * @param withoutPush true: the `push` URL is left out, because the seller does not accept it.
 */
function callUrls(told: CallTold, withoutPush: boolean): readonly OurUrl[] {
  const urls = new Map<string, OurUrl>();
  for (const channel of TOLD_CHANNELS) {
    const url = channel === 'push' && withoutPush ? undefined : told[channel];
    if (url) urls.set(JSON.stringify([url.base, url.route]), url);
  }
  return [...urls.values()];
}

function noteMediaBuy(
  row: RegistrationRow,
  of: Of,
  {
    now,
    horizonMs,
    move,
  }: {
    readonly now: number;
    readonly horizonMs: number | undefined;
    readonly move: MovingMediaBuy | undefined;
  },
): void {
  const stream: BuyStream = buyStreamIn(row);
  const { told = [], frequency, mediaBuyId } = stream;
  const leaving = { endedAt: endOf(row, stream), horizonMs };
  const on = new Map<Recorded, boolean>();
  for (const one of told) {
    const url = of(one);
    const left = leftAt(one, told, leaving, now);
    on.set(url, on.get(url) === true || left === undefined);
    if (left === undefined) continue;
    url.leftAt = Math.max(url.leftAt, left);
    url.intervalMs = Math.max(url.intervalMs, intervalOf(one, frequency));
  }
  for (const [url, isOn] of on) {
    if (!isOn) continue;
    note(url.mediaBuys, mediaBuyId);
    if (move && url.moving.length < MOST_NAMED) url.moving.push({ ...move, mediaBuyId });
  }
}

/**
 * Returns the time at which a media buy ended, Unix ms; undefined if no end is known. An end that the seller answered
 * (`endedAt`) comes first, then the closing of the row after the flight. Last comes the end that a webhook reported
 * (`endSaid`): before the seller has answered, it is the only one known.
 */
export const endOf = (
  { list }: RegistrationRow,
  { endedAt, closedAt, endSaid }: BuyStream,
): number | undefined => endedAt ?? (list === 'closed' ? closedAt : endSaid?.at);

const intervalOf = ({ channel }: Told, frequency: Frequency | null): number =>
  channel === 'reports' && frequency ? INTERVAL_MS[frequency] : 0;

const MOVING: ReadonlyMap<string | null, MovingMediaBuy['state']> = new Map([
  ['waiting', 'waiting'],
  ['claimed', 'waiting'],
  ['under_way', 'under_way'],
  ['refused', 'refused'],
]);

/** Returns the media buys with a stored move to another URL, by the id of their row. */
async function movingOf(
  registrations: StoreRegistrations,
  agentUrl: string,
): Promise<ReadonlyMap<string, MovingMediaBuy>> {
  const found = new Map<string, MovingMediaBuy>();
  for await (const { id, list, value } of allRows(registrations, { kind: 'move', sender: agentUrl })) {
    const state = MOVING.get(list);
    if (!state) continue;
    const { mediaBuyId, reason } = storedObject(value) as Pick<MovingMediaBuy, 'mediaBuyId' | 'reason'>;
    found.set(id, { mediaBuyId, state, ...(reason !== undefined && { reason }) });
  }
  return found;
}
