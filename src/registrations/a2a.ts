// Calls sellers over A2A: finds the agent's URL and version in its card, sends the call, and reads the answer (calls.md
// §4). Owners pass `a2aCaller` to `createRegistrations({ call })`; `proto-webhooks state` uses it too.
import { isLegacyAgentCard, parseLegacyAgentCard } from '@a2a-js/sdk/compat/v0_3/client';
import { A2A_ERROR_CODE } from '@a2a-js/sdk/errors';
import { putBounded } from '../shared/bounded.ts';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { wholeBody } from '../calls/answer-body.ts';
import { bounded, boundedJson, errorJson } from '../calls/bounds.ts';
import { type Moved, RedirectError } from '../calls/redirects.ts';
import { beforeCall } from '../calls/refused-answer.ts';
import { utf8 } from '../codec/encoding.ts';
import { isPrintable, MAX_TEXT, MAX_URL_BYTES, printableName, printableText } from '../codec/printable.ts';
import { PrintableError } from '../codec/printable-value.ts';
import { messageOf, textOf } from '../shared/errors.ts';
import { canonicalOrUndefined } from '../config/public-url.ts';
import { oneOf } from '../config/validate.ts';
import { stateOf } from '../events/agent-data.ts';
import { limited, orAborted } from '../shared/time-limits.ts';
import { refusalIn, SellerError, sellerText, TaskUnknownError } from './answer.ts';
import {
  CALLER_MAKER,
  CALLER_OPTIONS,
  type Caller,
  type CallerMaker,
  callerOf,
  type CallerOptions,
  namesIn,
  noAgentOf,
  type SellerCall,
  tokenCall,
} from './caller.ts';
import type { CallSeller } from './call-seller.ts';
import {
  AGENT_FORMS,
  AGENT_PROFILE,
  AGENT_VERSIONS,
  agentMessage,
  type AgentVersion,
  profileMessage,
} from './request.ts';

export type { AgentVersion } from './request.ts';
export * from './caller-face.ts';
export type { CallerOptions, SellerAuth, TokenCall } from './caller.ts';

/** Options of `a2aCaller`: those of `CallerOptions`, and the version of A2A. */
export interface A2aOptions extends CallerOptions {
  /** The version of A2A. If it is set, no agent card is read and the agent URL itself is called. */
  readonly version?: AgentVersion;
}

const KNOWN: Readonly<Record<keyof A2aOptions, true>> = { ...CALLER_OPTIONS, version: true };

/** The operation that requests a task's status. It is A2A's own method, with the argument `{ id }`, and no skill. */
const TASK_QUERY = 'tasks/get';

/** The agent to call: its URL, and the form of its requests. */
interface Agent {
  /** Maps each URL that the agent has redirected to its new URL, so that later requests go straight there. */
  readonly moved: Moved;
  readonly url: string;
  readonly version: AgentVersion;
  /** The `tenant` that selects one of several agents at one URL; empty if there is only one. */
  readonly tenant: string;
  /** True if the agent's card requires the profile extension (calls.md §4.14). */
  readonly hasProfile?: boolean;
  /** The ids of the skills in the agent's card; undefined if no card was read. */
  readonly skills?: readonly string[];
}

/**
 * Creates a function that calls operations of sellers over A2A (JSON-RPC), for the option `call` of
 * `createRegistrations`. It takes URL and version from the agent card, which it reads every five minutes and after a
 * failed call. It throws its errors, logs nothing and raises no alarm.
 * @returns a function that resolves with the agent's task or message. It rejects with SellerError if the seller
 *   refuses the credentials or the registration, and with SellerBusyError if it asks to call later. It rejects with
 *   TaskUnknownError if the seller does not know the task.
 * @throws ConfigError if an option is wrong; the message says what to change.
 * @example
 * ```ts
 * import { a2aCaller } from 'proto-webhooks/a2a';
 *
 * export const callSeller = a2aCaller({ auth: { type: 'bearer', token: process.env['SELLER_TOKEN'] } });
 * ```
 */
