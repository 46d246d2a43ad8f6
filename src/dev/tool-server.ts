// Serves the tools of a seller by MCP: streamable HTTP without sessions, where every answer is JSON (dev.md §1.5).
// called-seller.ts provides the tools.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { PrintableError } from '../codec/printable-value.ts';
import { ApiError } from './api-error.ts';
import { readJsonBody, sendJson } from './body.ts';

/** The most bytes of a message. */
const MOST_CALL = 1024 * 1024;
/** The supported versions of MCP, newest first. A client that asks for another version gets the newest. */
const VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

/** The error with which a tool refuses a call. The buyer gets it in the tool's answer, as an error of the protocol. */
export class ToolError extends PrintableError {
  override readonly name = 'ToolError';
  /** The error code of the protocol, e.g. `REFERENCE_NOT_FOUND`. */
  readonly code: string;
  /** The name of the wrong argument. */
  readonly field: string | undefined;
  constructor(code: string, message: string, field?: string) {
    super(message);
    this.code = code;
    this.field = field;
  }
}

/** The answer of a tool. `after` is called once the answer has been sent. */
export interface ToolAnswer {
  readonly answer: JsonObject;
  readonly after?: () => void;
}

/** A tool that the buyer can call. */
export interface Tool {
  readonly description: string;
  /** Runs the tool. @throws ToolError if the tool refuses the call */
  readonly call: (args: JsonObject) => ToolAnswer;
}

export type Tools = Readonly<Record<string, Tool>>;

/** The error codes of JSON-RPC 2.0. */
const RPC_CODES = {
  invalid_request: -32_600,
  method_not_found: -32_601,
  invalid_params: -32_602,
} as const;

/** The JSON-RPC error for a message that is no request, or that names an unknown method or tool. */
class RpcError extends PrintableError {
  override readonly name = 'RpcError';
  readonly code: keyof typeof RPC_CODES;
  constructor(code: keyof typeof RPC_CODES, message: string) {
    super(message);
    this.code = code;
  }
}

function listed(tools: Tools): JsonObject {
  return {
    tools: Object.entries(tools).map(([name, { description }]) => ({
      name,
      description,
      inputSchema: { type: 'object' },
    })),
  };
}

const content = (answer: JsonObject): JsonObject => ({
  content: [{ type: 'text', text: JSON.stringify(answer) }],
  structuredContent: answer,
});

/** The tools and functions with which a message is answered. */
interface Serving {
  readonly tools: Tools;
  /** The member of an answer that has the error of the protocol, e.g. `proto_error`. */
  readonly errorMember: string;
  /** Calls `act` once the answer has been sent. */
  readonly after: (act: () => void) => void;
}

function called(
  { tools, errorMember, after }: Serving,
  { name, arguments: args = {} }: JsonObject,
): JsonObject {
  const tool = typeof name === 'string' && Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (!tool) {
    throw new RpcError('invalid_params', `Unknown tool. Expected one of ${Object.keys(tools).join(', ')}.`);
  }
  if (!isJsonObject(args)) throw new RpcError('invalid_params', 'arguments: expected an object.');
  try {
    const done = tool.call(args);
    if (done.after) after(done.after);
    return content(done.answer);
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    const { code, message, field } = error;
    const said = { code, message, recovery: 'correctable', ...(field !== undefined && { field }) };
    return { ...content({ [errorMember]: said }), isError: true };
  }
}

function resultOf(message: JsonObject, serving: Serving): JsonObject {
  const { method, params = {} } = message;
  if (!isJsonObject(params)) throw new RpcError('invalid_params', 'params: expected an object.');
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: VERSIONS.find((known) => known === params['protocolVersion']) ?? VERSIONS[0],
        capabilities: { tools: {} },
        serverInfo: { name: 'proto-webhooks dev', version: '1' },
      };
    case 'ping':
      return {};
    case 'tools/list':
      return listed(serving.tools);
    case 'tools/call':
      return called(serving, params);
    default:
      throw new RpcError(
        'method_not_found',
        'Unknown method. Expected initialize, ping, tools/list or tools/call.',
      );
  }
}

/** The most characters of a request's id, because the answer repeats the id. */
const MOST_ID = 256;

const isId = (id: unknown): id is string | number =>
  (typeof id === 'number' && Number.isFinite(id)) || (typeof id === 'string' && id.length <= MOST_ID);

/**
 * Answers one message of an MCP client.
 * @throws ApiError (rejects) unless the request is a POST with a JSON object.
 */
export async function answerTools(
  request: IncomingMessage,
  response: ServerResponse,
  of: Omit<Serving, 'after'>,
): Promise<void> {
  if (request.method !== 'POST') {
    throw new ApiError('method_not_allowed', 'A seller is called by POST: it opens no stream.', 'POST');
  }
  const message = await readJsonBody(request, MOST_CALL);
  const { jsonrpc, method, id } = message;
  const isRequest = jsonrpc === '2.0' && typeof method === 'string';
  if (isRequest && id === undefined) {
    // A JSON-RPC notification (a message without an id) gets no JSON-RPC answer.
    response.writeHead(202).end();
    return;
  }
  const after = (act: () => void): void => void response.once('close', act);
  const head = { jsonrpc: '2.0', id: isId(id) ? id : null };
  try {
    if (!isRequest || !isId(id)) throw new RpcError('invalid_request', 'Not a request of JSON-RPC 2.0.');
    sendJson(response, 200, { ...head, result: resultOf(message, { ...of, after }) });
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const { code: of, message: why } = error;
    const code = RPC_CODES[of];
    sendJson(response, of === 'invalid_request' ? 400 : 200, { ...head, error: { code, message: why } });
  }
}
