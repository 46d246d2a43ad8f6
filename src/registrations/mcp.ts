import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  StreamableHTTPClientTransport,
  StreamableHTTPError,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { utf8 } from '../codec/encoding.ts';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { requireUrl } from '../config/public-url.ts';
import { flag, MAX_TIMER_MS, onlyKnown, wholeNumber } from '../config/validate.ts';
import { ConfigError } from '../errors.ts';
import { SellerError } from './answer.ts';
import type { CallSeller } from './registration.ts';

export type { CallSeller } from './registration.ts';
export { SellerError, type SellerErrorCode } from './answer.ts';

/** How the buyer proves who it is: credentials are each seller's own. */
export interface McpAuth {
  readonly type: 'bearer';
  /** The token, or a function that gives the one for a seller: asked before each call. */
  readonly token: string | ((agentUrl: string) => string | Promise<string>);
}

/** Options of `mcpCaller`. */
export interface McpOptions {
  /** Absent: operations that are public alone. */
  readonly auth?: McpAuth;
  /** For the answer to a request, ms. 60 000. */
  readonly timeoutMs?: number;
  /** http, for development. */
  readonly allowLoopback?: boolean;
}

const KNOWN: Readonly<Record<keyof McpOptions, true>> = { auth: true, timeoutMs: true, allowLoopback: true };

/**
 * Calls operations of sellers over the tool transport: for `registration.call` and `registrations.start`. A connection each
 * call, by `@modelcontextprotocol/sdk`.
 * @returns rejects with SellerError where the seller refuses the credentials.
 * @throws ConfigError where an option is wrong; the message says what to change.
 */
export function mcpCaller(options: McpOptions = {}): CallSeller {
  onlyKnown('mcpCaller', options, KNOWN);
  const { auth } = options;
  const tokenOf = tokenSource(auth);
  const timeout = wholeNumber('timeoutMs', options.timeoutMs, 60_000, 1, MAX_TIMER_MS);
  const allowLoopback = flag('allowLoopback', options.allowLoopback);
  return async (agentUrl, operation, args, { signal }) => {
    requireUrl('agentUrl', agentUrl, allowLoopback);
    const token = await tokenOf(agentUrl);
    const client = new Client({ name: 'proto-webhooks', version: '1' });
    const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    const transport = new StreamableHTTPClientTransport(new URL(agentUrl), { requestInit: { headers } });
    const limits = { timeout, ...(signal && { signal }) };
    try {
      await client.connect(transport, limits);
      return answerOf(await client.callTool({ name: operation, arguments: args }, undefined, limits));
    } catch (error) {
      throw refusalOf(error, token !== undefined);
    } finally {
      await client.close().catch(() => undefined);
    }
  };
}

function tokenSource(auth: McpAuth | undefined): (agentUrl: string) => Promise<string | undefined> {
  if (auth === undefined) return async () => undefined;
  const { type, token } = auth;
  if (type !== 'bearer' || (typeof token !== 'function' && (typeof token !== 'string' || token === ''))) {
    throw new ConfigError("auth: must be { type: 'bearer', token }, where token is a string or a function.");
  }
  return async (agentUrl) => (typeof token === 'function' ? token(agentUrl) : token);
}

/** The object that the operation gave: structured, or as JSON in a text. @throws Error where the tool failed without one. */
function answerOf(result: Readonly<Record<string, unknown>>): JsonObject {
  const { structuredContent, content, isError } = result;
  if (isJsonObject(structuredContent)) return structuredContent;
  const texts = (Array.isArray(content) ? content : []).flatMap((part: unknown) =>
    isJsonObject(part) && typeof part['text'] === 'string' ? part['text'] : [],
  );
  for (const text of texts) {
    const parsed = parseStrictObject(utf8(text));
    if (parsed.ok) return parsed.value;
  }
  const said = texts.join(' ').slice(0, 300);
  // Whether it was done is not known: it stays to be repeated.
  throw new Error(isError ? `the operation failed: ${said}` : `the answer has no JSON object: ${said}`);
}

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;

function refusalOf(error: unknown, hasToken: boolean): unknown {
  const status = error instanceof StreamableHTTPError ? error.code : undefined;
  const { message } = error as Error;
  if (status === UNAUTHORIZED) {
    return new SellerError(hasToken ? 'AUTH_INVALID' : 'AUTH_REQUIRED', message, { cause: error });
  }
  return status === FORBIDDEN
    ? new SellerError('INSUFFICIENT_PERMISSIONS', message, { cause: error })
    : error;
}
