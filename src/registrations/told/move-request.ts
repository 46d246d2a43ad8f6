// Checks the arguments of `plan` and `apply` before anything is read or written. A mistake is a RegistrationError
// `request_invalid`.
import { MAX_TEXT } from '../../codec/printable.ts';
import { isJsonObject } from '../../codec/members.ts';
import { flag, oneOf, onlyKnown, text, wholeNumber } from '../../config/validate.ts';
import { ConfigError } from '../../shared/errors.ts';
import { accountJson } from '../answer-json.ts';
import { requireAgentUrl } from '../option-checks.ts';
import { checked, SCHEMES } from '../seller.ts';
import type { MoveTarget } from './move-row.ts';
import type { ApplyOptions, MovePlan, MoveRequest, MoveState, MoveStep } from './move-types.ts';

const REQUEST: Readonly<Record<keyof MoveRequest, true>> = {
  baseUrl: true,
  scheme: true,
  renew: true,
  sellers: true,
  limit: true,
  after: true,
};

const PLAN: Readonly<Record<keyof MovePlan, true>> = { to: true, steps: true, next: true };
const TO: Readonly<Record<keyof MovePlan['to'], true>> = { baseUrl: true, scheme: true, renew: true };

const STATES: readonly MoveState[] = ['planned', 'waiting', 'under_way', 'done', 'refused', 'unknown'];

/** The number of steps on a page of a plan: the default, and the maximum. */
export const MOST_STEPS = 1000;
const MOST_SELLERS = 10_000;

/** The target of a plan. `renew`: true if the plan replaces credentials. */
export interface Target extends MoveTarget {
  readonly renew: boolean;
}

/** Checks the request of a plan, and returns its target. @throws RegistrationError */
export function checkedMove(request: MoveRequest, bases: readonly string[]): Target {
  return checked(() => {
    onlyKnown('plan', request, REQUEST);
    wholeNumber('limit', request.limit, MOST_STEPS, 1, MOST_STEPS);
    if (request.after !== undefined) text('after', request.after);
    const { sellers } = request;
    if (sellers !== undefined && !(Array.isArray(sellers) && sellers.length <= MOST_SELLERS)) {
      throw new ConfigError(
        `sellers: is not a list of at most ${MOST_SELLERS} agent URLs. Give sellers: ['https://seller.example/mcp'], or leave it out for all.`,
      );
    }
    sellers?.forEach(requireAgentUrl);
    return targetIn(request, bases);
  });
}

/** Returns the target of a request or of a plan. @throws ConfigError if a member is wrong. */
function targetIn({ baseUrl, scheme, renew }: MovePlan['to'], bases: readonly string[]): Target {
  oneOf('scheme', scheme, SCHEMES);
  const isRenewal = flag('renew', renew);
  const first = isRenewal ? undefined : bases[0];
  const base = baseUrl === undefined ? first : ourBase(baseUrl, bases);
  return { renew: isRenewal, ...(base !== undefined && { base }), ...(scheme !== undefined && { scheme }) };
}

/**
 * Returns the base URL without a `/` at its end.
 * @throws ConfigError if the URL is not one of `bases`, because no delivery to it would be accepted.
 */
function ourBase(baseUrl: unknown, bases: readonly string[]): string {
  const href = typeof baseUrl === 'string' && URL.canParse(baseUrl) ? new URL(baseUrl).href : undefined;
  const base = href?.replace(/\/+$/, '');
  if (base !== undefined && bases.includes(base)) return base;
  throw new ConfigError(
    `baseUrl: ${JSON.stringify(baseUrl)} is not one of ${bases.join(', ')}, so no delivery to it would be accepted. Give it to createRegistrations first: baseUrl: [new, old].`,
  );
}

/**
 * Checks a plan that is passed to `apply`.
 * @returns the plan's target, and the number of its steps to apply.
 * @throws RegistrationError
 */
export function checkedPlan(
  plan: MovePlan,
  options: ApplyOptions,
  bases: readonly string[],
): { readonly to: Target; readonly first: number } {
  return checked(() => {
    onlyKnown('apply', plan, PLAN);
    onlyKnown('apply', options, { first: true });
    const { steps, to } = plan;
    if (!Array.isArray(steps) || !isJsonObject(to)) {
      throw new ConfigError('apply: is not a plan. Give what registrations.plan() has returned.');
    }
    onlyKnown('plan.to', to, TO);
    (steps as readonly MoveStep[]).forEach(requireStep);
    const first = wholeNumber('first', options.first, steps.length, 0, Number.MAX_SAFE_INTEGER);
    return { to: targetIn(to, bases), first };
  });
}

function requireStep(step: MoveStep): void {
  if (!isJsonObject(step)) throw new ConfigError('plan.steps: has a member that is no step.');
  requireAgentUrl(step.agentUrl);
  oneOf('plan.steps[].state', step.state, STATES);
  const { mediaBuyId, subscription } = step;
  if (mediaBuyId !== undefined) {
    if (text('mediaBuyId', mediaBuyId).length <= MAX_TEXT) return;
  } else if (isJsonObject(subscription)) {
    text('subscription.ref', subscription.ref);
    if (subscription.account === undefined) return;
    accountJson(subscription.account);
    return;
  }
  throw new ConfigError('plan.steps: has a step of no media buy and no subscription. Give it unchanged.');
}
