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

const STATE_QUERY: Readonly<Record<keyof StateQuery, true>> = {
  agentUrl: true,
  limit: true,
  after: true,
  check: true,
  signal: true,
};

const RETIRE: Readonly<Record<keyof RetireOptions, true>> = { force: true };

/** A whole `UrlState` may be given. @throws RegistrationError */
export function requireRetired(url: UrlName, how: RetireOptions): void {
  checked(() => {
    onlyKnown('retire', how, RETIRE);
    flag('force', how.force);
    requireAgentUrl((url as UrlName | undefined)?.agentUrl);
    text('base', url.base);
    // A URL that is adopted may be the base itself.
    if (url.route !== '') text('route', url.route);
  });
}

/** @throws RegistrationError */
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

/** `createRegistrations({ call })`: a client of sellers. @throws ConfigError */
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

/** The transport of each seller. @throws ConfigError (the function) where the owner's gives none that there is. */
export function transportOf({ transport = 'tool' }: CallSeller): (agentUrl: string) => Transport {
  if (typeof transport !== 'function') return () => transport;
  return (agentUrl) => oneOf('call.transport', transport(agentUrl) ?? undefined, TRANSPORTS) ?? 'tool';
}

/** A client, for whoever is about to call. @param who e.g. `registrations.start`. @throws ConfigError where none was given. */
export function givenCaller(who: string, call: CallSeller | undefined): CallSeller {
  if (call) return call;
  throw new ConfigError(
    `${who}: these registrations have no client. Give it once: createRegistrations({ call, … }), e.g. mcpCaller({ auth }).`,
  );
}

/** @throws ConfigError */
export function requireSignal(signal: unknown): void {
  if (signal === undefined || isAbortSignal(signal)) return;
  throw new ConfigError('signal: is not an AbortSignal. Give one, or leave it out.');
}

/** Of `Registration.call`. @throws RegistrationError */
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
