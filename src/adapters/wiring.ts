import { ConfigError } from '../errors.ts';
import { faultReply, type DoorReceiver } from './door.ts';

/** The doors of the package, by their subpaths. */
export type DoorName = 'node' | 'express' | 'fastify' | 'hono' | 'fetch' | 'lambda';

/** Who may call a handler: Koa has no door of its own. */
type Caller = DoorName | 'koa';

/** The lines to write, for whoever holds the wrong one. */
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

/** What frameworks hand to a handler first, by what sets it apart. The first that fits names it. */
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

/** Doors that take each other's requests: Express's are Node's with more. */
const TAKES: Readonly<Record<DoorName, readonly Caller[]>> = {
  node: ['node', 'express'],
  express: ['express', 'node'],
  fastify: ['fastify'],
  hono: ['hono'],
  fetch: ['fetch'],
  lambda: ['lambda'],
};

const wiring = (message: string): ConfigError =>
  // Frameworks answer with it: a fault on our side is 503.
  Object.assign(new ConfigError(message), { status: 503, statusCode: 503 });

/** For whoever calls a handler with something that is no HTTP request. */
export const noRequest = (door: DoorName): ConfigError =>
  wiring(
    `The handler of 'proto-webhooks/${door}' was called with something that is no HTTP request. ` +
      `It is used like this: ${USE[door]}.`,
  );

/**
 * Checks what a handler is made of, and gives the check of what it is then called with: once it was called rightly, it
 * is not asked again.
 * @throws ConfigError unless `receiver` is one: at construction, or at first use where a handler was not made at all.
 * What is returned throws a ConfigError with the line to change where another framework calls; the log and `onOutcome`
 * see it too.
 */
export function wiringOf(door: DoorName, receiver: DoorReceiver): (given: unknown) => void {
  requireReceiver(door, receiver);
  let known = false;
  return (given) => {
    if (known) return;
    const value = typeof given === 'object' && given !== null ? given : {};
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

function requireReceiver(door: DoorName, receiver: unknown): void {
  const value = typeof receiver === 'object' && receiver !== null ? receiver : {};
  if (has(value, 'verifyAndDispatch', 'function') && has(value, 'door', 'object')) return;
  throw wiring(
    `'proto-webhooks/${door}' was not given a receiver but ${receiver === null ? 'null' : typeof receiver}. ` +
      `Make one with createReceiver({ … }), and write: ${USE[door]}.`,
  );
}
