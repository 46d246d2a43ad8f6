import { requireUrl } from '../config/public-url.ts';
import { flag, oneOf, onlyKnown, text, wholeNumber } from '../config/validate.ts';
import { ConfigError } from '../shared/errors.ts';
import { CALLER_MAKER, type CallerMaker } from './caller.ts';
import { RegistrationError } from './registrations-errors.ts';
import type { Given } from './answer-json.ts';
import type { OperationName, OperationState } from './operation.ts';
import { LISTED, type OperationQuery } from './list-operations.ts';
import type { OperationRequest } from './operations.ts';
import type { Reporting } from './request.ts';
import { checked, type Seller } from './seller.ts';
import type { WatchState } from './watch-task.ts';
import { isAbortSignal } from '../shared/realms.ts';

/*
 * Arguments of the methods. A wrong one is a RegistrationError `request_invalid`, before anything is written or called.
 */

const STATES: readonly (OperationState | WatchState)[] = [
  'calling',
  'open',
  'ended',
  'orphaned',
  'refused',
  'watched',
  'unresolved',
];

export const SELLER: Readonly<Record<keyof Seller, true>> = {
  agentUrl: true,
  brandJsonUrl: true,
  edition: true,
  format: true,
};

const REQUEST: Readonly<Record<keyof OperationRequest, true>> = {
  ...SELLER,
  taskType: true,
  arguments: true,
  context: true,
  ref: true,
  scheme: true,
  token: true,
  requestKeyMs: true,
};

const REPORTING: Readonly<Record<keyof Reporting, true>> = {
  frequency: true,
  requestedMetrics: true,
  scheme: true,
};

const QUERY: Readonly<Record<keyof OperationQuery, true>> = {
  state: true,
  agentUrl: true,
  limit: true,
  after: true,
};

const MOST_LISTED = 1000;

/** Of `reportingWebhook`, before `requireSeller`. @throws RegistrationError */
export function requireSellerAlone(method: string, seller: Seller): void {
  checked(() => onlyKnown(method, seller, SELLER));
}

/** @throws RegistrationError */
export function requireReportingAlone(reporting: Reporting): void {
  checked(() => onlyKnown('reportingWebhook', reporting, REPORTING));
}

/** Values of members are checked where they are read. @throws RegistrationError */
export function requireRequest(request: Given<OperationRequest>): void {
  checked(() => {
    onlyKnown('create', request, REQUEST);
    flag('token', request.token);
  });
}

/** A registration may be passed as a name too: its other members are ignored. @throws RegistrationError */
export function requireName(of: Partial<OperationName> | null | undefined): OperationName {
  return checked(() => {
    if (typeof of === 'string') {
      throw new ConfigError('get: is a string. Give both names: get({ agentUrl, operationId }).');
    }
    const { agentUrl, operationId } = of ?? {};
    return { agentUrl: requireAgentUrl(agentUrl), operationId: text('operationId', operationId) };
  });
}

/** Of a seller that may have been registered with `allowLoopback`. @throws RegistrationError */
export function requireAgentUrl(agentUrl: unknown): string {
  return checked(() => {
    requireUrl('agentUrl', agentUrl, true);
    return agentUrl as string;
  });
}

/** @throws RegistrationError */
export function requireQuery(query: OperationQuery): void {
  checked(() => {
    onlyKnown('list', query, QUERY);
    oneOf('state', query.state, STATES);
    wholeNumber('limit', query.limit, LISTED, 1, MOST_LISTED);
    if (query.agentUrl !== undefined) requireAgentUrl(query.agentUrl);
    if (query.after !== undefined) text('after', query.after);
  });
}

/** A client of sellers, as of `start` and of pollers. @throws ConfigError */
export function requireCaller(call: unknown): void {
  if (typeof call !== 'function') {
    throw new ConfigError(
      'call: is not a function. Give your client: (agentUrl, operation, args, { signal }) => …, or mcpCaller({ auth }).',
    );
  }
  const maker = (call as Partial<CallerMaker>)[CALLER_MAKER];
  if (maker === undefined) return;
  throw new ConfigError(
    `call: ${maker} is no client, but makes one. Give what it returns: ${maker}({ auth }).`,
  );
}

/** @throws RegistrationError */
export function requireCall(call: unknown, signal: unknown): void {
  checked(() => requireCaller(call));
  if (signal === undefined || isAbortSignal(signal)) return;
  throw new RegistrationError('request_invalid', 'signal: is not an AbortSignal. Give one, or leave it out.');
}
