// Computes the update that a media buy needs so that its webhooks go to the target of a move (told.md §3.1). The result
// may also be that no update is needed, or that stored facts are missing. Pure functions, used by plans and by running
// moves.
import type { Told, ToldChannel } from '../../windows/told.ts';
import { isTerminalBuy } from '../../windows/ends.ts';
import { TOLD_CHANNELS } from '../../windows/told.ts';
import type { RouteKind } from '../route-kind.ts';
import type { BuyStream } from '../streams.ts';
import type { MoveTarget } from './move-row.ts';
import type { MoveUrl } from './move-types.ts';
import { kindOf, newestOf, type OwnRoutes, schemeOf } from './own-routes.ts';

/**
 * The base URL, and the kind of route (e.g. `signature`), at which one channel (reports or push) of a media buy should
 * arrive.
 */
export interface ChannelTarget {
  readonly base: string;
  readonly kind: RouteKind;
}

/** The update that brings a media buy to the move's target. Each update sets `push`. */
export interface Needed {
  readonly push: ChannelTarget;
  readonly reports?: ChannelTarget;
  readonly from: readonly MoveUrl[];
  readonly to: readonly MoveUrl[];
}

/**
 * The update that a media buy needs. `nothing`: it is at its target. `unknown`: the update cannot be built, because
 * stored facts are missing.
 */
export type Need =
  | { readonly kind: 'nothing' }
  | ({ readonly kind: 'update' } & Needed)
  | { readonly kind: 'unknown'; readonly from: readonly MoveUrl[]; readonly reason: string };

/** The inputs, besides the media buy, from which `needOf` computes the needed update. */
export interface NeedContext {
  readonly routes: OwnRoutes;
  readonly to: MoveTarget;
  /** True if the credentials of a route are to be renewed now. */
  readonly isDue?: (kind: RouteKind) => boolean;
}

const NOTHING: Need = { kind: 'nothing' };

/**
 * Returns the URL that a channel of a media buy uses now: the seller has acknowledged the URL, and no other has
 * replaced it.
 */
export const currentOf = (told: readonly Told[], channel: ToldChannel): Told | undefined =>
  told.findLast((one) => one.channel === channel && one.formerAt === undefined && one.ackedAt !== undefined);

export function needOf(stream: BuyStream, { routes, to, isDue = () => false }: NeedContext): Need {
  if (isTerminalBuy(stream.status)) return NOTHING;
  const { told = [], frequency } = stream;
  const channels = TOLD_CHANNELS.flatMap((channel) => {
    const is = currentOf(told, channel);
    return is ? [{ channel, is, target: targetOf(is, routes, to) }] : [];
  });
  if (channels.length === 0) return unknownUrl(told, frequency !== null);
  const lacking = channels.filter(({ is, target }) => !isThere(is, target, routes) || isDue(target.kind));
  if (lacking.length === 0) return NOTHING;
  const from = lacking.map(({ channel, is }) => ({ channel, baseUrl: is.base, scheme: is.scheme }));
  const of = (channel: ToldChannel): ChannelTarget | undefined =>
    channels.find((one) => one.channel === channel)?.target;
  const reports = lacking.some(({ channel }) => channel === 'reports') ? of('reports') : undefined;
  if (reports && (frequency === null || stream.metrics === undefined)) {
    return { kind: 'unknown', from, reason: NO_METRICS };
  }
  const push = of('push') ?? pushBeside(of('reports'), to);
  return {
    kind: 'update',
    push,
    ...(reports && { reports }),
    from,
    to: lacking.map(({ channel, target }) => urlOf(channel, target)),
  };
}

const NO_METRICS =
  'an update replaces reporting_webhook whole, and its frequency, its metrics or further members are not known here. Adopt the media buy again with reporting: { frequency, requestedMetrics } (null: none were asked for), or update it yourself';

const urlOf = (channel: ToldChannel, { base, kind }: ChannelTarget): MoveUrl => ({
  channel,
  baseUrl: base,
  scheme: schemeOf(kind),
});

/**
 * Returns the base URL and kind of route that a channel should have after a move. If the scheme stays, the kind stays
 * too: `reports` and `HMAC-SHA256` are two kinds with the same scheme.
 */
const targetOf = (
  is: Told,
  routes: OwnRoutes,
  { base = is.base, scheme = is.scheme }: MoveTarget,
): ChannelTarget => ({
  base,
  kind: scheme === is.scheme ? kindOf(is, routes) : scheme,
});

/**
 * Returns the target of the `push` channel of a media buy that has no `push` URL. The kind of route is the requested
 * scheme, otherwise that of the reports. A route of the kind `reports` cannot be used for `push`, so `signature` takes
 * its place.
 */
const pushBeside = (reports: ChannelTarget | undefined, { base, scheme }: MoveTarget): ChannelTarget => {
  const kind = scheme ?? reports?.kind ?? 'signature';
  return { base: reports?.base ?? base ?? '', kind: kind === 'reports' ? 'signature' : kind };
};

const isThere = (is: Told, { base, kind }: ChannelTarget, routes: OwnRoutes): boolean =>
  is.base === base && is.route === newestOf(routes[kind]) && is.scheme === schemeOf(kind);

/**
 * Returns the need of a media buy that has no current URL of this application. `unknown`: the call with its URL has not
 * ended, or the URL is not known here. `nothing`: no reports were requested, or the seller was told to stop, or to send
 * to another party.
 */
function unknownUrl(told: readonly Told[], hasReports: boolean): Need {
  if (told.some(({ formerAt }) => formerAt === undefined)) {
    return { kind: 'unknown', from: [], reason: 'the call that told its URL has not ended' };
  }
  if (told.length > 0 || !hasReports) return NOTHING;
  return {
    kind: 'unknown',
    from: [],
    reason: 'which URL its seller was told is not known here. Update it yourself, by registrations.create',
  };
}
