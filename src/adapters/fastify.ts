// Serves a receiver at one path of Fastify 4 and 5: the entry `proto-webhooks/fastify` (docs/frameworks.md).
// Called by buyers; `node-adapter.ts` reads the request and writes the answer.

import { ConfigError } from '../shared/errors.ts';
import { type AdapterReceiver, FASTIFY_FIX, wiringOf } from './shared-adapter.ts';
import { type NodeRequest, type NodeResponse, serveSafely } from './node-adapter.ts';

export type { NodeRequest } from './node-adapter.ts';
export type { AdapterReceiver } from './shared-adapter.ts';
export type { NodeResponse } from './node-adapter.ts';

/** A Fastify request, reduced to the parts that `webhookPlugin` uses. */
export interface FastifyRequest {
  readonly raw: NodeRequest;
  /** The request target as received, before `rewriteUrl`. */
  readonly originalUrl?: string;
}

/** A Fastify reply, reduced to the parts that `webhookPlugin` uses. */
export interface FastifyReply {
  readonly raw: NodeResponse;
  /** Tells Fastify that the plugin sends the answer itself. */
  hijack(): unknown;
}

/** A Fastify instance, version 4 or 5, reduced to the parts that `webhookPlugin` uses. */
export interface FastifyInstance {
  addHook(
    name: 'onRequest',
    hook: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void,
  ): unknown;
  route(options: { method: string[]; url: string; handler: () => undefined }): unknown;
}

/** The methods that are routed to the receiver: all, so that the receiver itself answers 405 with `Allow`. */
const METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'];

const noPath = (path: unknown): ConfigError =>
  new ConfigError(
    `'proto-webhooks/fastify': the path is ${JSON.stringify(path) ?? 'missing'}, and must begin with /. Write: app.register(webhookPlugin(receiver, '/webhooks/proto')).`,
  );

/**
 * Creates a plugin for Fastify 4 and 5 that serves a receiver at one path.
 *
 * The plugin registers `path` in a scope of its own and reads the body itself, before any content-type parser. Parsers,
 * body limits and other routes stay as they are. Hooks of the surrounding scope run: `onRequest` before the receiver,
 * `onResponse` after its answer. `request.body` is never set.
 * @param path the route's path, e.g. `/webhooks/proto`; `/webhooks/*` for a `publicUrl` that ends in `/*`.
 * @throws ConfigError for a value that is not a receiver, or a path that does not begin with `/`.
 * @example
 * ```ts
 * import fastify from 'fastify';
 * import type { Receiver } from 'proto-webhooks';
 * import { webhookPlugin } from 'proto-webhooks/fastify';
 *
 * export async function serve(receiver: Receiver): Promise<void> {
 *   const app = fastify();
 *   app.register(webhookPlugin(receiver, '/webhooks/proto'));
 *   await app.listen({ port: 3000 });
 * }
 * ```
 */
export function webhookPlugin(
  receiver: AdapterReceiver,
  path: string,
): (instance: FastifyInstance, options: unknown, done: () => void) => void {
  const check = wiringOf('fastify', receiver);
  // Fastify would refuse a wrong path only at its start, and end the process. An empty path is allowed, because
  // `register` may add a prefix.
  if (typeof path !== 'string' || !/^(?:[/*]|$)/.test(path)) throw noPath(path);
  return (instance, _options, done) => {
    check(instance);
    // The hook runs before content-type parsers. A parser would come too late, because Fastify itself answers a
    // malformed Content-Type before it calls one.
    instance.addHook('onRequest', ({ raw, originalUrl }, reply) => {
      reply.hijack();
      serveSafely(receiver, { fix: FASTIFY_FIX, req: raw, res: reply.raw, url: originalUrl ?? raw.url });
    });
    instance.route({ method: [...METHODS], url: path, handler: () => undefined });
    done();
  };
}
