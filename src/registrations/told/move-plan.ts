// Describes the steps of a move plan: as a sentence, with a state and a reason. Also encodes the position at which a
// page of the plan begins. Pure functions, used for media buys and for subscriptions.
import { printableText } from '../../codec/printable.ts';
import type { RouteKind } from '../route-kind.ts';
import type { Target } from './move-request.ts';
import type { MoveList } from './move-row.ts';
import type { MoveState, MoveStep, MoveUrl } from './move-types.ts';
import type { OwnRoutes } from './own-routes.ts';

export const STATE_OF: Readonly<Record<MoveList, MoveState>> = {
  waiting: 'waiting',
  claimed: 'waiting',
  under_way: 'under_way',
  refused: 'refused',
};

/** The most characters of a media buy id or a `ref` in a sentence. */
const MOST_ID = 100;

/** The target of a plan, and the seller's current routes (URLs with credentials). */
export interface How {
  readonly routes: OwnRoutes;
  readonly to: Target;
  /** True if the plan has to renew the credentials of the route of that kind. */
  readonly isDue: (kind: RouteKind) => boolean;
  /** True if the seller's previous renewal of credentials is not finished, so that no new one may begin. */
  readonly isHeldUp: boolean;
}

const NOT_NOW =
  'its credentials cannot be renewed now: the last renewal of the seller is not over. registrations.state() says who is on its former URLs';

/** The change that a media buy or a subscription needs to reach the target of a plan. */
export interface StepNeed {
  readonly kind: 'nothing' | 'update' | 'unknown';
  readonly from?: readonly MoveUrl[];
  readonly to?: readonly MoveUrl[];
  readonly reason?: string;
}

/** The identity of a step: the seller, and the media buy or the subscription. */
export type StepOf = Pick<MoveStep, 'agentUrl' | 'mediaBuyId' | 'subscription'>;

/** Returns a step as the application sees it. @param why the reason for the state; absent: the reason in `need`. */
export function stepOf(of: StepOf, need: StepNeed, state: MoveState, why?: string): MoveStep {
  const { from = [], to = [] } = need;
  const reason = why ?? need.reason;
  return {
    ...of,
    from,
    to,
    text: textOf(of, { from, to }, state, reason),
    state,
    ...(reason !== undefined && { reason }),
  };
}

/**
 * Returns the reason not to begin a step whose only purpose is a renewal of credentials, while a previous renewal runs;
 * otherwise undefined.
 * @param needed the change that the step needs apart from the renewal.
 */
export const whyNot = ({ isHeldUp }: How, needed: StepNeed): string | undefined =>
  isHeldUp && needed.kind === 'nothing' ? NOT_NOW : undefined;

/**
 * Returns the step for a media buy or subscription that needs no change now: `done`, or `planned` if its credential
 * renewal cannot begin yet.
 * @param due the change that the renewal would need.
 */
export const unkept = (of: StepOf, due?: StepNeed): MoveStep =>
  due?.kind === 'update' ? stepOf(of, due, 'planned', NOT_NOW) : stepOf(of, { kind: 'nothing' }, 'done');

function textOf(
  { agentUrl, mediaBuyId, subscription }: StepOf,
  { from, to }: Pick<MoveStep, 'from' | 'to'>,
  state: MoveState,
  reason: string | undefined,
): string {
  const what =
    mediaBuyId === undefined
      ? `subscription ${printableText(subscription?.ref ?? '', MOST_ID)}`
      : `media buy ${printableText(mediaBuyId, MOST_ID)}`;
  const moves = from.map((one, i) => `${one.channel} from ${placeOf(one)} to ${placeOf(to[i])}`);
  const is = state.replace('_', ' ');
  return `${agentUrl} ${what}: ${[...moves, is].join('; ')}${reason === undefined ? '' : `: ${reason}`}`;
}

const placeOf = (url: MoveUrl | undefined): string => (url ? `${url.baseUrl} (${url.scheme})` : 'nowhere');

/**
 * The position at which a page of a plan begins: the seller's index in the request, the kind of rows, and the store's
 * page cursor.
 */
export interface PlanPlace {
  readonly seller: number;
  readonly part: 'stream' | 'subscription';
  readonly after?: string;
}

export const placeText = ({ seller, part, after }: PlanPlace): string =>
  `${seller}.${part === 'stream' ? 'b' : 's'}${after === undefined ? '' : ` ${after}`}`;

/** Reads a position from its text. @returns undefined if the text is not a position. */
export function placeIn(given: string): PlanPlace | undefined {
  const [, seller, part, after] = /^(\d{1,6})\.([bs])(?: (.*))?$/s.exec(given) ?? [];
  if (seller === undefined) return undefined;
  return {
    seller: Number(seller),
    part: part === 'b' ? 'stream' : 'subscription',
    ...(after !== undefined && { after }),
  };
}
