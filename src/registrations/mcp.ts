import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { utf8 } from '../codec/encoding.ts';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { errorTextIn, finalIn, isFailedTool, isOutcome, sellerText, taskUnknownIn } from './answer.ts';
import { CALLER_MAKER, CALLER_OPTIONS, type CallerMaker, callerOf, type CallerOptions } from './caller.ts';
import type { CallSeller } from './registration.ts';

export type { CallSeller } from './registration.ts';
export { SellerBusyError, SellerError, type SellerErrorCode, TaskUnknownError } from './answer.ts';
export type { CallerOptions, SellerAuth } from './caller.ts';

/**
 * Calls operations of sellers over the tool transport: for `registration.call` and `registrations.start`. One connection a
 * call, by `@modelcontextprotocol/sdk`.
 * @returns rejects with SellerError where the seller refuses the credentials, with SellerBusyError where it is to be called
 *   later, with TaskUnknownError where it does not know the task.
 * @throws ConfigError where an option is wrong; the message says what to change.
 */
export function mcpCaller(options: CallerOptions = {}): CallSeller {
  const { fetchFor, timeoutMs } = callerOf('mcpCaller', options, CALLER_OPTIONS);
  return async (agentUrl, operation, args, { signal }) => {
    const sellerFetch = await fetchFor(agentUrl);
    const client = new Client({ name: 'proto-webhooks', version: '1' });
    const transport = new StreamableHTTPClientTransport(new URL(agentUrl), { fetch: sellerFetch });
    const limits = { timeout: timeoutMs, signal };
    try {
      await client.connect(transport, limits);
      const result = await client.callTool({ name: operation, arguments: args }, undefined, limits);
      const answer = answerOf(result);
      const unknown = 'task_id' in args ? taskUnknownIn(answer) : undefined;
      if (unknown) throw unknown;
      if (isFailedTool(result) && !isOutcome(answer)) {
        throw (
          finalIn(answer) ??
          new Error(`the operation failed: ${errorTextIn(answer) || sellerText(JSON.stringify(answer))}`)
        );
      }
      return answer;
    } finally {
      await client.close().catch(() => undefined);
    }
  };
}

Object.assign(mcpCaller, { [CALLER_MAKER]: 'mcpCaller' } satisfies CallerMaker);

/** The object that the operation answered: structured, or as JSON in a text. @throws Error where the tool failed without one. */
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
  const detail = sellerText(texts.join(' '));
  // It is not known whether the operation was done: the call is repeated.
  throw new Error(isError ? `the operation failed: ${detail}` : `the answer has no JSON object: ${detail}`);
}