export function a2aCaller(options: A2aOptions = {}): CallSeller {
  const caller = callerOf('a2aCaller', options, KNOWN);
  const { timeoutMs } = caller;
  const version = oneOf('version', options.version, AGENT_VERSIONS);
  const cards = keptCards();
  const limit = { ms: timeoutMs, reason: `the call timed out: no answer within ${timeoutMs} ms` };
  const call: CallSeller = (agentUrl, operation, args, { signal, ref }) =>
    limited(limit, signal, async (within) => {
      const made = await orAborted(caller.callFor(agentUrl, tokenCall(operation, ref)), within);
      const exchange = exchangeBy(caller, made, within);
      const agent = version
        ? { url: agentUrl, version, tenant: '', moved: new Map<string, string>() }
        : (cards.get(agentUrl) ?? cards.keep(agentUrl, await agentOf(agentUrl, caller, exchange)));
      const request = requestOf(agent, operation, args);
      try {
        return bounded(resultOf(agent, await exchange(agent, request)));
      } catch (error) {
        // The call may have failed because the agent has moved, so the next call reads the agent's card again.
        cards.forget(agentUrl);
        throw error;
      }
    });
  const operations: CallSeller['operations'] = (agentUrl, { signal, ref }) =>
    limited(limit, signal, async (within) => {
      if (version) return undefined;
      const made = await orAborted(caller.callFor(agentUrl, tokenCall('agent-card', ref)), within);
      const exchange = exchangeBy(caller, made, within);
      const known = cards.get(agentUrl);
      return (known ?? cards.keep(agentUrl, await agentOf(agentUrl, caller, exchange))).skills;
    });
  return Object.assign(call, { transport: 'agent' as const, operations });
}

Object.assign(a2aCaller, { [CALLER_MAKER]: 'a2aCaller' } satisfies CallerMaker);

/** The time for which an agent card is cached before it is read again. Ms. */
const CARD_KEPT_MS = 300_000;
/** The largest number of agents whose cards are cached. */
const MAX_CARDS = 1000;

function keptCards(): {
  readonly get: (agentUrl: string) => Agent | undefined;
  readonly keep: (agentUrl: string, agent: Agent) => Agent;
  readonly forget: (agentUrl: string) => void;
} {
  const kept = new Map<string, { readonly agent: Agent; readonly at: number }>();
  return {
    get: (agentUrl) => {
      const found = kept.get(agentUrl);
      return found && performance.now() - found.at < CARD_KEPT_MS ? found.agent : undefined;
    },
    keep: (agentUrl, agent) => {
      putBounded(kept, agentUrl, { agent, at: performance.now() }, MAX_CARDS);
      return agent;
    },
    forget: (agentUrl) => void kept.delete(agentUrl),
  };
}

interface Answered {
  readonly status: number;
  /** The parsed body of the response; undefined if the body is not a JSON object. */
  readonly value: JsonObject | undefined;
}

/** Sends one HTTP request to the agent: a POST of the JSON-RPC `request`, or a GET if there is none. */
type Exchange = (of: Omit<Agent, 'tenant'>, request?: JsonObject) => Promise<Answered>;

function exchangeBy(
  { maxAnswerBytes, maxValues }: Caller,
  { fetch }: SellerCall,
  signal: AbortSignal,
): Exchange {
  return async ({ url, version, moved, hasProfile }, request) => {
    const headers = {
      accept: 'application/json',
      'a2a-version': version,
      ...(hasProfile && { 'a2a-extensions': AGENT_PROFILE }),
      ...(request && { 'content-type': 'application/json' }),
    };
    const body = request && (utf8(JSON.stringify(request)) as Uint8Array<ArrayBuffer>);
    const method = request ? 'POST' : 'GET';
    const response = await fetch(url, { method, headers, moved, signal, ...(body && { body }) });
    const failure = request && noAgentOf(url, response);
    if (failure) {
      await response.body?.cancel().catch(() => undefined);
      throw failure;
    }
    const read = response.ok ? boundedJson : errorJson;
    const value = await read(await wholeBody(response, maxAnswerBytes, signal), maxValues);
    return { status: response.status, value: isJsonObject(value) ? value : undefined };
  };
}

/**
 * Thrown if a task's status is requested by `tasks/get` from an agent that requires the profile extension. Such an
 * agent tells the status only by its skill `get_task_status`, which a poller then calls (calls.md §4.14).
 */
class NoTaskQueryError extends PrintableError {
  override readonly name = 'NoTaskQueryError';
  /** The stable code, always `no_operation`. */
  readonly code = 'no_operation';

  constructor() {
    super(
      `The operation ${TASK_QUERY} is not available: the agent's card requires the profile extension. Call get_task_status with { task_id }.`,
    );
  }
}

/**
 * Returns the JSON-RPC request of a call. Its id is always 1, so that a repeated call has the same bytes. Ids need not
 * differ, because each HTTP exchange carries one request.
 */
