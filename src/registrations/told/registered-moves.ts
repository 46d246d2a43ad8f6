// Connects the parts of moves: plan and apply, the loop that carries out steps, and the renewal of credentials. Loaded
// by `createRegistrations` when first used. After `start`, a process also carries out steps that other processes
// stored.
import { messageOf } from '../../shared/errors.ts';
import type { CallSeller } from '../call-seller.ts';
import { allRows } from '../operation-rows.ts';
import { givenCaller } from '../option-checks.ts';
import { ROUTE_KINDS } from '../route-kind.ts';
import { moveLoop, type MoveLoopContext } from './move-loop.ts';
import { type Moves, movesOf, type MovesContext } from './moves.ts';
import { retireFormers } from './former-routes.ts';
import { ownRouteIn } from './own-routes.ts';
import { renewalsOf, type RenewalsContext } from './renewals.ts';

const KINDS: ReadonlySet<string> = new Set(ROUTE_KINDS);

/** The most updates of one seller that may be unanswered at the same time. */
const PER_SELLER = 4;

type Context = Omit<
  MoveLoopContext & MovesContext & RenewalsContext,
  'call' | 'perSeller' | 'wake' | 'goOn' | 'retireFormers' | 'renewals'
> & {
  /** True if credentials that are due are renewed automatically, without `apply`. */
  readonly isAuto: boolean;
  /** The client that calls sellers; undefined: no seller is called. */
  readonly call: CallSeller | undefined;
};

export interface RegisteredMoves extends Moves {
  /** Carries out stored steps until the signal aborts; resolves when the running steps have ended. */
  readonly run: (stopping: AbortSignal) => Promise<void>;
}

/** The interval between two searches for credentials that are due. Ms. */
const RENEW_EVERY_MS = 3_600_000;
/** The time after a renewal during which media buys that still use the former credentials are searched for. Ms. */
const LATE_MS: number = 7 * 86_400_000;

export function registeredMoves({ call, isAuto, ...context }: Context): RegisteredMoves {
  const { registrations, sleep, warn } = context;
  const renewals = renewalsOf(context);
  const loop =
    call &&
    moveLoop({
      ...context,
      call,
      perSeller: PER_SELLER,
      goOn: renewals.goOn,
      retireFormers: (agentUrl) => retireFormers(context, agentUrl),
    });
  const moves = movesOf({ ...context, renewals, wake: () => loop?.wake() });

  /** Returns the agent URLs of sellers whose credentials are due for renewal, or were renewed lately. */
  const toRenew = async (): Promise<ReadonlySet<string>> => {
    const found = new Set<string>();
    const now = await registrations.run('', (_rows, at) => at);
    for await (const row of allRows(registrations, { kind: 'route' })) {
      if (!KINDS.has(row.id)) continue;
      const route = ownRouteIn(row);
      const isLate = route.formers !== undefined && now - (route.madeAt ?? 0) < LATE_MS;
      if (isLate || route.next || renewals.isDue(route, now)) found.add(row.sender);
    }
    return found;
  };
  const renew = async (agentUrl: string): Promise<void> => {
    await renewals.begin(agentUrl);
    for (let after: string | undefined; ;) {
      const plan = await moves.plan({
        renew: true,
        sellers: [agentUrl],
        ...(after !== undefined && { after }),
      });
      // Only steps that can begin now are applied. Refused steps are left to the application. A planned step with a
      // reason waits for the seller's previous renewal.
      const steps = plan.steps.filter(({ state, reason }) => state === 'planned' && reason === undefined);
      if (steps.length > 0) await moves.apply({ ...plan, steps });
      if (plan.next === undefined) return;
      after = plan.next;
    }
  };
  const renewing = async (stopping: AbortSignal): Promise<void> => {
    while (!stopping.aborted) {
      try {
        for (const agentUrl of await toRenew()) if (!stopping.aborted) await renew(agentUrl);
      } catch (error) {
        warn({ error }, `Credentials are renewed later: ${messageOf(error)}`);
      }
      await sleep(RENEW_EVERY_MS, stopping);
    }
  };
  return {
    ...moves,
    apply: async (plan, options) => {
      givenCaller('registrations.apply', call);
      return moves.apply(plan, options);
    },
    run: async (stopping) => {
      await Promise.all([loop?.run(stopping), isAuto ? renewing(stopping) : undefined]);
    },
  };
}
