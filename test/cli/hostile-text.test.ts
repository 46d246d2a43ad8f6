import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type CliProcess, main } from '../../src/cli/for-tests.ts';
import { PermanentError } from '../../src/index.ts';
import { createRegistrations } from '../../src/registrations/index.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import { type Listening, listening } from '../adapters/raw-client.ts';
import { AGENT, payloads, testReceiver } from '../receiver/setup.ts';
import { NEWEST } from '../registrations/kit.ts';
import { HOSTILE, everywhere, MARK } from '../support/hostile-text.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { probeKeys } from './probe/bench.ts';
import { BODY, captured, keys, NOW, signed, text } from './explain/captures.ts';
import { tempFolder } from './temp-folder.ts';

/*
 * Hostile text in every place of what the command line reads of others. It prints lines of its own: none of them may be begun by
 * such a text, and none has a character that a terminal acts on.
 */

const ACTED_ON =
  // oxlint-disable-next-line no-control-regex -- control characters are what it is for
  /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\p{Cs}]/u;

/** Lines of a text that is printed: one is at most what a message may have, and what is ours around it. */
const MOST = 9_000;

async function printed(args: readonly string[], cwd: string): Promise<string> {
  let all = '';
  const stream = { isTTY: false, write: (text: string) => ((all += text), true) };
  const { env, stdin } = process;
  await main(args, { env, stdin, cwd: () => cwd, stdout: stream, stderr: stream } as unknown as CliProcess);
  const lines = all.split('\n');
  const wrong = lines.filter(
    (line) => ACTED_ON.test(line) || line.length > MOST || /^\W*pass {2}step forged/.test(line),
  );
  expect(wrong.map((line) => JSON.stringify(line.slice(0, 300)))).toEqual([]);
  return all;
}

async function har(): Promise<object> {
  const { method, url, headers, body } = await signed();
  return {
    startedDateTime: new Date(NOW).toISOString(),
    request: {
      method,
      url,
      headers: Object.entries(headers).map(([name, value]) => ({ name, value })),
      postData: { mimeType: 'application/json', text: text(body) },
    },
  };
}

async function vector(): Promise<object> {
  const { headers, body, url } = await signed();
  return {
    name: 'n',
    reference_now: NOW / 1000,
    request: { method: 'POST', url, headers, body: text(body) },
    jwks_ref: ['first'],
    expected_outcome: { success: true },
  };
}

it.each([
  ['a HAR entry', har, ['explain']],
  ['a vector', vector, ['explain']],
  ['a vector that is run', vector, ['vectors', 'run']],
] as const)('%s: what is printed of it is lines of ours', async (_, make, verb) => {
  using folder = tempFolder();
  const { ed25519 } = await keys();
  writeFileSync(folder.file('keys.json'), JSON.stringify({ keys: [ed25519.publicJwk] }));
  let marked = 0;
  for (const json of everywhere(await make())) {
    writeFileSync(folder.file('it.json'), JSON.stringify(json));
    const more = verb[0] === 'explain' ? ['--keys', 'keys.json'] : [];
    const all = await printed([...verb, 'it.json', ...more], folder.path);
    if (all.includes(MARK)) marked += 1;
  }
  expect(marked).toBeGreaterThan(0);
});

it('a body and its members, and a curl command', async () => {
  using folder = tempFolder();
  const { ed25519 } = await keys();
  writeFileSync(folder.file('keys.json'), JSON.stringify({ keys: [ed25519.publicJwk] }));
  for (const [at, json] of everywhere(JSON.parse(BODY)).entries()) {
    const delivery = captured(await signed({ body: JSON.stringify(json) }));
    const lines = delivery.headers.map(([name, value]) => `-H '${name}: ${value}'`).join(' ');
    const body = text(delivery.body).replaceAll("'", String.raw`'\''`);
    writeFileSync(
      folder.file('it.sh'),
      `curl -X '${at === 0 ? HOSTILE : 'POST'}' https://buyer.example${delivery.target} ${lines} --data-raw '${body}'`,
    );
    await printed(['explain', 'it.sh', '--keys', 'keys.json'], folder.path);
  }
});

