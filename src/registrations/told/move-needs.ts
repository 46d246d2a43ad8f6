import type { Told, ToldChannel } from '../../windows/told.ts';
import { isTerminalBuy } from '../../windows/ends.ts';
import { TOLD_CHANNELS } from '../../windows/told.ts';
import type { RouteKind } from '../route-kind.ts';
import type { BuyStream } from '../streams.ts';
import type { MoveTarget } from './move-row.ts';
import type { MoveUrl } from './move-types.ts';
import { kindOf, newestOf, type OwnRoutes, schemeOf } from './own-routes.ts';

/* What a media buy lacks to be where it is to go (told.md §3.1). Pure. */

/** Where a channel of a media buy is to go. */
export interface ChannelTarget {
  readonly base: string;
  readonly kind: RouteKind;
}

/** The update that takes it there. `push` goes with every update. */
export interface Needed {
  readonly push: ChannelTarget;
  readonly reports?: ChannelTarget;
  readonly from: readonly MoveUrl[];
  readonly to: readonly MoveUrl[];
}

/** What is to be done with a media buy: nothing, an update, or what nobody can do. */
export type Need =
  | { readonly kind: 'nothing' }
  | ({ readonly kind: 'update' } & Needed)
  | { readonly kind: 'unknown'; readonly from: readonly MoveUrl[]; readonly reason: string };

/** What a need depends on, beside the media buy. */
export interface NeedContext {
  readonly routes: OwnRoutes;
  readonly to: MoveTarget;
  /** Whether credentials of a route are to be renewed now. */
  readonly isDue?: (kind: RouteKind) => boolean;
}

const NOTHING: Need = { kind: 'nothing' };

/** The URL that counts on a channel: acknowledged, and not replaced. */
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

/** What has the scheme already keeps its kind of route: that of reports has HMAC, too. */
const targetOf = (
  is: Told,
  routes: OwnRoutes,
  { base = is.base, scheme = is.scheme }: MoveTarget,
): ChannelTarget => ({
  base,
  kind: scheme === is.scheme ? kindOf(is, routes) : scheme,
});

/**
 * The registration of the update's own end, where the media buy was told nothing of that channel before: by the scheme of its
 * reports. Beside reports that alone have HMAC there are signatures.
 */
const pushBeside = (reports: ChannelTarget | undefined, { base, scheme }: MoveTarget): ChannelTarget => {
  const kind = scheme ?? reports?.kind ?? 'signature';
  return { base: reports?.base ?? base ?? '', kind: kind === 'reports' ? 'signature' : kind };
};

const isThere = (is: Told, { base, kind }: ChannelTarget, routes: OwnRoutes): boolean =>
  is.base === base && is.route === newestOf(routes[kind]) && is.scheme === schemeOf(kind);

/** Without a URL of ours: another's is left alone. */
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
