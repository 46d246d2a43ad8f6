// Checks the arguments of the methods of `Registrations` before anything is written or called. A wrong argument is a
// RegistrationError `request_invalid`. A wrong option of `createRegistrations` stays a ConfigError.
import { requireUrl } from '../config/public-url.ts';
import { flag, oneOf, onlyKnown, text, wholeNumber } from '../config/validate.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Transport } from '../events/event.ts';
import { CALLER_MAKER, type CallerMaker } from './caller.ts';
import type { CallSeller } from './call-seller.ts';
import type { CallOptions } from './registration.ts';
import type { Given } from './answer-json.ts';
import type { OperationName, OperationState } from './operation.ts';
import { LISTED, type OperationQuery } from './list-operations.ts';
import type { OperationRequest } from './operations.ts';
import type { Reporting } from './request.ts';
import { checked, type Seller } from './seller.ts';
import type { RetireOptions, StateQuery, UrlName } from './told/state-types.ts';
import type { WatchState } from './watch-task.ts';
import { isAbortSignal } from '../shared/realms.ts';

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

/**
 * Refuses unknown members in the `seller` that `reportingWebhook` takes. `requireSeller` checks the values later.
 * @throws RegistrationError
 */
export function requireSellerAlone(method: string, seller: Seller): void {
  checked(() => onlyKnown(method, seller, SELLER));
}

/** Refuses unknown members in the `reporting` that `reportingWebhook` takes. @throws RegistrationError */
export function requireReportingAlone(reporting: Reporting): void {
  checked(() => onlyKnown('reportingWebhook', reporting, REPORTING));
}

/**
 * Refuses unknown members in the argument of `create`. The values are checked where they are used.
 * @throws RegistrationError
 */
export function requireRequest(request: Given<OperationRequest>): void {
  checked(() => {
    onlyKnown('create', request, REQUEST);
    flag('token', request.token);
  });
}

/**
 * Checks the name of an operation. A whole registration may be passed as a name: its other members are ignored.
 * @throws RegistrationError
 */
export function requireName(of: Partial<OperationName> | null | undefined): OperationName {
  return checked(() => {
    if (typeof of === 'string') {
      throw new ConfigError('get: is a string. Give both names: get({ agentUrl, operationId }).');
    }
    const { agentUrl, operationId } = of ?? {};
    return { agentUrl: requireAgentUrl(agentUrl), operationId: text('operationId', operationId) };
  });
}

/**
 * Checks the agent URL of a known seller. A URL on this machine is accepted, because the seller may have been
 * registered with `allowLoopback`.
 * @throws RegistrationError
 */
export function requireAgentUrl(agentUrl: unknown): string {
  return checked(() => {
    requireUrl('agentUrl', agentUrl, true);
    return agentUrl as string;
  });
}

/** Checks the argument of `registrations.list`. @throws RegistrationError */
export function requireQuery(query: OperationQuery): void {
  checked(() => {
    onlyKnown('list', query, QUERY);
    oneOf('state', query.state, STATES);
    wholeNumber('limit', query.limit, LISTED, 1, MOST_LISTED);
    if (query.agentUrl !== undefined) requireAgentUrl(query.agentUrl);
    if (query.after !== undefined) text('after', query.after);
  });
}

const STATE_QUERY: Readonly<Record<keyof StateQuery, true>> = {
  agentUrl: true,
  limit: true,
  after: true,
  check: true,
  signal: true,
};

const RETIRE: Readonly<Record<keyof RetireOptions, true>> = { force: true };

/**
 * Checks the arguments of `registrations.retire`. A whole `UrlState` may be passed: its other members are ignored.
 * @throws RegistrationError
 */
export function requireRetired(url: UrlName, how: RetireOptions): void {
  checked(() => {
    onlyKnown('retire', how, RETIRE);
    flag('force', how.force);
    requireAgentUrl((url as UrlName | undefined)?.agentUrl);
    text('base', url.base);
    // `route` may be empty, which it is for an adopted URL that is the base URL itself.
    if (url.route !== '') text('route', url.route);
  });
}

/** Checks the argument of `registrations.state`. @throws RegistrationError */
export function requireStateQuery(query: StateQuery): void {
  checked(() => {
    onlyKnown('state', query, STATE_QUERY);
    flag('check', query.check);
    requireSignal(query.signal);
    wholeNumber('limit', query.limit, LISTED, 1, MOST_LISTED);
    if (query.agentUrl !== undefined) requireAgentUrl(query.agentUrl);
    if (query.after !== undefined) text('after', query.after);
  });
}

/** Checks the option `call` of `createRegistrations`, the function that calls sellers. @throws ConfigError */
export function requireCaller(call: unknown): asserts call is CallSeller {
  if (typeof call !== 'function') {
    throw new ConfigError(
      'call: is not a function. Give your client: (agentUrl, operation, args, { signal }) => …, or mcpCaller({ auth }).',
    );
  }
  const { [CALLER_MAKER]: maker, transport } = call as Partial<CallerMaker & CallSeller>;
  if (maker !== undefined) {
    throw new ConfigError(
      `call: ${maker} is not a client, but makes one. Give what it returns: ${maker}({ auth }).`,
    );
  }
  if (typeof transport !== 'function') oneOf('call.transport', transport, TRANSPORTS);
}

const TRANSPORTS: readonly Transport[] = ['tool', 'agent'];

/**
 * Returns a function that gives the transport (`tool` or `agent`) of each seller. The returned function throws
 * ConfigError if the function `call.transport` names an unknown transport.
 */
export function transportOf({ transport = 'tool' }: CallSeller): (agentUrl: string) => Transport {
  if (typeof transport !== 'function') return () => transport;
  return (agentUrl) => oneOf('call.transport', transport(agentUrl) ?? undefined, TRANSPORTS) ?? 'tool';
}

/**
 * Returns the option `call`, for a method that is about to call a seller.
 * @param who the method's name, with which the error message begins, e.g. `registrations.start`.
 * @throws ConfigError if the option was not given.
 */
export function givenCaller(who: string, call: CallSeller | undefined): CallSeller {
  if (call) return call;
  throw new ConfigError(
    `${who}: these registrations have no client. Give it once: createRegistrations({ call, … }), e.g. mcpCaller({ auth }).`,
  );
}

/** Checks that a signal is an AbortSignal. @throws ConfigError */
export function requireSignal(signal: unknown): void {
  if (signal === undefined || isAbortSignal(signal)) return;
  throw new ConfigError('signal: is not an AbortSignal. Give one, or leave it out.');
}

/** Checks the options of `Registration.call`. @throws RegistrationError */
export function requireCall(
  seller: CallSeller | undefined,
  options: CallOptions = {},
): CallOptions & { readonly call: CallSeller } {
  return checked(() => {
    if (typeof options === 'function') {
      throw new ConfigError(
        'call: the client is given to createRegistrations({ call, … }). Write: await registration.call().',
      );
    }
    onlyKnown('call', options, { signal: true });
    const { signal } = options;
    requireSignal(signal);
    return { call: givenCaller('registration.call', seller), signal };
  });
}