function requestOf(
  { version, tenant, hasProfile }: Agent,
  operation: string,
  args: Parameters<CallSeller>[2],
): JsonObject {
  const { send, getTask } = AGENT_FORMS[version];
  const isQuery = operation === TASK_QUERY;
  if (isQuery && hasProfile) throw new NoTaskQueryError();
  const { idempotency_key: key } = args;
  const messageId = typeof key === 'string' ? key : globalThis.crypto.randomUUID();
  const messageOf = (): JsonObject =>
    hasProfile
      ? profileMessage(operation, args, messageId)
      : // A registered task may take days, so its call is answered at once. Only for an operation without a request key does the agent wait until it is done.
        agentMessage(operation, args, version, { messageId, atOnce: key !== undefined });
  const params = isQuery ? args : messageOf();
  return {
    jsonrpc: '2.0',
    id: 1,
    method: isQuery ? getTask : send,
    params: { ...(tenant !== '' && { tenant }), ...params },
  };
}

/**
 * Returns the result in an agent's answer.
 * @throws SellerError if the answer is a refusal, TaskUnknownError if the seller does not know the task. After any
 *   other Error it is unknown if the operation was done.
 */
function resultOf({ url, hasProfile }: Agent, { status, value }: Answered): unknown {
  const error = value?.['error'];
  if (isJsonObject(error)) throw refusalOf(error);
  const result = value?.['result'];
  if (!isJsonObject(result)) throw new Error(`${url} answers HTTP ${status} without a JSON-RPC result.`);
  // In A2A 1.0 the result wraps the task or the message in a member called `task` or `message`.
  const answer = result['task'] ?? result['message'] ?? result;
  if (hasProfile && isUnderWay(answer)) {
    throw new Error(`${url} answers before the call has ended, and names no task. It is called again.`);
  }
  return answer;
}

/**
 * True if the answer is an A2A Task that is not done yet. The id of such a Task names only the A2A exchange, so the
 * seller's own task cannot be polled by it.
 */
function isUnderWay(answer: unknown): boolean {
  const state = isJsonObject(answer) ? stateOf(answer['status']) : undefined;
  return state === 'submitted' || state === 'working';
}

function refusalOf(error: JsonObject): Error {
  const { code, message } = error;
  const refusal = refusalIn({ error });
  if (refusal) return refusal;
  const detail = typeof message === 'string' ? sellerText(message) : '';
  if (code === A2A_ERROR_CODE.TASK_NOT_FOUND) return new TaskUnknownError(detail);
  // This code means that the agent refuses to register webhooks. After the SellerError `INVALID_REQUEST` the call is
  // made once more, without webhooks.
  if (code === A2A_ERROR_CODE.PUSH_NOTIFICATION_NOT_SUPPORTED) {
    return new SellerError('INVALID_REQUEST', detail, { field: 'push_notification_config' });
  }
  return new Error(`The agent answers the JSON-RPC error ${sellerText(textOf(code))}: ${detail}`);
}

const CARD_PATH = '/.well-known/agent-card.json';

/**
 * Reads the agent card below the agent's URL, or else the card at the root of its host.
 * @throws Error if there is no usable card at either URL.
 */
async function agentOf(agentUrl: string, caller: Caller, exchange: Exchange): Promise<Agent> {
  const { origin, pathname } = new URL(agentUrl);
  const places = new Set([`${origin}${pathname.replace(/\/$/, '')}${CARD_PATH}`, `${origin}${CARD_PATH}`]);
  const found: string[] = [];
  for (const place of places) {
    try {
      const { status, value } = await exchange({ url: place, version: '1.0', moved: new Map() });
      if (status === 200 && value) {
        const hasProfile = requiresProfile(value, place);
        const versions = hasProfile ? PROFILE_VERSIONS : AGENT_VERSIONS;
        const chosen = chosenFrom(interfacesOf(value, place), versions, place, caller);
        return { ...chosen, hasProfile, skills: namesIn(value['skills'], 'id') };
      }
      found.push(`${place} answers HTTP ${status}${status === 200 ? ' without a JSON object' : ''}`);
    } catch (error) {
      // Many web servers redirect an unknown path to one of their pages. So a redirect means that no card is here, and
      // the next URL is tried.
      if (!(error instanceof RedirectError)) throw beforeCall(`the agent card ${place}`, error);
      found.push(error.message.replace(/\.$/, ''));
    }
  }
  throw new Error(
    `No agent card: ${found.join(', ')}. If the agent has none, give a2aCaller a version: then it calls agentUrl itself.`,
  );
}

