// Shows steps of moves to their owner: as a sentence, with a state and a reason. It also encodes the position in a plan
// at which a page begins. It is pure. Plans of media buys and of subscriptions call it.
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

/** The most characters of a seller's id in a text. */
const MOST_ID = 100;

/** The target of a plan, and the seller's routes as they are now. */
export interface How {
  readonly routes: OwnRoutes;
  readonly to: Target;
  /** True if the credentials of a route are to be renewed. */
  readonly isDue: (kind: RouteKind) => boolean;
  /** True if the seller's previous renewal is not finished. */
  readonly isHeldUp: boolean;
}

const NOT_NOW =
  'its credentials cannot be renewed now: the last renewal of the seller is not over. registrations.state() says who is on its former URLs';

/** The need of a media buy or a subscription to be at its target. */
export interface StepNeed {
  readonly kind: 'nothing' | 'update' | 'unknown';
  readonly from?: readonly MoveUrl[];
  readonly to?: readonly MoveUrl[];
  readonly reason?: string;
}

/** The media buy or subscription of a step. */
export type StepOf = Pick<MoveStep, 'agentUrl' | 'mediaBuyId' | 'subscription'>;

/** Returns a step in the form for its owner. @param why the reason for the state; absent: the reason of the need. */
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
 * Returns the reason not to begin a step that is needed only for a renewal; otherwise undefined. @param needed the need
 * without the renewal.
 */
export const whyNot = ({ isHeldUp }: How, needed: StepNeed): string | undefined =>
  isHeldUp && needed.kind === 'nothing' ? NOT_NOW : undefined;

/**
 * Returns the step for something that needs none now.
 * @param due its need if its credentials are due: a renewal that cannot begin now.
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
 * The position at which a page of a plan begins: the index of the seller in the request, the part, and the preceding
 * row.
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
