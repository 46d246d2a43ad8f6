// Serves the documents of the fake seller on loopback, or answers with a fault that the user has set. The fake seller
// starts it.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { oneOf } from '../config/validate.ts';
import { isBytes } from '../shared/realms.ts';

/**
 * The name of a fault with which a fake seller's server answers when a document is fetched. Set it in
 * `seller.faults`.
 *
 * - `down`: closes the connection. `unavailable`: answers 503. `silent`: never answers.
 * - `drip`: sends a space every 50 ms, without end. `endless`: sends spaces as fast as it can. `huge`: sends 3 MiB.
 * - `gzip`: compresses the document. `html`: sends a web page. `duplicate-member`: repeats a JSON member.
 * - `duplicate-kid`: publishes two keys with each key id. `secret-key`: publishes private members of keys.
 */
export type NamedFault =
  | 'down'
  | 'unavailable'
  | 'silent'
  | 'drip'
  | 'endless'
  | 'huge'
  | 'gzip'
  | 'html'
  | 'duplicate-member'
  | 'duplicate-kid'
  | 'secret-key';

/**
 * A fault that a fake seller's server shows when its documents are fetched: one by name, a redirect, or an answer of
 * your own. Set it in `seller.faults`.
 */
export type SellerFault =
  | NamedFault
  | { readonly redirect: string }
  | {
      /** Answers the request in place of the fake seller. */
      readonly answer: (request: IncomingMessage, response: ServerResponse) => unknown;
    };

/** The document that would be sent without a fault. Undefined if the answer would be 404. */
type Body = Uint8Array | undefined;

type Misbehave = (body: Body, request: IncomingMessage, response: ServerResponse) => unknown;

const JSON_TYPE = { 'Content-Type': 'application/json' };
/** The length of the document that the fault `huge` sends. It is over the size limit of every kind of document. */
const HUGE_BYTES = 3 * 1024 * 1024;
const DRIP_MS = 50;
const EMPTY: Uint8Array = new TextEncoder().encode('{}');

function sendFault(response: ServerResponse, body: string | Uint8Array, headers: object = {}): void {
  response.writeHead(200, { ...JSON_TYPE, ...headers }).end(body);
}

/** Makes a fault that sends the document as `change` returns it, with other keys. */
const changed =
  (change: (document: { keys?: readonly object[] }) => unknown): Misbehave =>
  (body, _request, response) => {
    const document: unknown = JSON.parse(new TextDecoder().decode(body ?? EMPTY));
    sendFault(response, JSON.stringify(change(document as { keys?: readonly object[] })));
  };

function drip(_body: Body, _request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, JSON_TYPE);
  const timer = setInterval(() => response.write(' '), DRIP_MS);
  response.once('close', () => clearInterval(timer));
}

function endless(_body: Body, _request: IncomingMessage, response: ServerResponse): void {
  const chunk = ' '.repeat(16_384);
  const fill = (): void => {
    while (!response.destroyed && response.write(chunk));
  };
  response.writeHead(200, JSON_TYPE).on('drain', fill);
  fill();
}

/** Repeats the first member of the JSON, in front of itself and with the value null. */
function duplicateMember(body: Body, _request: IncomingMessage, response: ServerResponse): void {
  const text = new TextDecoder().decode(body ?? EMPTY);
  sendFault(
    response,
    text === '{}' ? '{"a":1,"a":2}' : text.replace(/^\{("(?:[^"\\]|\\.)*")/, '{$1:null,$1'),
  );
}

/** The faults by name. Each is a function that answers a request with the fault, in place of the document. */
export const FAULTS: Readonly<Record<NamedFault, Misbehave>> = {
  down: (_body, request) => request.socket.destroy(),
  unavailable: (_body, _request, response) => response.writeHead(503).end(),
  silent: () => undefined,
  drip,
  endless,
  huge: (body, _request, response) => sendFault(response, new TextDecoder().decode(body).padEnd(HUGE_BYTES)),
  gzip: (body, _request, response) =>
    sendFault(response, gzipSync(body ?? EMPTY), { 'Content-Encoding': 'gzip' }),
  html: (_body, _request, response) =>
    sendFault(response, '<!doctype html><title>Welcome</title>', { 'Content-Type': 'text/html' }),
  'duplicate-member': duplicateMember,
  'duplicate-kid': changed(({ keys = [], ...rest }) => ({
    ...rest,
    keys: [...keys, ...keys.map((key) => ({ ...key, use: 'enc' }))],
  })),
  'secret-key': changed(({ keys = [], ...rest }) => ({
    ...rest,
    keys: keys.map((key) => ({ ...key, d: 'AA' })),
  })),
};

/**
 * Makes the map of faults by path. Its `set` throws ConfigError for an unknown name, because a misspelt name would have
 * the effect of `down`.
 */
function faultMap(): Map<string, SellerFault> {
  const faults = new Map<string, SellerFault>();
  const set = faults.set.bind(faults);
  faults.set = (path, fault) => {
    if (typeof fault === 'string') oneOf('faults', fault, Object.keys(FAULTS) as NamedFault[]);
    return set(path, fault);
  };
  return faults;
}

/** Answers a request with a fault. */
function misbehave(fault: SellerFault, body: Body, request: IncomingMessage, response: ServerResponse): void {
  if (typeof fault === 'string') FAULTS[fault](body, request, response);
  else if ('redirect' in fault) response.writeHead(302, { Location: fault.redirect }).end();
  else fault.answer(request, response);
}

/** A running server of a seller's documents. Tests can set faults, and count the requests. */
interface DocumentServer {
  /** The origin, `http://127.0.0.1:<port>`. */
  readonly origin: string;
  /**
   * The documents by path: JSON, bytes (a `Uint8Array`) that are sent unchanged, or a function that returns either at
   * each fetch. Changes take effect at the next fetch. A path without an entry is answered with 404.
   */
  readonly documents: Map<string, unknown>;
  /** The faults by path. The fault under `*` holds for every path that has no fault of its own. */
  readonly faults: Map<string, SellerFault>;
  /** Returns the number of requests for a path, or for all paths. */
  readonly fetches: (path?: string) => number;
  readonly close: () => Promise<void>;
}

async function bodyOf(entry: unknown): Promise<Body> {
  const document: unknown = typeof entry === 'function' ? await (entry as () => unknown)() : entry;
  if (document === undefined || isBytes(document)) return document;
  return new TextEncoder().encode(JSON.stringify(document));
}

function send(body: Body, response: ServerResponse): void {
  response.writeHead(body === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
  response.end(body ?? '{"error":"not found"}');
}

/** Starts a server of documents on 127.0.0.1. @param port 0 takes any free port. */
export async function serveDocuments(port: number): Promise<DocumentServer> {
  const documents = new Map<string, unknown>();
  const faults = faultMap();
  const asked: string[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? '').replace(/\?.*$/, '');
    asked.push(path);
    const body = await bodyOf(documents.get(path));
    const fault = faults.get(path) ?? faults.get('*');
    if (fault === undefined) send(body, response);
    else misbehave(fault, body, request, response);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  // The server and its connections do not keep the process alive, because a failing test does not close them. A client
  // that waits for an answer does keep it alive.
  server.unref().on('connection', (socket) => socket.unref());
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    documents,
    faults,
    fetches: (path) => (path === undefined ? asked : asked.filter((one) => one === path)).length,
    close: async () => {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
