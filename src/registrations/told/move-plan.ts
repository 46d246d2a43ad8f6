import { printableText } from '../../codec/printable.ts';
import type { MoveList } from './move-row.ts';
import type { Need } from './move-needs.ts';
import type { MoveState, MoveStep, MoveUrl } from './move-types.ts';

/* Steps as their owner sees them. Pure. */

export const STATE_OF: Readonly<Record<MoveList, MoveState>> = {
  waiting: 'waiting',
  claimed: 'waiting',
  under_way: 'under_way',
  refused: 'refused',
};

/** The longest id of a seller in a text, characters. */
const MOST_ID = 100;

/** Of whom a step is. */
export type StepOf = Pick<MoveStep, 'agentUrl' | 'mediaBuyId' | 'subscription'>;

/** @param why a reason that stands beside the state. */
export function stepOf(of: StepOf, need: Need, state: MoveState, why?: string): MoveStep {
  const { from, to } = { from: [], to: [], ...('from' in need && need) } as {
    readonly from: readonly MoveUrl[];
    readonly to: readonly MoveUrl[];
  };
  const reason = why ?? (need.kind === 'unknown' ? need.reason : undefined);
  return {
    ...of,
    from,
    to,
    text: textOf(of, { from, to }, state, reason),
    state,
    ...(reason !== undefined && { reason }),
  };
}

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
