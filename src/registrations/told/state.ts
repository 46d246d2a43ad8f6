// Lists the URLs that sellers were given, in pages, with the calls, media buys and subscriptions that use each URL
// (told.md §2.1). `registrations.state` and `proto-webhooks state` call it.
import type { RegistrationRow } from '../../stores/store.ts';
import { LEGACY } from '../route-kind.ts';
import type { RouteScheme } from '../seller.ts';
import { isOlderThan, ownRoutesIn } from './own-routes.ts';
import { quietAt } from './quiet.ts';
import { recordedOf, type Recorded, type RecordedContext, type SellersUrls } from './recorded.ts';
import type { StatePage, StateQuery, UrlState } from './state-types.ts';
import { GIVEN, givenIn, type GivenUrl } from './url-row.ts';

/** The page size, if none is given. */
const LISTED = 100;

export interface StateContext extends RecordedContext {
  /** The age from which credentials are due for renewal. Ms. */
  readonly renewAfterMs: number;
}

/**
 * The calls, media buys and subscriptions that use a seller's URLs. `isDue`: true if the credentials of a URL are due
 * for renewal.
 */
interface StateOfSeller extends SellersUrls {
  readonly isDue: (given: GivenUrl) => boolean;
}

/** Returns a page of URLs. @throws ConfigError for an `after` that is not the `next` of a page. */
export async function stateOf(
  context: StateContext,
  { agentUrl, limit = LISTED, after }: StateQuery,
): Promise<StatePage> {
  const { registrations, renewAfterMs } = context;
  const asOf = await registrations.run('', (_rows, now) => now);
  const { rows, next } = await registrations.page({
    kind: 'route',
    list: GIVEN,
    limit,
    ...(agentUrl !== undefined && { sender: agentUrl }),
    ...(after !== undefined && { after }),
  });
  const sellers = new Map<string, StateOfSeller>();
  for (const { sender } of rows) {
    if (sellers.has(sender)) continue;
    const routes = await registrations.run(sender, ownRoutesIn);
    const isDue = ({ kind, route, retiredAt }: GivenUrl): boolean =>
      retiredAt === undefined &&
      routes[kind]?.random === route &&
      isOlderThan(routes[kind], renewAfterMs, asOf);
    sellers.set(sender, { ...(await recordedOf(context, sender, asOf)), isDue });
  }
  const urls = rows.flatMap((row) => {
    const seller = sellers.get(row.sender);
    return seller ? urlState(row, seller) : [];
  });
  return { urls, asOf, ...(next !== undefined && { next }) };
}

function urlState(row: RegistrationRow, seller: StateOfSeller): readonly UrlState[] {
  const given = givenIn(row);
  const on = seller.of(given);
  const quiet = quietOf(given, on, seller);
  const { base, route, givenAt, heardAt, madeAt, retiredAt, isRetiring } = given;
  // A retired URL is not listed once nothing uses it and its retirement is complete.
  if (retiredAt !== undefined && quiet !== Infinity && !isRetiring) return [];
  const is: UrlState = {
    agentUrl: row.sender,
    base,
    route,
    scheme: schemeOf(given),
    givenAt,
    ...(heardAt !== undefined && { heardAt }),
    ...(retiredAt !== undefined && { retiredAt }),
    ...(madeAt !== undefined && { credentialsMadeAt: madeAt }),
    ...(seller.isDue(given) && { renewalDue: true as const }),
    counts: countsOf(on),
    operations: on.operations.first,
    mediaBuys: on.mediaBuys.first,
    subscriptions: on.subscriptions.first,
    moving: on.moving,
    ...(quiet !== Infinity && { quietAt: quiet }),
  };
  return [is];
}

const schemeOf = ({ kind }: GivenUrl): RouteScheme => (kind === 'signature' ? kind : LEGACY[kind]);

const countsOf = ({ operations, mediaBuys, subscriptions }: Recorded): UrlState['counts'] => ({
  operations: operations.count,
  mediaBuys: mediaBuys.count,
  subscriptions: subscriptions.count,
});

/** Returns the time from which the URL is no longer needed; Infinity while something uses it (told.md §3.5). */
export function quietOf(
  { base, route, givenAt, heardAt, leftAt = 0 }: GivenUrl,
  on: Recorded,
  { horizonMs, usedAt }: Pick<SellersUrls, 'horizonMs' | 'usedAt'>,
): number {
  const { operations, mediaBuys, subscriptions } = countsOf(on);
  const since = Math.max(givenAt, leftAt, on.leftAt);
  return quietAt({
    url: base,
    recorded: operations + mediaBuys + subscriptions,
    since,
    heardAt,
    usedAt: usedAt(route, Math.max(since, heardAt ?? 0)),
    horizonMs,
    intervalMs: on.intervalMs,
  });
}
