import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { configSchema } from '../../src/serve/for-tests.ts';

const published = JSON.parse(
  readFileSync(new URL('../../webhooks.schema.json', import.meta.url), 'utf8'),
) as object;

it('the published schema is that of the definition (if not: npm run serve:schema)', () => {
  expect(published).toEqual(JSON.parse(JSON.stringify(configSchema())));
});

const validate = new Ajv2020({ strict: true, strictTypes: false }).compile(published);

const LEAST = `
publicUrl: https://buyer.example/webhooks/seller
sellers: [{ agentUrl: https://seller.example/mcp }]
sink: ./mine.js
`;

it.each([
  ['the least', LEAST],
  [
    'all of it',
    `
publicUrl: [https://buyer.example/webhooks/*]
sellers:
  - agentUrl: https://seller.example/mcp
    path: /webhooks/seller
    edition: '3.2'
    format: tool
    publishers: [publisher.example]
    revocation: { url: https://seller.example/revoked.json, discover: false, revokedKids: [a] }
    notificationToken: { tokens: [{ env: TOKEN }], onMismatch: refuse }
  - { agentUrl: https://a.example/mcp, path: /webhooks/a, auth: { hmac: { secrets: [{ env: A }, { file: b }] } } }
  - { agentUrl: https://b.example/mcp, path: /webhooks/b, auth: { bearer: { tokens: [{ env: A }], header: X-Token } } }
  - { agentUrl: https://c.example/mcp, path: /webhooks/c, auth: { reports: { secrets: [{ env: A }] } } }
listen: { host: 0.0.0.0, port: 8080 }
health: { host: 127.0.0.1, port: 8081, metrics: true }
store: { postgres: { url: { env: DATABASE_URL }, schema: webhooks, connections: 5 } }
durability: { require: failover, declared: disk }
sink:
  url: http://127.0.0.1:3000/events
  secrets: [{ env: SINK_SECRET }]
  headers: { Authorization: { file: /run/secrets/sink } }
  timeoutMs: 15000
  concurrency: 16
  attempts: 20
events: [task.completed, deliveryReport]
limits: { maxBodyBytes: 1048576, maxRecordsPerSender: 1000000, maxPendingBytesPerSender: 268435456, retentionMs: 86400000 }
hostCheck: off
allowLoopback: false
`,
  ],
])('it accepts %s', (_, yaml) => {
  expect(validate(parse(yaml)), JSON.stringify(validate.errors)).toBe(true);
});

it.each([
  ['a member that is not known', 'storage: x'],
  ['a wrong type', "listen: { port: '80' }"],
  ['out of range', 'listen: { port: 70000 }'],
  ['a secret in the file', 'store: { redis: { url: redis://h } }'],
  ['two stores', 'store: { sqlite: a, redis: { url: { env: A } } }'],
])('it refuses %s', (_, line) => {
  expect(validate(parse(`${LEAST}${line}\n`))).toBe(false);
});
