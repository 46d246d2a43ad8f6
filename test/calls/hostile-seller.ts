import type { IncomingMessage, ServerResponse } from 'node:http';
import { a2aCaller } from '../../src/registrations/a2a.ts';
import { type CallerOptions, type CallSessions, mcpCaller } from '../../src/registrations/mcp.ts';
import { listening } from '../adapters/raw-client.ts';

/** What a seller was sent. */
export interface Heard {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingMessage['headers'];
  /** The JSON-RPC message; undefined where there is none. */
  readonly message: { readonly method?: string; readonly id?: number; readonly params?: unknown } | undefined;
}

/** Answers one request, after its body has come. */
export type Say = (heard: Heard, res: ServerResponse) => void;

/** A seller of both transports that answers calls as it is told to, and everything before them as it should. */
export interface HostileSeller extends AsyncDisposable {
  readonly url: string;
  readonly heard: Heard[];
  /** Answers the call itself. */
  say: Say;
  /** Answers any request in the place of the seller, where it gives true. */
  instead: (heard: Heard, res: ServerResponse) => boolean;
}

const json = { 'content-type': 'application/json' };

/** JSON text of a good answer to either transport, with `result` as what was asked for. */
export const answerText = ({ message }: Heard, result: string): string =>
  `{"jsonrpc":"2.0","id":${message?.id ?? 1},"result":${result}}`;

/** What either transport takes for an object of the operation. */
export const DONE = '{"structuredContent":{"status":"completed","n":1},"content":[]}';

export const sayText =
  (text: (heard: Heard) => string, headers: Record<string, string> = {}): Say =>
  (heard, res) => {
    res.writeHead(200, { ...json, ...headers }).end(text(heard));
  };

export const sayResult = (result: string): Say => sayText((heard) => answerText(heard, result));

const SESSION = 'session-1';

function before({ message }: Heard, res: ServerResponse, session: string | undefined): boolean {
  if (message?.method === 'initialize') {
    const { protocolVersion } = message.params as { readonly protocolVersion: string };
    const result = { protocolVersion, capabilities: {}, serverInfo: { name: 's', version: '1' } };
    res
      .writeHead(200, { ...json, ...(session !== undefined && { 'mcp-session-id': session }) })
      .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
    return true;
  }
  if (message?.method === 'notifications/initialized') {
    res.writeHead(202).end();
    return true;
  }
  return false;
}

export async function hostileSeller(session: string | undefined = SESSION): Promise<HostileSeller> {
  const heard: Heard[] = [];
  const server = await listening((req, res) => {
    const chunks: Buffer[] = [];
    res.on('error', () => undefined);
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const message = text === '' ? undefined : (JSON.parse(text) as Heard['message']);
      const { method, url: path, headers } = req;
      const is: Heard = { method, path, headers, message };
      heard.push(is);
      if (seller.instead(is, res) || before(is, res, session)) return;
      if (method === 'DELETE') res.writeHead(200).end();
      else seller.say(is, res);
    });
  });
  const seller: HostileSeller = {
    url: `${server.url}/mcp`,
    heard,
    say: sayResult(DONE),
    instead: () => false,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
  return seller;
}

/** The calls themselves, without what a transport does before and after. */
export const callsIn = ({ heard }: HostileSeller): readonly Heard[] =>
  heard.filter(({ message }) => message?.method === 'tools/call' || message?.method === 'SendMessage');

export interface Asking extends CallerOptions {
  readonly signal?: AbortSignal;
  readonly sessions?: CallSessions;
}

export type CallerName = 'mcpCaller' | 'a2aCaller';

/** One call by a caller of its own. */
export function ask(name: CallerName, url: string, asking: Asking = {}): Promise<unknown> {
  const { signal = AbortSignal.timeout(60_000), sessions, ...options } = asking;
  const own = { allowLoopback: true, ...options };
  const call = name === 'mcpCaller' ? mcpCaller(own) : a2aCaller({ ...own, version: '1.0' });
  return call(url, 'get_products', {}, { signal, ...(sessions && { sessions }) });
}
