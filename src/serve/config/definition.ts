// Defines the configuration file of `serve`. The definition checks files, and the JSON Schema is made of it (serve.md
// §1.1). Messages say what is wrong and what to write. They repeat no value, because a value may be a secret.
import * as z from 'zod';
import type {
  ConfigInFile,
  SecretPlace,
  SecretPlaces,
  SellerInFile,
  SinkInFile,
  SinkNumbers,
  StoreInFile,
} from './file-types.ts';
import { choice, flag, list, members, say, text, whole } from './members.ts';

/** Valid values that stand in for wrong members, so that the rest of the file can be checked too. */
export const SAMPLES = {
  publicUrl: 'https://buyer.example/',
  sellers: [{ agentUrl: 'https://seller.example/' }],
  sink: './sink.js',
} as const;

/** The file of the default store, relative to the folder of the configuration. */
export const DEFAULT_SQLITE = 'data/webhooks.db';

const MAX_RETENTION_MS = 8 * 86_400_000;

const PLACES = '{ env: NAME } or { file: path }';

const secret = (what: string): z.ZodType<SecretPlace> =>
  z
    .union(
      [
        members('An environment variable with the secret.', '{ env: NAME }', {
          env: text(
            'The name of the variable.',
            'Write the name of an environment variable, e.g. SINK_SECRET.',
          ),
        }),
        members('A file with the secret.', '{ file: path }', {
          file: text('The path of the file.', 'Write the path of a file, e.g. /run/secrets/sink.'),
        }),
      ],
      say('is not the place of a secret', `Write ${PLACES}: a secret is never in this file.`),
    )
    .describe(what);

const secrets = (what: string): z.ZodType<SecretPlaces> =>
  list(
    what,
    secret('A secret.'),
    'Write [{ env: NAME }]; while it is changed, the new one and then the former.',
    2,
  );

const AUTH = 'hmac, bearer or reports, or leave auth out: signatures are the default';

const auth = z
  .union(
    [
      members('HMAC-SHA256, deprecated.', '{ hmac: { secrets: [{ env: NAME }] } }', {
        hmac: members('HMAC-SHA256.', '{ secrets: [{ env: NAME }] }', {
          secrets: secrets('The secret, and the former one.'),
        }),
      }),
      members('A bearer token, deprecated.', '{ bearer: { tokens: [{ env: NAME }] } }', {
        bearer: members('A bearer token.', '{ tokens: [{ env: NAME }] }', {
          tokens: secrets('The token, and the former one.'),
          header: text(
            'The field that has the token alone.',
            'Write its name, e.g. X-A2A-Notification-Token.',
          ).optional(),
        }),
      }),
      members('Signatures, but HMAC for delivery reports.', '{ reports: { secrets: [{ env: NAME }] } }', {
        reports: members('HMAC-SHA256 of reports.', '{ secrets: [{ env: NAME }] }', {
          secrets: secrets('The secret, and the former one.'),
        }),
      }),
    ],
    say('is not one kind of auth', `Write one of ${AUTH}.`),
  )
  .describe('How the seller proves that it sends. Default: signatures by RFC 9421.');

const seller: z.ZodType<SellerInFile> = members(
  'A seller that may call.',
  '- agentUrl: https://seller.example/mcp',
  {
    agentUrl: text(
      'The URL of the agent, as the seller lists it.',
      'Write it, e.g. https://seller.example/mcp.',
    ),
    path: text(
      'The path that this seller was given, if publicUrl ends in /*. Then each seller has one.',
      'Write the whole path, e.g. /webhooks/seller.',
    ).optional(),
    auth: auth.optional(),
    brandJsonUrl: text(
      'The URL of brand.json.',
      'Write it, e.g. https://seller.example/brand.json.',
    ).optional(),
    edition: text(
      'The edition of the protocol that the seller speaks.',
      "Write it as a text, e.g. '3.2'.",
    ).optional(),
    format: choice('The format of its envelopes. Default: detected.', 'tool', 'agent').optional(),
    pins: list(
      'The only keys that may verify (public JWKs).',
      z.record(z.string(), z.unknown(), say('is not a JWK', 'Write a public key as a JWK.')),
      'Write public keys as JWKs.',
    ).optional(),
    publishers: list(
      'Domains whose adagents.json may pin its keys.',
      text('A domain.', 'Write a domain, e.g. publisher.example.'),
      'Write domains, e.g. [publisher.example].',
      100,
    ).optional(),
    revocation: members('Where its revoked keys are looked for.', '{ revokedKids: [kid] }', {
      url: text('The revocation list.', 'Write its URL.').optional(),
      discover: z.boolean(say('is not true or false', 'Write true or false.')).optional(),
      revokedKids: list(
        'Revoked key ids.',
        text('A key id.', 'Write a key id.'),
        'Write key ids.',
      ).optional(),
    }).optional(),
    notificationToken: members(
      'The token that it echoes beside its signature.',
      '{ tokens: [{ env: NAME }] }',
      {
        tokens: secrets('The token, and the former one.'),
        onMismatch: choice('What another token comes to. Default: warn.', 'warn', 'refuse').optional(),
      },
    ).optional(),
  },
);

