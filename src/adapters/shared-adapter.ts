// The common part of all adapters: the parts of a receiver that they use, and answers to faults. Also the check that
// the right framework calls a handler.
// Used by each adapter; the error texts tell owners which line to change (docs/frameworks.md).

import type { HeadersInput } from '../shared/delivery.ts';
import { ConfigError } from '../shared/errors.ts';
import type { RequestInfo } from '../config/receiver-options.ts';
import type { Reply } from '../shared/outcome.ts';

/**
 * The advice for the error if other code read the body before the adapter. `consumed` describes the error and adds the
 * advice. Each adapter has a constant of its own, so that its bundle has no text of another adapter.
 */

export const NODE_FIX: string =
  'Call the handler before whatever reads the request, or leave the bytes in req.rawBody. ' +
  'Next.js pages/api: export const config: string = { api: { bodyParser: false } }.';

export const EXPRESS_FIX: string =
  'Express: mount the handler before app.use(express.json()), or give its path ' +
  "express.raw({ type: '*/*', limit: '1mb' }), or keep the bytes with " +
  "express.json({ limit: '1mb', verify: (req, _res, bytes) => { req.rawBody = bytes; } }). " +
  "Nest: NestFactory.create(AppModule, { rawBody: true }), then app.useBodyParser('json', { limit: '1mb' }). " +
  'A limit is maxBodyBytes or more: the default of 100 KB answers 413, and sellers give up.';

export const FASTIFY_FIX: string =
  'Fastify: an onRequest hook read request.raw. app.register(webhookPlugin(receiver, path)) outside of the ' +
  'scope in which that hook was added, or leave the bytes in request.raw.rawBody.';

export const HONO_FIX: string =
  'Hono: a middleware called c.req.json(), .text() or .parseBody(). Register the route before ' +
  'app.use(…) of that middleware.';

export const FETCH_FIX: string =
  'request.json(), .text() or another reader was called: hand the request over first, or hand over a ' +
  'request.clone() made before it was read.';

/** A receiver, reduced to the parts that adapters use. Every result of `createReceiver` fits. */
export interface AdapterReceiver {
  /** Checks the headers, and then takes the body by a ticket, like `Receiver.open`. */
  readonly open: (
    headers: HeadersInput,
    request?: RequestInfo,
  ) => Promise<
    | {
        readonly kind: 'ticket';
        /** Takes a chunk of the body, like `Ticket.add`. False: the delivery is decided, so stop reading. */
        readonly add: (chunk: Uint8Array) => boolean;
        /** Ends the body, like `Ticket.end`. */
        readonly end: () => Promise<{ readonly response: Reply }>;
        /** Drops the delivery, like `Ticket.abort`. */
        readonly abort: () => void;
        readonly outcome: Promise<{ readonly response: Reply } | undefined>;
      }
    | { readonly kind: string; readonly response: Reply }
  >;
  /** Takes a whole delivery, like `Receiver.verifyAndDispatch`. */
  readonly verifyAndDispatch: (
    rawBytes: Uint8Array,
    headers: HeadersInput,
    request?: RequestInfo,
  ) => Promise<{ readonly response: Reply }>;
  readonly door: {
    /** Returns the answer to a delivery whose body was already read by other code: 503 `body_consumed`. */
    readonly consumed: (detail: string) => { readonly response: Reply };
    /** Returns the answer to a delivery that could not be processed: 503. */
    readonly fault?: (error: unknown) => { readonly response: Reply };
  };
}

/** The part of an `Outcome` that an adapter writes. */
export interface Answered {
  readonly response: Reply;
}

/** The part of a `Ticket` that adapters use. */
export type AdapterTicket = Exclude<
  Awaited<ReturnType<AdapterReceiver['open']>>,
  { readonly response: Reply }
>;

/** True if the headers passed, so that the body is wanted. */
export const isTicket = (opened: AdapterTicket | { readonly kind: string }): opened is AdapterTicket =>
  opened.kind === 'ticket';

/**
 * Drops the delivery, and returns the answer 503 `body_consumed`, because other code has read the body.
 * @param fix the advice for the owner's log.
 */
export const consumed = ({ door }: AdapterReceiver, ticket: AdapterTicket, fix: string): Reply => {
  ticket.abort();
  return door.consumed(
    `the body was read or decoded before the webhook handler, and its exact bytes are gone. ${fix}`,
  ).response;
};

/**
 * The answer if the receiver cannot be called. It is 503, because a fault on the receiver's side is never answered with
 * 4xx.
 */
export const FAULT_REPLY: Reply = { status: 503, headers: { 'Retry-After': '5' }, body: '' };

/** Returns the answer to an unexpected exception: 503. The owner's log has the error. */
export function faultReply({ door }: AdapterReceiver, error: unknown): Reply {
  return door.fault?.(error).response ?? FAULT_REPLY;
}

/** The adapters of the package, by their subpaths. */
type AdapterName = 'node' | 'express' | 'fastify' | 'hono' | 'fetch' | 'lambda';

/** The frameworks that may call a handler. Koa has no adapter of its own and uses the one for Node. */
type Caller = AdapterName | 'koa';

