// Calls sellers over MCP with the SDK: opens sessions, reads results, and repeats a call whose session was lost
// (calls.md §1.10, §4.12). Owners pass `mcpCaller` to `createRegistrations({ call })`; `proto-webhooks state` uses it
// too.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { bounded } from '../calls/bounds.ts';
import type { CallSessions } from '../calls/sessions.ts';
import { beforeCall } from '../calls/refused-answer.ts';
import { newSession, SessionLostError, sessionHeaders, type ToolSession } from '../calls/tool-session.ts';
import { toolTransport } from '../calls/tool-transport.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import { printableValue } from '../codec/printable-value.ts';
import { followed, limited, orAborted, sleep } from '../shared/time-limits.ts';
import { errorTextIn, isFailedTool, isOutcome, sellerText, taskUnknownIn } from './answer.ts';
import {
  CALLER_MAKER,
  CALLER_OPTIONS,
  type Caller,
  type CallerMaker,
  callerOf,
  type CallerOptions,
  MOST_NAMES,
  namesIn,
  noAgentOf,
  type SellerFetch,
  tokenCall,
  type TokenCall,
} from './caller.ts';
import type { CallSeller } from './call-seller.ts';
import { toolObject, toolRefusal } from './tool-answer.ts';

export * from './caller-face.ts';
export type { CallerOptions, SellerAuth, TokenCall } from './caller.ts';

/**
 * Creates a function that calls operations of sellers over MCP, for the option `call` of `createRegistrations`. It
 * uses `@modelcontextprotocol/sdk`, with one session per call, or per seller in a poller. It throws its errors, logs
 * nothing and raises no alarm.
 * @returns a function that rejects with SellerError if the seller refuses the credentials, and with SellerBusyError
 *   if it asks to call later. It rejects with TaskUnknownError if the seller does not know the task, and with
 *   AnswerRefusedError if its answer is unacceptable.
 * @throws ConfigError if an option is wrong; the message says what to change.
 * @example
 * ```ts
 * import { mcpCaller } from 'proto-webhooks/mcp';
 *
 * export const callSeller = mcpCaller({ auth: { type: 'bearer', token: process.env['SELLER_TOKEN'] } });
 * ```
 */
export function mcpCaller(options: CallerOptions = {}): CallSeller {
  const caller = callerOf('mcpCaller', options, CALLER_OPTIONS);
  const callerId = globalThis.crypto.randomUUID();
  const laneTo = async (
    agentUrl: string,
    of: TokenCall,
    sessions: CallSessions | undefined,
  ): Promise<Lane> => {
    const { fetch, token = '' } = await caller.callFor(agentUrl, of);
    return laneOf(`${callerId} ${agentUrl} ${token}`, { agentUrl, fetch, sessions });
  };
  const { timeoutMs } = caller;
  const limit = { ms: timeoutMs, reason: `the call timed out: no answer within ${timeoutMs} ms` };
  /** Runs `work` within the time limit of one call, which includes the opening of a session. */
  const inTime = <T>(signal: AbortSignal, work: (within: AbortSignal) => Promise<T>): Promise<T> =>
    limited(limit, signal, (within) => orAborted(work(within), within));
  const call: CallSeller = async (agentUrl, operation, args, { signal, sessions, ref }) => {
    const of = tokenCall(operation, ref);
    const params = { name: operation, arguments: args };
    const result = await inTime(signal, async (within) =>
      callIn(caller, await laneTo(agentUrl, of, sessions), { method: 'tools/call', params, signal: within }),
    );
    const answer = await toolObject(result, caller.maxValues);
    bounded(answer);
    const unknown = 'task_id' in args ? taskUnknownIn(answer) : undefined;
    if (unknown) throw unknown;
    if (!isFailedTool(result)) return answer;
    const refusal = toolRefusal(result, answer);
    if (refusal) throw refusal;
    if (isOutcome(answer)) return answer;
    throw new Error(
      `the operation failed: ${errorTextIn(answer) || sellerText(JSON.stringify(printableValue(answer)))}`,
    );
  };
  const operations: CallSeller['operations'] = (agentUrl, { signal, sessions, ref }) => {
    const of = tokenCall('tools/list', ref);
    return inTime(signal, async (within) => toolNames(caller, await laneTo(agentUrl, of, sessions), within));
  };
  return Object.assign(call, { operations });
}

/** The largest number of pages of a seller's list of tools that are read. */
const MAX_PAGES = 20;

/** Returns the names of a seller's tools, from at most `MAX_PAGES` pages of its list. */
async function toolNames(caller: Caller, lane: Lane, signal: AbortSignal): Promise<readonly string[]> {
  const names: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES && names.length < MOST_NAMES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const { tools, nextCursor } = await callIn(caller, lane, { method: 'tools/list', params, signal });
    names.push(...namesIn(tools, 'name', MOST_NAMES - names.length));
    if (typeof nextCursor !== 'string' || nextCursor.length > MAX_TEXT) break;
    cursor = nextCursor;
  }
  return names;
}

