// Lets vectors test this library's clients: reading answers, fetching documents, accepting secrets. `librarySubject`
// has these functions.
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { mostValues, MAX_ANSWER_BYTES } from '../calls/bounds.ts';
import { authPolicy } from '../config/auth.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Transport } from '../events/event.ts';
import type { KeyFetch } from '../keys/key-resolver.ts';
import { ADAGENTS, AUTHORITATIVE } from '../keys/publisher-pins.ts';
import { KEY_LIMITS } from '../keys/resolver.ts';
import { fetchDocument } from '../keys/safe-fetch.ts';
import { protocolsFor } from '../shared/wire-names.ts';
import { agentAnswerData, isFailedTool, refusalIn, type SellerError } from '../registrations/answer.ts';
import { isBareError, toolObject, toolRefusal } from '../registrations/tool-answer.ts';
import type { AnswerData, AnswerError, Discovered, Discovery } from './subject.ts';

const MAX_VALUES = mostValues(MAX_ANSWER_BYTES);

/** Returns the JSON-RPC error in an answer. If the answer itself is such an error, returns the answer. */
function rpcErrorIn(response: JsonObject): JsonObject | undefined {
  const { error } = response;
  if (isJsonObject(error) && typeof error['code'] === 'number') return error;
  return typeof response['code'] === 'number' ? response : undefined;
}

/** Returns the result of a tool without the JSON-RPC answer around it. */
const toolResultIn = ({ jsonrpc, result, ...members }: JsonObject): JsonObject =>
  jsonrpc !== undefined && isJsonObject(result)
    ? result
    : { ...members, ...(result !== undefined && { result }) };

/** Returns the object in a result; undefined if there is none, or if it exceeds the limits. */
async function objectIn(result: JsonObject): Promise<JsonObject | undefined> {
  try {
    return await toolObject(result, MAX_VALUES);
  } catch {
    return undefined;
  }
}

async function toolData(response: JsonObject): Promise<AnswerData> {
  const result = toolResultIn(response);
  const object = isFailedTool(result) ? undefined : await objectIn(result);
  return { data: object && !isBareError(object) ? object : undefined };
}

/** Returns the data that this library, as a client of sellers, reads from an answer. */
export async function answerData(response: unknown, transport: Transport): Promise<AnswerData> {
  if (!isJsonObject(response)) return { data: undefined };
  if (transport === 'tool') return toolData(response);
  const { data, wrappedResponse } = agentAnswerData(response);
  return { data, ...(wrappedResponse && { error: 'wrapper_detected' }) };
}

async function refusalOf(response: JsonObject, transport: Transport): Promise<SellerError | undefined> {
  const error = rpcErrorIn(response);
  if (error) return refusalIn({ error });
  if (transport === 'agent') return refusalIn(response);
  const result = toolResultIn(response);
  return toolRefusal(result, (await objectIn(result)) ?? {});
}

/** Returns the error that this library, as a client of sellers, finds in an answer. */
export async function answerError(response: unknown, transport: Transport): Promise<AnswerError | undefined> {
  const refusal = isJsonObject(response) ? await refusalOf(response, transport) : undefined;
  if (!refusal) return undefined;
  const { code, message, recovery, field, details, retryAfterMs } = refusal;
  return { code, message, recovery, field, details, retryAfterMs };
}

/** Makes a `fetch` that answers with the vector's redirects, one after the other, and then with a document. */
function redirecting({ redirects }: Discovery): KeyFetch {
  let asked = 0;
  return async () => {
    const redirect = redirects[asked];
    asked += 1;
    if (!redirect) return Response.json({ authorized_agents: [] });
    const { status, location } = redirect;
    return new Response(null, { status, headers: location === undefined ? {} : { location } });
  };
}

/** Fetches a publisher's document in the same way as a receiver. */
export async function discover(discovery: Discovery): Promise<Discovered> {
  const { target, url } = discovery;
  const { maxBytes, redirects } = target === 'well-known' ? ADAGENTS : AUTHORITATIVE;
  const fetched = await fetchDocument(
    { fetch: redirecting(discovery), allowLoopback: false, deadlineMs: KEY_LIMITS.deadlineMs },
    { url, maxBytes, redirects },
    new AbortController(),
  );
  return fetched.ok ? { ok: true, url: fetched.at ?? url } : { ok: false, reason: fetched.reason };
}

/** True if a sender can be configured with the shared secret. */
export function takesSecret(secret: string): boolean {
  try {
    return authPolicy('secret', { hmac: { secret } }, protocolsFor(undefined)).scheme === 'hmac';
  } catch (error) {
    if (error instanceof ConfigError) return false;
    throw error;
  }
}