it('a seller’s documents', async () => {
  using folder = tempFolder();
  await using seller = await createFakeSeller();
  let marked = 0;
  for (const path of ['/.well-known/brand.json', '/.well-known/jwks.json']) {
    const published = seller.documents.get(path);
    const given: unknown = typeof published === 'function' ? await (published as () => unknown)() : published;
    for (const document of everywhere(given)) {
      seller.documents.set(path, document);
      const all = await printed(['keys', 'check', seller.agentUrl, '--allow-loopback'], folder.path);
      if (all.includes(MARK)) marked += 1;
    }
    seller.documents.set(path, published);
  }
  expect(marked).toBeGreaterThan(0);
});

it('a publisher’s list and a revocation list', async () => {
  using folder = tempFolder();
  await using seller = await createFakeSeller();
  const { host } = new URL(seller.agentUrl);
  const { ed25519 } = await keys();
  const check = ['keys', 'check', seller.agentUrl, '--allow-loopback', '--publisher', host];
  const path = '/.well-known/adagents.json';
  const listed = {
    authorized_agents: [{ url: seller.agentUrl, authorized_for: 'all', signing_keys: [ed25519.publicJwk] }],
    authoritative_location: `${new URL(seller.agentUrl).origin}/list.json`,
  };
  let marked = 0;
  const printedHere = async (): Promise<void> => {
    if ((await printed(check, folder.path)).includes(MARK)) marked += 1;
  };
  for (const document of [...everywhere(listed), HOSTILE, [HOSTILE]]) {
    seller.documents.set(path, document);
    await printedHere();
  }
  seller.documents.delete(path);
  expect(marked).toBeGreaterThan(0);
  const before = new Set(seller.documents.keys());
  seller.revoke([HOSTILE, HOSTILE.slice(0, 40), 'gone']);
  expect(await printed(check, folder.path)).toContain('fresh, 3 revoked');
  const [list = ''] = [...seller.documents.keys()].filter((name) => !before.has(name));
  const published = seller.documents.get(list);
  const given: unknown = typeof published === 'function' ? await (published as () => unknown)() : published;
  let refused = 0;
  for (const document of everywhere(given)) {
    seller.documents.set(list, document);
    if (!(await printed(check, folder.path)).includes('fresh, 3 revoked')) refused += 1;
  }
  expect(refused).toBeGreaterThan(3);
});

/** Answers every request with the next of the bodies, for as long as there are some. */
async function answering(bodies: readonly string[], status: number): Promise<Listening> {
  let at = 0;
  return listening((req, res) => {
    req.resume();
    const headers = { 'content-type': 'application/json', 'x-said': `\u009B31m${MARK}`, 'retry-after': '0' };
    if (at % 2 === 0) Object.assign(headers, { 'www-authenticate': `Signature error="\u009B31m${MARK}"` });
    res.writeHead(status, headers).end(bodies[at % bodies.length]);
    at += 1;
  });
}

const BADGE = {
  agent_url: 'https://seller.example/mcp',
  role: 'sales',
  verified: true,
  proto_version: '3.0',
  adcp_version: '3.0',
  badge_svg_url: 'https://registry.example/badge.svg',
  registry_url: 'https://registry.example/agents/1',
  html: '<img alt="3.0">',
  markdown: '![3.0](badge.svg)',
  later: { kept: ['x'] },
};

const RUN = {
  agent_url: BADGE.agent_url,
  run_id: 'r-1',
  count: 1,
  diagnostics: [
    {
      id: 7,
      run_id: 'r-1',
      storyboard_id: 'webhooks',
      phase_id: 'deliver',
      step_id: 'sign',
      task: 'create_media_buy',
      step_passed: false,
      captured_at: '2026-11-21T20:23:54Z',
      request_url: 'https://seller.example/mcp',
      request_jsonb: { account: 'acme', nested: ['x'] },
      response_status: 500,
      response_jsonb: 'text',
      error_text: 'failed',
      failed_validations_jsonb: [{ path: '/a' }],
    },
  ],
};