const STORES = '{ sqlite: path }, or postgres, mysql or redis with { url: { env: NAME } }';

const connections = whole('The most connections of this process.', 2, 1_000, 10);

const store: z.ZodType<StoreInFile> = z
  .union(
    [
      members('A SQLite file.', '{ sqlite: data/webhooks.db }', {
        sqlite: text('The path of the file.', `Write a path, e.g. ${DEFAULT_SQLITE}.`),
      }),
      members('PostgreSQL.', '{ postgres: { url: { env: DATABASE_URL } } }', {
        postgres: members('PostgreSQL.', '{ url: { env: DATABASE_URL } }', {
          url: secret('The URL of the database.'),
          schema: text('Its schema. Default: proto_webhooks.', 'Write the name of a schema.').optional(),
          connections,
        }),
      }),
      members('MariaDB or MySQL.', '{ mysql: { url: { env: DATABASE_URL } } }', {
        mysql: members('MariaDB or MySQL.', '{ url: { env: DATABASE_URL } }', {
          url: secret('The URL of the database.'),
          connections,
        }),
      }),
      members('Redis.', '{ redis: { url: { env: REDIS_URL } } }', {
        redis: members('Redis.', '{ url: { env: REDIS_URL } }', {
          url: secret('The URL of the server.'),
          prefix: text(
            'The prefix of its keys. Default: webhook:.',
            'Write a prefix, e.g. webhook:.',
          ).optional(),
          waitReplicas: whole('Replicas that confirm each write.', 0, 100, 1).unwrap().optional(),
        }),
      }),
    ],
    say('is not one store', `Write one of ${STORES}.`),
  )
  .describe('Where events are kept.');

/** The default numbers of a sink (destination of events). */
export const SINK_NUMBERS: SinkNumbers = { timeoutMs: 15_000, concurrency: 16, attempts: 20 };

const sinkNumbers = {
  // An event's lease (the time for which a process reserves it) is 1.5 times this limit (`instance.ts`). A lease may be
  // at most ten minutes, so the limit is at most 400 000.
  timeoutMs: whole('How long an answer may take, ms.', 1, 400_000, SINK_NUMBERS.timeoutMs),
  concurrency: whole('The most events under way.', 1, 10_000, SINK_NUMBERS.concurrency),
  attempts: whole(
    'Charged failures of one event, while others pass, until it is DEAD.',
    1,
    1_000,
    SINK_NUMBERS.attempts,
  ),
};

const SINKS =
  '{ url: http://127.0.0.1:3000/events, secrets: [{ env: SINK_SECRET }] }, or the path of a module';

const sink: z.ZodType<SinkInFile> = z
  .union(
    [
      text('The path of a module that exports send(event, { signal }).', `Write ${SINKS}.`),
      members('A URL that gets a POST for each event.', SINKS, {
        url: text('The URL.', 'Write it, e.g. http://127.0.0.1:3000/events.'),
        secrets: secrets('The secret that signs (whsec_…), and the former one.'),
        headers: z
          .record(
            z.string(),
            secret('The value.'),
            say('is not a mapping', 'Write { Authorization: { env: NAME } }.'),
          )
          .describe('Fields that each request has too.')
          .optional(),
        ...sinkNumbers,
      }),
      members('A module that exports send(event, { signal }).', '{ module: ./sink.js }', {
        module: text('Its path.', 'Write a path, e.g. ./sink.js.'),
        ...sinkNumbers,
      }),
    ],
    say('is not one sink', `Write ${SINKS}.`),
  )
  .describe('What the events are handed to.');

