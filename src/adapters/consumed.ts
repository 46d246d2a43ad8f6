/**
 * What to tell the owner where a body was read before its door: the line to change. `bodyConsumed` says first what
 * happened. One name a door, so that none carries the words of the others.
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
