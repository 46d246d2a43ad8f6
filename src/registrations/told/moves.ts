// Implements `registrations.plan` and `apply`: lists the steps that move webhooks to another URL, and stores them to be
// carried out (told.md §3.1, §3.3).
import type { Hashes } from '../../crypto/engine.ts';
import { ConfigError } from '../../shared/errors.ts';
import { storedId } from '../../stages/ids.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../../stores/store.ts';
import { requestInvalid } from '../seller.ts';
import type { RouteKind } from '../route-kind.ts';
import { type BuyStream, buyStreamIn, isRegistered } from '../streams.ts';
import { MOST_KEPT } from '../subscriptions/wanted.ts';
import { type Need, needOf } from './move-needs.ts';
import {
  type How,
  placeIn,
  type PlanPlace,
  placeText,
  STATE_OF,
  type StepOf,
  stepOf,
  unkept,
  whyNot,
} from './move-plan.ts';
import { checkedMove, checkedPlan, MOST_STEPS, type Target } from './move-request.ts';
import {
  goneRow,
  type Move,
  moveIn,
  type MoveList,
  moveRow,
  type MoveTarget,
  wakeTurns,
} from './move-row.ts';
import { buyOf } from './move-steps.ts';
import type { ApplyOptions, MovePlan, MoveRequest, MoveStep } from './move-types.ts';
import { hasFormers, ownRoutesIn } from './own-routes.ts';
import type { Renewals } from './renewals.ts';
import { keptSet, setSteps } from './set-steps.ts';

export interface MovesContext {
  readonly registrations: StoreRegistrations;
  readonly hashes: Hashes;
  /** The base URLs of these registrations. New URLs for sellers are below the first one. */
  readonly bases: readonly string[];
  readonly renewals: Pick<Renewals, 'isDue' | 'begin'>;
  /** Lets the loop in move-loop.ts search immediately, because steps were stored. */
  readonly wake: () => void;
}

export interface Moves {
  readonly plan: (request?: MoveRequest) => Promise<MovePlan>;
  readonly apply: (plan: MovePlan, options?: ApplyOptions) => Promise<MovePlan>;
}

/** A page of a plan reads at most this many rows for each step that it may have. */
const READ_PER_STEP = 10;
/** The most media buys or subscription sets of a seller whose steps are computed in one transaction. */
const TOGETHER = 100;
/** The number of steps that are stored concurrently. */
const CONCURRENT = 10;

export function movesOf(context: MovesContext): Moves {
  const { registrations, hashes, bases, renewals, wake } = context;
  const howIn = (rows: RegistrationRows, to: Target, now: number): How => {
    const routes = ownRoutesIn(rows);
    const isDue = (kind: RouteKind): boolean => to.renew && renewals.isDue(routes[kind], now);
    return { routes, to, isDue, isHeldUp: hasFormers(routes) };
  };

  const plan = async (request: MoveRequest = {}): Promise<MovePlan> => {
    const to = checkedMove(request, bases);
    const { sellers = [undefined], limit = MOST_STEPS } = request;
    let at: PlanPlace | undefined = beginIn(request);
    const steps: MoveStep[] = [];
    let left = limit * READ_PER_STEP;
    while (at && at.seller < sellers.length && left > 0 && steps.length < limit) {
      const most = rowsFor(at, limit - steps.length);
      const { rows, next } = await read(at, sellers[at.seller], Math.min(left, most));
      left -= Math.max(1, rows.length);
      steps.push(...(await stepsIn(rows, at.part, to)));
      at = next === undefined ? following(at) : { ...at, after: next };
    }
    const isOver = !at || at.seller >= sellers.length;
    return { to: askedOf(request, to), steps, ...(at && !isOver && { next: placeText(at) }) };
  };

  const read = async ({ part, after }: PlanPlace, sender: string | undefined, limit: number) =>
    registrations
      .page({
        kind: part,
        limit,
        ...(sender !== undefined && { sender }),
        ...(after !== undefined && { after }),
      })
      .catch((error: unknown) => {
        throw requestInvalid(error);
      });

  const stepsIn = async (
    rows: readonly RegistrationRow[],
    part: PlanPlace['part'],
    to: Target,
  ): Promise<readonly MoveStep[]> => {
    const found: MoveStep[] = [];
    for (const { sender, own } of bySender(rows)) {
      found.push(
        ...(await registrations.run(sender, (step, now) => {
          const how = howIn(step, to, now);
          return own.flatMap((row) =>
            part === 'stream' ? (buyStep(step, row, how) ?? []) : setSteps(row, how),
          );
        })),
      );
    }
    return found;
  };

  const apply = async (given: MovePlan, options: ApplyOptions = {}): Promise<MovePlan> => {
    const { to, first } = checkedPlan(given, options, bases);
    const chosen = given.steps.slice(0, first);
    if (to.renew) {
      for (const agentUrl of new Set(chosen.map((step) => step.agentUrl))) await renewals.begin(agentUrl);
    }
    const done: MoveStep[] = [];
    for (let from = 0; from < chosen.length; from += CONCURRENT) {
      const now = chosen.slice(from, from + CONCURRENT);
      done.push(...(await Promise.all(now.map((step) => kept(step, to)))));
    }
    wake();
    return { ...given, steps: [...done, ...given.steps.slice(first)] };
  };

  const kept = async (step: MoveStep, to: Target): Promise<MoveStep> => {
    const { agentUrl, mediaBuyId, subscription } = step;
    return registrations.run(agentUrl, (rows, now) => {
      const how = howIn(rows, to, now);
      if (mediaBuyId !== undefined) {
        return keptIn(rows, { agentUrl, mediaBuyId }, storedId(mediaBuyId, hashes), how, now);
      }
      if (!subscription) return step;
      return keptSet(rows, { agentUrl, subscription }, how, now, hashes);
    });
  };

  return { plan, apply };
}