/** For each framework, the code to write, shown to an owner who uses the wrong adapter. */
const USE: Readonly<Record<Caller, string>> = {
  node: "import { webhookHandler } from 'proto-webhooks/node'; http.createServer(webhookHandler(receiver))",
  express: "import { webhookHandler } from 'proto-webhooks/express'; app.all(path, webhookHandler(receiver))",
  fastify:
    "import { webhookPlugin } from 'proto-webhooks/fastify'; app.register(webhookPlugin(receiver, path))",
  hono: "import { webhookHandler } from 'proto-webhooks/hono'; app.all(path, webhookHandler(receiver))",
  fetch: "import { webhookHandler } from 'proto-webhooks/fetch'; const POST = webhookHandler(receiver)",
  lambda:
    "import { webhookHandler } from 'proto-webhooks/lambda'; export const handler = webhookHandler(receiver)",
  koa:
    "import { webhookHandler } from 'proto-webhooks/node'; const handle = webhookHandler(receiver); " +
    'router.all(path, (ctx) => { ctx.respond = false; handle(ctx.req, ctx.res); })',
};

type Shape = (value: object) => boolean;

const field = (value: object, name: string): unknown => (value as Readonly<Record<string, unknown>>)[name];

const has = (value: object, name: string, type: 'function' | 'object'): boolean => {
  const member = field(value, name);
  return typeof member === type && member !== null;
};

const within = (value: object, name: string, shape: Shape): boolean => {
  const member = field(value, name);
  return typeof member === 'object' && member !== null && shape(member);
};

const isFetch: Shape = (value) =>
  has(value, 'arrayBuffer', 'function') &&
  within(value, 'headers', (headers) => has(headers, 'get', 'function'));

const isNode: Shape = (value) => has(value, 'on', 'function') && has(value, 'headers', 'object');

/**
 * For each framework, the features by which the first argument of its handlers is recognised. The first match
 * decides.
 */
const SHAPES: readonly (readonly [Caller, string, Shape])[] = [
  ['fetch', 'something that speaks the Fetch API', isFetch],
  ['hono', 'Hono', (value) => within(value, 'req', (req) => within(req, 'raw', isFetch))],
  ['fastify', 'Fastify', (value) => has(value, 'addHook', 'function') || within(value, 'raw', isNode)],
  ['koa', 'Koa', (value) => within(value, 'req', isNode)],
  ['express', 'Express, Connect or Nest', (value) => isNode(value) && has(value, 'app', 'function')],
  ['node', "Node's http", isNode],
  [
    'lambda',
    'AWS Lambda',
    (value) => has(value, 'requestContext', 'object') || typeof field(value, 'httpMethod') === 'string',
  ],
];

/**
 * The frameworks that each adapter accepts. The adapters for Node and Express accept both, because an Express request
 * is a Node request with more members.
 */
const TAKES: Readonly<Record<AdapterName, readonly Caller[]>> = {
  node: ['node', 'express'],
  express: ['express', 'node'],
  fastify: ['fastify'],
  hono: ['hono'],
  fetch: ['fetch'],
  lambda: ['lambda'],
};

const wiring = (message: string): ConfigError =>
  // Frameworks answer an error with the status that the error has. It is 503, because the fault is on the receiver's
  // side.
  Object.assign(new ConfigError(message), { status: 503, statusCode: 503 });

/** Makes the error for a handler that was called with something other than an HTTP request. */
export const noRequest = (door: AdapterName): ConfigError =>
  wiring(
    `The handler of 'proto-webhooks/${door}' was called with something that is not an HTTP request. ` +
      `It is used like this: ${USE[door]}.`,
  );

/**
 * Checks the receiver, and returns a function that checks the handler's first argument. After one right call, that
 * function checks nothing any more.
 *
 * The returned function throws a ConfigError with the line to change if another framework calls. The log and
 * `onOutcome` get the error too.
 * @throws ConfigError unless `receiver` is a receiver: at construction, or at the first request if a framework was
 * given `webhookHandler` itself.
 */
export function wiringOf(door: AdapterName, receiver: AdapterReceiver): (request: unknown) => void {
  requireReceiver(door, receiver);
  let known = false;
  return (request) => {
    if (known) return;
    const value = typeof request === 'object' && request !== null ? request : {};
    const found = SHAPES.find(([, , shape]) => shape(value));
    known = found !== undefined && TAKES[door].includes(found[0]);
    if (known) return;
    const error = found
      ? wiring(`The handler of 'proto-webhooks/${door}' was called by ${found[1]}. Write: ${USE[found[0]]}.`)
      : noRequest(door);
    faultReply(receiver, error);
    throw error;
  };
}

function requireReceiver(door: AdapterName, receiver: unknown): void {
  const value = typeof receiver === 'object' && receiver !== null ? receiver : {};
  if (has(value, 'verifyAndDispatch', 'function') && has(value, 'door', 'object')) return;
  throw wiring(
    `'proto-webhooks/${door}' was not given a receiver but ${receiver === null ? 'null' : typeof receiver}. ` +
      `Make one with createReceiver({ … }), and write: ${USE[door]}.`,
  );
}
