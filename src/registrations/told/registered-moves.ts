import { givenCaller } from '../option-checks.ts';
import type { CallSeller } from '../call-seller.ts';
import { moveLoop, type MoveLoopContext } from './move-loop.ts';
import { type Moves, movesOf, type MovesContext } from './moves.ts';

/* Moves as registrations have them: what is stored by `apply` is done by whoever has started. */

/** Updates of one seller that are under way, and that were not answered. */
const PER_SELLER = 4;

type Context = Omit<MoveLoopContext & MovesContext, 'call' | 'perSeller' | 'wake'> & {
  /** Undefined: nobody is called. */
  readonly call: CallSeller | undefined;
};

export interface RegisteredMoves extends Moves {
  /** Does what is stored, until the signal aborts; resolves when the running steps have ended. */
  readonly run: (stopping: AbortSignal) => Promise<void>;
}

export function registeredMoves({ call, ...context }: Context): RegisteredMoves {
  const loop = call && moveLoop({ ...context, call, perSeller: PER_SELLER });
  const moves = movesOf({ ...context, wake: () => loop?.wake() });
  return {
    ...moves,
    apply: async (plan, options) => {
      givenCaller('registrations.apply', call);
      return moves.apply(plan, options);
    },
    run: async (stopping) => loop?.run(stopping),
  };
}
