// Speaks the tool transport of a seller: streamable HTTP whose every answer is JSON, without sessions (dev.md §1.5).
// called-seller.ts gives it the tools.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { PrintableError } from '../codec/printable-value.ts';
import { ApiError } from './api-error.ts';
import { readJsonBody, sendJson } from './body.ts';

/** The longest message, bytes. */
const MOST_CALL = 1024 * 1024;
/** The versions of MCP, the newest first; a client that asks for one of them gets it. */
const VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

/** The refusal of a tool's call: the protocol's error, which the buyer reads in the answer. */
export class ToolError extends PrintableError {
  override readonly name = 'ToolError';
  /** The code of the protocol, e.g. `REFERENCE_NOT_FOUND`. */
  readonly code: string;
  /** The argument that is wrong. */
  readonly field: string | undefined;
  constructor(code: string, message: string, field?: string) {
    super(message);
    this.code = code;
    this.field = field;
  }
}

/** The answer of a tool, and an action for when the answer has left. */
export interface ToolAnswer {
  readonly answer: JsonObject;
  readonly after?: () => void;
}

/** One tool. */
export interface Tool {
  readonly description: string;
  /** @throws ToolError */
  readonly call: (args: JsonObject) => ToolAnswer;
}

export type Tools = Readonly<Record<string, Tool>>;

/** The error codes of JSON-RPC 2.0. */
const RPC_CODES = {
  invalid_request: -32_600,
  method_not_found: -32_601,
  invalid_params: -32_602,
} as const;

/** The refusal of a message that is no request, or asks for what does not exist. */
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

/** The parts that a message is answered from. */
interface Serving {
  readonly tools: Tools;
  /** The member that has the protocol's error, e.g. `proto_error`. */
  readonly errorMember: string;
  /** Runs `act` once the answer has left. */
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

/** The most characters of the id of a request, which goes back. */
const MOST_ID = 256;

const isId = (id: unknown): id is string | number =>
  (typeof id === 'number' && Number.isFinite(id)) || (typeof id === 'string' && id.length <= MOST_ID);

/**
 * Answers one message of a client.
 * @throws ApiError (rejects) for anything but a message: another method, another type, no JSON object.
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
    // A notification is not answered.
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
