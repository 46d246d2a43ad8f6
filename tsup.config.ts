import { dirname, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'esbuild';
import { defineConfig } from 'tsup';

const root = dirname(fileURLToPath(import.meta.url));

/**
 * `serve` is loaded by the command line alone, and uses the library as its users do: what it imports of it is an entry, and zod the
 * package. So no chunk of the library is cut otherwise, or has more in it, because of `serve`.
 */
const serveApart: Plugin = {
  name: 'serve-apart',
  setup(build) {
    const given = build.initialOptions.entryPoints as Readonly<Record<string, string>>;
    const entries = new Map(
      Object.entries(given).map(([name, file]) => [resolve(root, file), `./${name}.js`]),
    );
    const isServe = (importer: string): boolean =>
      relative(root, importer).startsWith(`src${sep}serve${sep}`);
    build.onResolve({ filter: /^\.|^zod$/ }, ({ path, importer }) => {
      if (!isServe(importer)) return undefined;
      const external = path === 'zod' ? path : entries.get(resolve(dirname(importer), path));
      return external === undefined ? undefined : { path: external, external: true };
    });
  },
};

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
    mysql: 'src/stores/mysql.ts',
    store: 'src/stores/index.ts',
    redis: 'src/stores/redis.ts',
    bullmq: 'src/queues/bullmq.ts',
    'pg-boss': 'src/queues/pg-boss.ts',
    rfc9421: 'src/auth/rfc9421/index.ts',
    events: 'src/events/index.ts',
    sender: 'src/sender/sign.ts',
    registry: 'src/registry/index.ts',
    registrations: 'src/registrations/index.ts',
    mcp: 'src/registrations/mcp.ts',
    a2a: 'src/registrations/a2a.ts',
    poller: 'src/poll/index.ts',
    reconcile: 'src/reconcile/index.ts',
    testing: 'src/testing/index.ts',
    cli: 'src/cli/main.ts',
    vectors: 'src/vectors/index.ts',
    otel: 'src/otel/index.ts',
  },
  format: 'esm',
  target: 'node22.13',
  platform: 'neutral',
  external: [/^node:/],
  // Of its 90 files, locales among them, schemas use five: loading them took two thirds of a cold start.
  noExternal: ['zod'],
  splitting: true,
  esbuildPlugins: [serveApart],
  // Without it `node:sqlite` becomes `sqlite`, and only users notice.
  removeNodeProtocol: false,
  dts: true,
  clean: true,
});
