// Encrypts the credentials of routes (URLs for one seller) again under the newest secret, and counts routes that need a
// secret which is missing. `registrations.rewrap` and `ready` call it.
import type { RegistrationRow, StoreRegistrations } from '../stores/store.ts';
import { allRows, type Damage, eachRow } from './operation-rows.ts';
import { isOlder, type RandomBytes, seal, secretIdOf, type Secrets, unseal } from './secrets.ts';
import { type OwnRoute, ownRouteIn, placeOfRoute } from './told/own-routes.ts';

interface RewrapContext {
  readonly registrations: StoreRegistrations;
  readonly secrets: Secrets;
  readonly randomBytes: RandomBytes;
  /** Drops a changed route from this process's cache, so that it is read again. */
  readonly reread: (id: string) => void;
}

/** Selects the rows with an empty `sender`: one for each token in a URL, and one for each adopted URL. */
const OF_NO_SENDER = { kind: 'route', sender: '' } as const;

/** Returns the number of routes that need a secret which is not in `secrets`. Retired routes need none. */
export async function unreadableRoutes({
  registrations,
  secrets,
}: Pick<RewrapContext, 'registrations' | 'secrets'>): Promise<number> {
  let count = 0;
  for await (const row of allRows(registrations, OF_NO_SENDER)) {
    const { secretId, sealed, also, retiredAt } = ownRouteIn(row);
    if (retiredAt !== undefined) continue;
    const sealedBy = [sealed, also?.sealed].map((text) =>
      text === undefined ? undefined : secretIdOf(text),
    );
    if ([secretId, ...sealedBy].some((id) => id !== undefined && !secrets.named(id))) count += 1;
  }
  return count;
}

/**
 * Encrypts the credentials of routes again under the newest secret. `needed` is the number of URLs whose token an older
 * secret made.
 */
export async function rewrapRoutes(
  context: RewrapContext,
): Promise<Damage & { readonly rewrapped: number; readonly needed: number }> {
  const { registrations, secrets, reread } = context;
  let rewrapped = 0;
  let needed = 0;
  const damage = await eachRow(registrations, OF_NO_SENDER, async ({ id, value }) => {
    const route = ownRouteIn({ value });
    const { secretId, sealed, also, agentUrl, scheme, retiredAt } = route;
    if (retiredAt !== undefined) return;
    if (secretId !== undefined && secretId !== secrets.newest.id) needed += 1;
    const anew = await sealedAnew(context, route, sealed);
    const other = await sealedAnew(context, route, also?.sealed);
    if (anew === undefined && other === undefined) return;
    // The new encrypted text is written to both rows of the route. A row whose text was replaced meanwhile is left
    // unchanged.
    const places = [
      [agentUrl, scheme],
      ['', id],
    ] as const;
    for (const [sender, place] of places) {
      await registrations.run(sender, (rows) => {
        const row = rows.get('route', place);
        const is = row && replaced(row, [sealed, anew], [also?.sealed, other]);
        if (row && is !== row.value) rows.save({ ...row, value: is ?? row.value });
      });
    }
    reread(id);
    rewrapped += 1;
  });
  return { rewrapped, needed, ...damage };
}

async function sealedAnew(
  { secrets, randomBytes }: RewrapContext,
  route: OwnRoute,
  sealed: string | undefined,
): Promise<string | undefined> {
  if (sealed === undefined || !isOlder(secrets, sealed)) return undefined;
  const place = placeOfRoute(route);
  return seal(secrets, place, await unseal(secrets, place, sealed), randomBytes);
}

type Change = readonly [from: string | undefined, to: string | undefined];

/** Returns the value of a row in which each old encrypted text that is still there is replaced by its new text. */
function replaced(row: RegistrationRow, ...changes: readonly Change[]): string {
  const to = (text: string | undefined): string | undefined =>
    changes.find(([from]) => from !== undefined && from === text)?.[1] ?? text;
  const is = ownRouteIn(row);
  const all: OwnRoute = {
    ...is,
    ...sealedIn(to(is.sealed)),
    ...(is.also && { also: { ...is.also, ...sealedIn(to(is.also.sealed)) } }),
    ...(is.next && { next: { ...is.next, ...sealedIn(to(is.next.sealed)) } }),
  };
  const textsOf = ({ sealed, also, next }: OwnRoute): string =>
    JSON.stringify([sealed, also?.sealed, next?.sealed]);
  return textsOf(all) === textsOf(is) ? row.value : JSON.stringify(all);
}

const sealedIn = (sealed: string | undefined): { readonly sealed?: string } =>
  sealed === undefined ? {} : { sealed };