const port = (standard: number): z.ZodDefault<z.ZodNumber> =>
  whole('The port; 0: any that is free.', 0, 65_535, standard);

const host = text('The address.', 'Write an address of this machine, e.g. 127.0.0.1.').default('127.0.0.1');

const durability = choice('What an answered event survives.', 'process', 'disk', 'failover').optional();

const STATUSES = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected',
] as const;

const EVENTS = 'Write task, task.completed, deliveryReport, other or a family.';

/**
 * Matches a name that looks like a kind of events but is none: another spelling, a report's type, or the `type` of a
 * CloudEvent.
 */
const ALMOST_A_KIND = /^(?:proto\..*|(?:tasks?|other|delivery[-_]?reports?)(?:\..*)?)$/i;
const KINDS: ReadonlySet<string> = new Set(['task', 'deliveryReport', 'delivery-report', 'other']);

const eventName = text('A kind, a status of tasks, or a family.', EVENTS)
  .refine((name) => !name.startsWith('task.') || STATUSES.some((status) => name === `task.${status}`), {
    error: `is not the status of a task. Write one of ${STATUSES.map((status) => `task.${status}`).join(', ')}.`,
  })
  .refine((name) => name.startsWith('task.') || KINDS.has(name) || !ALMOST_A_KIND.test(name), {
    error: `is not the name of an event, and would forward none. ${EVENTS}`,
  });

const PUBLIC_URL = 'Write the URL that sellers were given, e.g. https://buyer.example/webhooks/seller.';

/** The definition of the configuration file. */
export const CONFIG_FILE: z.ZodType<ConfigInFile> = members(
  'Configuration of `proto-webhooks serve`.',
  'publicUrl, sellers and sink',
  {
    publicUrl: z
      .union(
        [text('One URL.', PUBLIC_URL), list('Several.', text('A URL.', PUBLIC_URL), PUBLIC_URL, 8)],
        say('is not a URL', PUBLIC_URL),
      )
      .describe('The URL that sellers were given, or a list of them. It ends in /* if sellers have paths.'),
    sellers: list(
      'The sellers that may call.',
      seller,
      'Write a list: - agentUrl: https://seller.example/mcp',
    ),
    sink,
    listen: members('Where sellers reach it.', '{ host: 0.0.0.0, port: 8080 }', {
      host,
      port: port(8080),
    }).prefault({}),
    health: members('Where /livez, /readyz and /metrics are.', '{ port: 8081 }', {
      host,
      port: port(8081),
      metrics: flag('Whether /metrics answers, for Prometheus.'),
    }).prefault({}),
    store: store.default({ sqlite: DEFAULT_SQLITE }),
    durability: members('What the store has to keep.', '{ require: disk }', {
      require: durability,
      declared: durability,
    }).optional(),
    events: list(
      'The events that are forwarded. Default: all.',
      eventName,
      'Write e.g. [task.completed].',
    ).optional(),
    limits: members('Limits.', '{ maxBodyBytes: 1048576 }', {
      maxBodyBytes: whole('The largest body, bytes.', 1, 1_073_741_824, 1_048_576),
      maxRecordsPerSender: whole('The most records of a seller.', 1, Number.MAX_SAFE_INTEGER, 1_000_000),
      maxPendingBytesPerSender: whole(
        'The most bytes of a seller that wait.',
        1,
        Number.MAX_SAFE_INTEGER,
        268_435_456,
      ),
      retentionMs: whole(
        'How long a finished event is remembered, ms.',
        86_400_000,
        MAX_RETENTION_MS,
        86_400_000,
      ),
    }).prefault({}),
    expectStoreId: text(
      'The only store that is accepted, by its id (alarm store_created).',
      'Write the id of the store.',
    ).optional(),
    hostCheck: choice('Whether Host is compared with publicUrl.', 'strict', 'off').default('strict'),
    allowLoopback: flag('Allows http and private addresses of sellers, for development.'),
  },
);

/** Returns the definition as JSON Schema (2020-12), for editors. */
export const configSchema = (): object => ({
  title: 'proto-webhooks serve',
  ...z.toJSONSchema(CONFIG_FILE, { io: 'input' }),
});
