// Retires a seller's former routes (webhook URLs with credentials that a renewal replaced) once nothing uses them any
// more (told.md §5.3). Used by move-loop.ts for sellers whose credentials were renewed.
import { isOfKind } from '../../shared/errors.ts';
import type { StoreRegistrations } from '../../stores/store.ts';
import { allRows } from '../operation-rows.ts';
import { RegistrationError } from '../registrations-errors.ts';
import { ROUTE_KINDS } from '../route-kind.ts';
import { ownRouteIn, renewed } from './own-routes.ts';
import { horizonOf, nobody, recordedOf, type RecordedContext } from './recorded.ts';
import { finishRetiring, retire } from './retire.ts';
import { quietOf } from './state.ts';
import { GIVEN, givenIn, type GivenUrl } from './url-row.ts';

interface FormersContext extends RecordedContext {
  /** Drops a changed route from the cache of this process. */
  readonly reread: (route: string) => void;
}

/**
 * Retires the URLs of a seller's former routes that are no longer used, and completes retirements that a process left
 * when it died.
 */
export async function retireFormers(context: FormersContext, agentUrl: string): Promise<void> {
  const { registrations, reread } = context;
  const { names, now } = await formersOf(registrations, agentUrl);
  if (names.length === 0) return;
  const urls: GivenUrl[] = [];
  for await (const row of allRows(registrations, { kind: 'route', list: GIVEN, sender: agentUrl })) {
    const given = givenIn(row);
    if (names.includes(given.route)) urls.push(given);
  }
  const horizonMs = await horizonOf(context, agentUrl);
  // The seller's calls, media buys and subscriptions are read only if some URL may be retired. So the URLs are first
  // judged as if nothing used them.
  const least = { horizonMs, usedAt: () => undefined };
  if (urls.length > 0 && urls.every((given) => now < quietOf(given, nobody(), least))) return;
  const seller = await recordedOf(context, agentUrl, now);
  for (const name of names) {
    const own = urls.filter(({ route }) => route === name);
    const quiet = own.filter((given) => now >= quietOf(given, seller.of(given), seller));
    for (const { base, route, retiredAt } of quiet) {
      if (retiredAt !== undefined) continue;
      await retire({ ...context, forget: reread }, { agentUrl, base, route }, {}).catch(unlessUsed);
    }
    // If all URLs of the route were retired before, a process died before it deleted the route's credentials. This
    // process deletes them now.
    if (quiet.length < own.length || quiet.some(({ retiredAt }) => retiredAt === undefined)) continue;
    const bases = own.map(({ base }) => base);
    await finishRetiring(context, agentUrl, name, bases);
    reread(name);
  }
}

/**
 * Returns the names of the seller's former routes that have credentials. If a renewed route is in force by now, the
 * store first makes it the current one.
 */
const formersOf = (
  registrations: StoreRegistrations,
  agentUrl: string,
): Promise<{ readonly names: readonly string[]; readonly now: number }> =>
  registrations.run(agentUrl, (rows, now) => {
    const names = ROUTE_KINDS.flatMap((kind) => {
      const row = rows.get('route', kind);
      if (!row) return [];
      const own = ownRouteIn(row);
      const is = renewed(own, now);
      if (is !== own) rows.save({ ...row, value: JSON.stringify(is) });
      return is.scheme === 'signature' ? [] : (is.formers ?? []);
    });
    return { names, now };
  });

/**
 * Ignores the error `url_in_use`, because a call may have given the URL to the seller meanwhile. @throws any other
 * error.
 */
function unlessUsed(error: unknown): void {
  if (isOfKind(error, RegistrationError) && error.code === 'url_in_use') return;
  throw error;
}