/**
 * Returns the target as the plan names it. It includes the base URL, because the process that applies the plan may have
 * another first base URL.
 */
const askedOf = ({ scheme, renew }: MoveRequest, { base }: Target): MovePlan['to'] => ({
  ...(base !== undefined && { baseUrl: base }),
  ...(scheme !== undefined && { scheme }),
  ...(renew !== undefined && { renew }),
});

/** Returns the position at which the requested page begins. @throws RegistrationError `request_invalid` */
function beginIn({ after }: MoveRequest): PlanPlace {
  if (after === undefined) return { seller: 0, part: 'stream' };
  const place = placeIn(after);
  if (place) return place;
  throw requestInvalid(
    new ConfigError("after: is not the next of an earlier page. Give that page's next, or leave it out."),
  );
}

/**
 * Returns the number of rows to read for about `steps` steps. A row of a media buy has at most one step, a row of
 * subscriptions up to `MOST_KEPT`.
 */
const rowsFor = ({ part }: PlanPlace, steps: number): number =>
  part === 'stream' ? steps : Math.ceil(steps / MOST_KEPT);

const following = ({ seller, part }: PlanPlace): PlanPlace =>
  part === 'stream' ? { seller, part: 'subscription' } : { seller: seller + 1, part: 'stream' };

/** Groups consecutive rows by seller, at most `TOGETHER` in a group. */
function bySender(
  rows: readonly RegistrationRow[],
): readonly { readonly sender: string; readonly own: readonly RegistrationRow[] }[] {
  const parts: { readonly sender: string; readonly own: RegistrationRow[] }[] = [];
  for (const row of rows) {
    const last = parts.at(-1);
    if (last?.sender === row.sender && last.own.length < TOGETHER) last.own.push(row);
    else parts.push({ sender: row.sender, own: [row] });
  }
  return parts;
}

/**
 * True if the media buy uses HMAC or bearer credentials. A renewal leaves out others, because signed webhooks have no
 * credentials.
 */
const hasCredentials = (need: Need, { told = [] }: BuyStream): boolean =>
  need.kind === 'update'
    ? need.from.some(({ scheme }) => scheme !== 'signature')
    : told.some(({ scheme, formerAt }) => scheme !== 'signature' && formerAt === undefined);

/** Returns the step that a media buy needs in a plan; undefined if it needs none. */
function buyStep(
  rows: RegistrationRows,
  { sender, id, value, list }: RegistrationRow,
  how: How,
): MoveStep | undefined {
  const stream = buyStreamIn({ value });
  if (!isRegistered(stream) || list === 'closed') return undefined;
  const row = rows.get('move', id);
  const need = needOf(stream, how);
  if (need.kind === 'nothing' && (!row || row.list === 'refused')) return undefined;
  if (how.to.renew && need.kind !== 'nothing' && !hasCredentials(need, stream)) return undefined;
  const of = { agentUrl: sender, mediaBuyId: stream.mediaBuyId };
  if (!row) {
    const why = whyNot(how, needOf(stream, { routes: how.routes, to: how.to }));
    return stepOf(of, need, need.kind === 'unknown' ? 'unknown' : 'planned', why);
  }
  return stepOf(of, need, STATE_OF[row.list as MoveList], moveIn(row).reason);
}

/** Stores the step of a media buy, unless the media buy no longer needs it. @returns the step with its new state. */
function keptIn(
  rows: RegistrationRows,
  of: StepOf & { readonly mediaBuyId: string },
  id: string,
  { routes, to: { base, scheme }, isDue }: How,
  now: number,
): MoveStep {
  const to: MoveTarget = { ...(base !== undefined && { base }), ...(scheme !== undefined && { scheme }) };
  const row = rows.get('move', id);
  const stream = buyOf(rows, id);
  const need: Need = stream ? needOf(stream, { routes, to }) : { kind: 'nothing' };
  if (row?.list === 'claimed' || row?.list === 'under_way') return wanted(rows, of, { row, need, to });
  if (need.kind === 'update') {
    const since = sinceOf(row, now);
    const move: Move = { mediaBuyId: of.mediaBuyId, to, since, tries: 0, conflicts: 0, looks: 0 };
    rows.save(moveRow({ sender: of.agentUrl, id }, move, 'waiting'));
    wakeTurns(rows, of.agentUrl, now);
    return stepOf(of, need, 'waiting');
  }
  if (row) rows.save(goneRow(row));
  if (need.kind === 'unknown') return stepOf(of, need, 'unknown');
  return unkept(of, stream && needOf(stream, { routes, to, isDue }));
}

/**
 * Stores a new target for a move that already runs. When the move's update has ended, the move goes on to the new
 * target if needed.
 */
function wanted(
  rows: RegistrationRows,
  of: StepOf,
  { row, need, to }: { readonly row: RegistrationRow; readonly need: Need; readonly to: MoveTarget },
): MoveStep {
  const known = moveIn(row);
  const isSame = JSON.stringify(known.to) === JSON.stringify(to);
  if (!isSame) rows.save({ ...row, value: JSON.stringify({ ...known, to } satisfies Move) });
  return stepOf(of, need, STATE_OF[row.list as MoveList], known.reason);
}

const sinceOf = (row: RegistrationRow | undefined, now: number): number =>
  row?.list === 'waiting' ? moveIn(row).since : now;