Object.assign(mcpCaller, { [CALLER_MAKER]: 'mcpCaller' } satisfies CallerMaker);

/** An MCP session. Concurrent calls share the promise `opening`, so that the session is opened only once. */
interface ToolSessionInUse extends ToolSession {
  opening: Promise<void> | undefined;
}

/** Gives a call its session: a new one, or the seller's session that a poller keeps open between calls. */
interface Lane {
  readonly fetch: SellerFetch;
  readonly session: () => ToolSessionInUse;
  /** Forgets a kept session that has failed, so that the next call opens a new one. */
  readonly drop: (session: ToolSession) => void;
  /** Reports that a call no longer uses its session. A session that no poller keeps is then ended. */
  readonly leave: (session: ToolSession) => void;
}

interface LaneOf {
  readonly agentUrl: string;
  readonly fetch: SellerFetch;
  readonly sessions: CallSessions | undefined;
}

function laneOf(name: string, { agentUrl, fetch, sessions }: LaneOf): Lane {
  const make = (): ToolSessionInUse => ({ ...newSession(agentUrl), opening: undefined });
  const end = (session: ToolSession): Promise<void> => endSession(session, fetch);
  if (!sessions) {
    return { fetch, session: make, drop: () => undefined, leave: (session) => void end(session) };
  }
  return {
    fetch,
    session: () =>
      sessions.use(name, () => {
        const session = make();
        return { session, end: () => end(session) };
      }),
    drop: (session) => sessions.drop(name, session),
    leave: () => undefined,
  };
}

interface ToolCall {
  readonly method: 'tools/call' | 'tools/list';
  readonly params: Record<string, unknown>;
  readonly signal: AbortSignal;
}

/**
 * Makes a call. If the seller no longer knows a kept session, the call was not done, so it is made once more in a new
 * session.
 */
async function callIn(caller: Caller, lane: Lane, call: ToolCall): Promise<Members> {
  for (let isAgain = false; ; isAgain = true) {
    const session = lane.session();
    const wasOpen = session.isOpen;
    try {
      await (session.opening ??= opened(caller, lane, session, call.signal));
      session.isOpen = true;
      return await withClient(
        caller,
        lane,
        session,
        async (client, limits) =>
          client.request({ method: call.method, params: call.params }, ResultSchema, limits),
        call.signal,
      );
    } catch (error) {
      lane.drop(session);
      if (!(wasOpen && error instanceof SessionLostError) || isAgain) throw error;
    } finally {
      lane.leave(session);
    }
  }
}

/** Opens a session. If that fails, the error says that nothing has been called yet. */
async function opened(caller: Caller, lane: Lane, session: ToolSession, signal: AbortSignal): Promise<void> {
  try {
    await withClient(caller, lane, session, async () => undefined, signal);
  } catch (error) {
    throw beforeCall(`the session with ${session.url}`, error);
  }
}

type Members = Readonly<Record<string, unknown>>;
interface Limits {
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** Runs `step` with a new SDK client, so that nothing which a seller has sent stays in a client. */
async function withClient<T>(
  { timeoutMs, maxAnswerBytes, maxValues }: Caller,
  { fetch }: Lane,
  session: ToolSession,
  step: (client: Client, limits: Limits) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const client = new Client({ name: 'proto-webhooks', version: '1' });
  // The SDK never removes its listener from a signal. Node keeps a signal made by `AbortSignal.any`, with the
  // listeners, until that signal fires. So the SDK gets a signal of its own. Otherwise each answer would stay in memory
  // as long as the process runs.
  const own = followed(signal);
  const limits = { timeout: timeoutMs, signal: own.signal };
  try {
    await client.connect(
      toolTransport({ session, fetch, noAgent: noAgentOf, maxAnswerBytes, maxValues, timeoutMs, sleep }),
      limits,
    );
    return await step(client, limits);
  } finally {
    own.takeBack();
    await client.close().catch(() => undefined);
  }
}

/** The time limit for ending a session. No call waits for it. Ms. */
const END_MS = 5_000;

/** Ends a session at the seller. It never rejects: if the request fails, the seller forgets the session by itself. */
async function endSession(session: ToolSession, fetch: SellerFetch): Promise<void> {
  if (session.id === undefined) return;
  const headers = sessionHeaders(session);
  session.id = undefined;
  const limit = { ms: END_MS, reason: 'the session was not ended in time' };
  try {
    await limited(limit, new AbortController().signal, async (signal) => {
      const response = await fetch(session.url, { method: 'DELETE', headers, moved: session.moved, signal });
      await response.body?.cancel();
    });
  } catch {
    // The error is ignored: the seller forgets an idle session by itself.
  }
}