/** The versions of A2A in which agents may require the profile extension. */
const PROFILE_VERSIONS: readonly AgentVersion[] = ['1.0'];

/**
 * True if a card requires the profile extension.
 * @throws Error if the card has `params` for the extension: the protocol defines none, so their meaning is unknown.
 */
function requiresProfile({ capabilities }: JsonObject, place: string): boolean {
  const extensions = isJsonObject(capabilities) ? capabilities['extensions'] : undefined;
  if (!Array.isArray(extensions)) return false;
  const profile = (extensions as readonly unknown[]).find(
    (extension) =>
      isJsonObject(extension) && extension['uri'] === AGENT_PROFILE && extension['required'] === true,
  );
  if (!isJsonObject(profile)) return false;
  const params = profile['params'] ?? {};
  if (isJsonObject(params) && Object.keys(params).length === 0) return true;
  throw new Error(
    `The agent card ${place} requires ${AGENT_PROFILE} with params, and that extension has none. Tell the seller.`,
  );
}

/** Returns the interfaces that an agent card lists, as JSON objects, for any version of A2A. */
function interfacesOf(card: JsonObject, place: string): readonly JsonObject[] {
  try {
    const read: unknown = isLegacyAgentCard(card)
      ? parseLegacyAgentCard(card).supportedInterfaces
      : card['supportedInterfaces'];
    return Array.isArray(read) ? read.filter((item) => isJsonObject(item)) : [];
  } catch (cause) {
    throw new Error(`The agent card ${place} cannot be read: ${sellerText(messageOf(cause))}`, {
      cause,
    });
  }
}

/** The largest number of interfaces of an agent card that are read. */
const MOST_INTERFACES = 32;

/**
 * Chooses an interface of the agent card that speaks JSON-RPC and whose URL may be called. If there are several, the
 * one with the newest A2A version is chosen.
 * @throws Error if no interface fits.
 */
function chosenFrom(
  interfaces: readonly JsonObject[],
  versions: readonly AgentVersion[],
  place: string,
  { refusedReason }: Pick<Caller, 'refusedReason'>,
): Agent {
  const named = interfaces
    .slice(0, MOST_INTERFACES)
    .map(({ url, protocolBinding, protocolVersion, tenant }) => {
      const version = versions.find((known) => textOf(protocolVersion).startsWith(known));
      const target = typeof url === 'string' ? canonicalOrUndefined(url) : undefined;
      // Error messages show the URL as it is sent, without characters that the URL parser drops or encodes.
      const href = typeof url === 'string' && target ? new URL(url).href : undefined;
      const reason =
        href === undefined
          ? 'not an absolute URL'
          : (unfitReason(href, tenant) ?? refusedReason(href, place));
      const isSpoken = protocolBinding === 'JSONRPC' && version !== undefined;
      const shown = `${shownText(protocolBinding)} ${shownText(protocolVersion)} at ${shownText(url)}`;
      return isSpoken && reason === undefined && href !== undefined
        ? {
            agent: {
              url: href,
              version,
              tenant: typeof tenant === 'string' ? tenant : '',
              moved: new Map<string, string>(),
            },
            shown,
          }
        : { agent: undefined, shown: isSpoken ? `${shown}, which is ${reason}` : shown };
    });
  const [newest] = versions.flatMap((version) =>
    named.flatMap(({ agent }) => (agent?.version === version ? agent : [])),
  );
  if (newest) return newest;
  throw new Error(
    `The agent card ${place} names no https URL for JSONRPC in version ${versions.join(' or ')}: ${printableText(named.map(({ shown }) => shown).join('; ') || 'nothing', MAX_TEXT)}.`,
  );
}

/**
 * Returns the reason why an interface is not cached: its URL or its tenant is too long. Undefined if it may be cached.
 */
function unfitReason(href: string, tenant: unknown): string | undefined {
  if (!isPrintable(href, MAX_TEXT)) return `longer than ${MAX_TEXT} characters`;
  const isLong = typeof tenant === 'string' && tenant.length > MAX_TEXT;
  return isLong ? `for a tenant of more than ${MAX_TEXT} characters` : undefined;
}

const shownText = (value: unknown): string =>
  typeof value === 'string' ? printableName(value, MAX_URL_BYTES) : typeof value;
