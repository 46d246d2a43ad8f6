import { defineConfig } from 'tsup';

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    node: 'src/adapters/node.ts',
    express: 'src/adapters/express.ts',
    fastify: 'src/adapters/fastify.ts',
    hono: 'src/adapters/hono.ts',
    fetch: 'src/adapters/fetch.ts',
    lambda: 'src/adapters/lambda.ts',
    memory: 'src/stores/memory.ts',
    sqlite: 'src/stores/sqlite.ts',
    postgres: 'src/stores/postgres.ts',
    redis: 'src/stores/redis.ts',
    bullmq: 'src/queues/bullmq.ts',
    'pg-boss': 'src/queues/pg-boss.ts',
    rfc9421: 'src/auth/rfc9421/index.ts',
    events: 'src/events/index.ts',
    sender: 'src/sender/sign.ts',
    testing: 'src/testing/index.ts',
    cli: 'src/cli/main.ts',
    vectors: 'src/vectors/index.ts',
  },
  format: 'esm',
  target: 'node20',
  platform: 'neutral',
  external: [/^node:/],
  splitting: true,
  // Without it `node:sqlite` becomes `sqlite`, and only users notice.
  removeNodeProtocol: false,
  dts: true,
  clean: true,
});
