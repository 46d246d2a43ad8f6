// Finds the need of a media buy to be at the target of a move: nothing, an update, or unknown here (told.md §3.1). It
// is pure. Plans and steps of moves call it.
import type { Told, ToldChannel } from '../../windows/told.ts';
import { isTerminalBuy } from '../../windows/ends.ts';
import { TOLD_CHANNELS } from '../../windows/told.ts';
import type { RouteKind } from '../route-kind.ts';
import type { BuyStream } from '../streams.ts';
import type { MoveTarget } from './move-row.ts';
import type { MoveUrl } from './move-types.ts';
import { kindOf, newestOf, type OwnRoutes, schemeOf } from './own-routes.ts';

/** The target of one channel (reports or push) of a media buy. */
export interface ChannelTarget {
  readonly base: string;
  readonly kind: RouteKind;
}

/** The update that brings a media buy to its target. Each update contains `push`. */
export interface Needed {
  readonly push: ChannelTarget;
  readonly reports?: ChannelTarget;
  readonly from: readonly MoveUrl[];
  readonly to: readonly MoveUrl[];
}

/** The need of a media buy. `unknown`: no update can be made from what is known here. */
export type Need =
  | { readonly kind: 'nothing' }
  | ({ readonly kind: 'update' } & Needed)
  | { readonly kind: 'unknown'; readonly from: readonly MoveUrl[]; readonly reason: string };

/** The facts, besides the media buy, on which its need depends. */
export interface NeedContext {
  readonly routes: OwnRoutes;
  readonly to: MoveTarget;
  /** True if the credentials of a route are to be renewed now. */
  readonly isDue?: (kind: RouteKind) => boolean;
}

const NOTHING: Need = { kind: 'nothing' };

/** Returns the URL of a channel that is in use: it was acknowledged, and no other URL has replaced it. */
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
 * Returns the target of a channel. If the scheme stays, the kind of route stays too, because a `reports` route has HMAC
 * credentials as well.
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
 * Returns the target for the webhook about the end of the update itself, if the media buy has no `push` URL yet. It
 * gets the scheme of the buy's reports. It is signed if the reports have HMAC only because of their route.
 */
const pushBeside = (reports: ChannelTarget | undefined, { base, scheme }: MoveTarget): ChannelTarget => {
  const kind = scheme ?? reports?.kind ?? 'signature';
  return { base: reports?.base ?? base ?? '', kind: kind === 'reports' ? 'signature' : kind };
};

const isThere = (is: Told, { base, kind }: ChannelTarget, routes: OwnRoutes): boolean =>
  is.base === base && is.route === newestOf(routes[kind]) && is.scheme === schemeOf(kind);

/** Returns the need of a media buy without a URL of ours in use. Another party's URL is left alone. */
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
