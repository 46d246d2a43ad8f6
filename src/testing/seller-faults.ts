import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { oneOf } from '../config/validate.ts';

/** What can be wrong with a document or its server, for `seller.faults`. */
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

/** A fault by its name, a redirect, or an answer of your own making. */
export type SellerFault =
  | NamedFault
  | { readonly redirect: string }
  | {
      /** Answers in the place of the fake seller. */
      readonly answer: (request: IncomingMessage, response: ServerResponse) => unknown;
    };

/** What would have been sent, undefined where it would have been a 404. */
export type Body = Uint8Array | undefined;

type Misbehave = (body: Body, request: IncomingMessage, response: ServerResponse) => unknown;

const JSON_TYPE = { 'Content-Type': 'application/json' };
/** Over the cap of every kind of document. */
const HUGE_BYTES = 2 * 1024 * 1024;
const DRIP_MS = 50;
const EMPTY: Uint8Array = new TextEncoder().encode('{}');

function send(response: ServerResponse, body: string | Uint8Array, headers: object = {}): void {
  response.writeHead(200, { ...JSON_TYPE, ...headers }).end(body);
}

/** Sends the document with its members changed, where it has that kind of member. */
const changed =
  (change: (document: { keys?: readonly object[] }) => unknown): Misbehave =>
  (body, _request, response) => {
    const document: unknown = JSON.parse(new TextDecoder().decode(body ?? EMPTY));
    send(response, JSON.stringify(change(document as { keys?: readonly object[] })));
  };

function drip(_body: Body, _request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, JSON_TYPE);
  const timer = setInterval(() => response.write(' '), DRIP_MS);
  response.once('close', () => clearInterval(timer));
}

function endless(_body: Body, _request: IncomingMessage, response: ServerResponse): void {
  const chunk = ' '.repeat(16_384);
  const more = (): void => {
    while (!response.destroyed && response.write(chunk));
  };
  response.writeHead(200, JSON_TYPE).on('drain', more);
  more();
}

/** The first member once more, in front of itself. */
function duplicateMember(body: Body, _request: IncomingMessage, response: ServerResponse): void {
  const text = new TextDecoder().decode(body ?? EMPTY);
  send(response, text === '{}' ? '{"a":1,"a":2}' : text.replace(/^\{("(?:[^"\\]|\\.)*")/, '{$1:null,$1'));
}

/** Every fault with what the server does instead of answering as it should. */
export const FAULTS: Readonly<Record<NamedFault, Misbehave>> = {
  down: (_body, request) => request.socket.destroy(),
  unavailable: (_body, _request, response) => response.writeHead(503).end(),
  silent: () => undefined,
  drip,
  endless,
  huge: (body, _request, response) => send(response, new TextDecoder().decode(body).padEnd(HUGE_BYTES)),
  gzip: (body, _request, response) => send(response, gzipSync(body ?? EMPTY), { 'Content-Encoding': 'gzip' }),
  html: (_body, _request, response) =>
    send(response, '<!doctype html><title>Welcome</title>', { 'Content-Type': 'text/html' }),
  'duplicate-member': duplicateMember,
  'duplicate-kid': changed(({ keys = [], ...rest }) => ({ ...rest, keys: [...keys, ...keys.slice(0, 1)] })),
  'secret-key': changed(({ keys = [], ...rest }) => ({
    ...rest,
    keys: keys.map((key) => ({ ...key, d: 'AA' })),
  })),
};

/** Faults by path. A misspelt one would look like `down`. @throws ConfigError from `set` for a name that is none. */
export function faultMap(): Map<string, SellerFault> {
  const faults = new Map<string, SellerFault>();
  const set = faults.set.bind(faults);
  faults.set = (path, fault) => {
    if (typeof fault === 'string') oneOf('faults', fault, Object.keys(FAULTS) as NamedFault[]);
    return set(path, fault);
  };
  return faults;
}

/** Misbehaves as asked. */
export function misbehave(
  fault: SellerFault,
  body: Body,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (typeof fault === 'string') FAULTS[fault](body, request, response);
  else if ('redirect' in fault) response.writeHead(302, { Location: fault.redirect }).end();
  else fault.answer(request, response);
}
