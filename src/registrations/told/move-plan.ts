import { printableText } from '../../codec/printable.ts';
import type { RouteKind } from '../route-kind.ts';
import type { Target } from './move-request.ts';
import type { MoveList } from './move-row.ts';
import type { MoveState, MoveStep, MoveUrl } from './move-types.ts';
import type { OwnRoutes } from './own-routes.ts';

/* Steps as their owner sees them. Pure. */

export const STATE_OF: Readonly<Record<MoveList, MoveState>> = {
  waiting: 'waiting',
  claimed: 'waiting',
  under_way: 'under_way',
  refused: 'refused',
};

/** The longest id of a seller in a text, characters. */
const MOST_ID = 100;

/** Where a plan goes, and what its seller has. */
export interface How {
  readonly routes: OwnRoutes;
  readonly to: Target;
  /** Whether credentials of a route are to be renewed. */
  readonly isDue: (kind: RouteKind) => boolean;
  /** Whether the last renewal of the seller is not over. */
  readonly isHeldUp: boolean;
}

const NOT_NOW =
  'its credentials cannot be renewed now: the last renewal of the seller is not over. registrations.state() says who is on its former URLs';

/** What a media buy or a subscription lacks to be where it is to go. */
export interface StepNeed {
  readonly kind: 'nothing' | 'update' | 'unknown';
  readonly from?: readonly MoveUrl[];
  readonly to?: readonly MoveUrl[];
  readonly reason?: string;
}

/** Of whom a step is. */
export type StepOf = Pick<MoveStep, 'agentUrl' | 'mediaBuyId' | 'subscription'>;

/** @param why a reason that stands beside the state. */
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

/** The reason why a step is not begun that nothing but a renewal needs. @param needed what it lacks, whatever is due. */
export const whyNot = ({ isHeldUp }: How, needed: StepNeed): string | undefined =>
  isHeldUp && needed.kind === 'nothing' ? NOT_NOW : undefined;

/** The step of what lacks nothing. @param due what it lacks where its credentials are due: that cannot be begun now. */
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

/** Where a page of a plan begins: which seller of the chosen ones, media buys or subscriptions, and behind which row. */
export interface PlanPlace {
  readonly seller: number;
  readonly part: 'stream' | 'subscription';
  readonly after?: string;
}

export const placeText = ({ seller, part, after }: PlanPlace): string =>
  `${seller}.${part === 'stream' ? 'b' : 's'}${after === undefined ? '' : ` ${after}`}`;

/** @returns undefined for a text that is none. */
export function placeIn(given: string): PlanPlace | undefined {
  const [, seller, part, after] = /^(\d{1,6})\.([bs])(?: (.*))?$/s.exec(given) ?? [];
  if (seller === undefined) return undefined;
  return {
    seller: Number(seller),
    part: part === 'b' ? 'stream' : 'subscription',
    ...(after !== undefined && { after }),
  };
}