it.each<readonly [string, readonly unknown[], number, readonly string[]]>([
  ['a badge', everywhere(BADGE), 200, ['registry', 'badge', BADGE.agent_url, 'sales']],
  ['a run', everywhere(RUN), 200, ['registry', 'diagnostics', BADGE.agent_url, '--bodies']],
  ['an error', everywhere({ error: 'no', code: 'x' }), 400, ['registry', 'badge', BADGE.agent_url, 'sales']],
])('what a registry answers: %s', async (_what, answers, status, verb) => {
  using folder = tempFolder();
  writeFileSync(folder.file('token'), 'sk_live_secret');
  await using server = await answering(
    answers.map((answer) => JSON.stringify(answer)),
    status,
  );
  const flags = ['--registry', server.url, '--allow-loopback', '--token-file', 'token'];
  let marked = 0;
  for (let times = 0; times < answers.length; times += 1) {
    if ((await printed([...verb, ...flags], folder.path)).includes(MARK)) marked += 1;
  }
  expect(marked).toBeGreaterThan(1);
});

it.each([
  ['send', 200, ['send']],
  ['send', 401, ['send']],
  ['vectors probe', 400, ['vectors', 'probe', '--only', 'unsigned', '--only', 'duplicate']],
] as const)('what a receiver answers to %s with %i', async (_verb, status, verb) => {
  using folder = tempFolder();
  writeFileSync(
    folder.file('keys.json'),
    JSON.stringify({ keys: (await probeKeys()).map(({ privateJwk }) => privateJwk) }),
  );
  const answers = [HOSTILE, ...everywhere({ error: { code: 'x', message: 'no' } })].map((is) =>
    typeof is === 'string' ? is : JSON.stringify(is),
  );
  await using server = await answering(answers, status);
  let marked = 0;
  for (let times = 0; times < answers.length; times += 1) {
    const [name, ...more] = verb;
    const kid = name === 'send' ? ['--kid', (await probeKeys())[0]?.publicJwk.kid as string] : [];
    const args = [name, ...more, `${server.url}/hook`, '--keys', 'keys.json', ...kid];
    if ((await printed(args, folder.path)).includes(MARK)) marked += 1;
  }
  expect(marked).toBeGreaterThan(0);
});

it('what a receiver has stored: events, handlers’ errors, tasks', async () => {
  using folder = tempFolder();
  const store = sqliteStore(folder.file('it.db'));
  const registrations = createRegistrations({
    store,
    baseUrl: 'https://buyer.example/webhooks',
    secrets: [NEWEST],
    logger: SILENT_LOGGER,
  });
  const { receiver, deliver } = await testReceiver({
    store,
    registrations,
    handler: () => Promise.reject(new PermanentError(HOSTILE)),
  });
  await receiver.ready();
  const made = await registrations.create({
    agentUrl: AGENT,
    taskType: 'create_media_buy',
    arguments: {},
    ref: HOSTILE.slice(0, 300),
  });
  await made.settle({ status: 'submitted', task_id: HOSTILE.slice(0, 4_000) });
  const keysOf: string[] = [];
  for (const payload of everywhere(payloads.tool('completed'))) {
    const key = randomUUID();
    const { event } = await deliver({ idempotency_key: key, ...(payload as object) });
    if (event) keysOf.push(event.idempotencyKey);
  }
  await receiver.stop();
  const at = ['--sqlite', 'it.db'];
  expect(await printed(['inbox', 'list', ...at], folder.path)).toContain(MARK);
  expect(await printed(['tasks', '--state', 'open', ...at], folder.path)).toContain(MARK);
  await printed(['inbox', 'stats', ...at], folder.path);
  expect(keysOf.length).toBeGreaterThan(5);
  for (const key of keysOf) {
    expect(await printed(['inbox', 'show', AGENT, key, ...at], folder.path)).toContain(MARK);
  }
});
