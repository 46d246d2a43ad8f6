// Shows steps as their owner sees them: as a sentence, a state and a reason; and the place of a page in a plan. Pure.
// Plans of media buys and of subscriptions call it.
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

/** The longest id of a seller in a text, characters. */
const MOST_ID = 100;

/** The target of a plan, and the state of the seller's routes. */
export interface How {
  readonly routes: OwnRoutes;
  readonly to: Target;
  /** True if the credentials of a route are to be renewed. */
  readonly isDue: (kind: RouteKind) => boolean;
  /** True if the seller's last renewal is not over. */
  readonly isHeldUp: boolean;
}

const NOT_NOW =
  'its credentials cannot be renewed now: the last renewal of the seller is not over. registrations.state() says who is on its former URLs';

/** The need of a media buy or a subscription. */
export interface StepNeed {
  readonly kind: 'nothing' | 'update' | 'unknown';
  readonly from?: readonly MoveUrl[];
  readonly to?: readonly MoveUrl[];
  readonly reason?: string;
}

/** The media buy or subscription of a step. */
export type StepOf = Pick<MoveStep, 'agentUrl' | 'mediaBuyId' | 'subscription'>;

/** A step for its owner. @param why a reason beside the state; absent: that of the need. */
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

/** The reason not to begin a step that only a renewal needs. @param needed its need apart from renewal. */
export const whyNot = ({ isHeldUp }: How, needed: StepNeed): string | undefined =>
  isHeldUp && needed.kind === 'nothing' ? NOT_NOW : undefined;

/**
 * The step for something that needs none.
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

/** The beginning of a page of a plan: the number of the chosen seller, the part, and the row that it follows. */
export interface PlanPlace {
  readonly seller: number;
  readonly part: 'stream' | 'subscription';
  readonly after?: string;
}

export const placeText = ({ seller, part, after }: PlanPlace): string =>
  `${seller}.${part === 'stream' ? 'b' : 's'}${after === undefined ? '' : ` ${after}`}`;

/** The place in a text. @returns undefined for a text that is no place. */
export function placeIn(given: string): PlanPlace | undefined {
  const [, seller, part, after] = /^(\d{1,6})\.([bs])(?: (.*))?$/s.exec(given) ?? [];
  if (seller === undefined) return undefined;
  return {
    seller: Number(seller),
    part: part === 'b' ? 'stream' : 'subscription',
    ...(after !== undefined && { after }),
  };
}
