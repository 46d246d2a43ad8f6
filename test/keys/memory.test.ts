import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { KeyFetch } from '../../src/index.ts';
import type { SenderEntry } from '../../src/for-tests.ts';
import { parseSignatureInputFast } from '../../src/auth/for-tests.ts';
import { type Bench, MINUTE, publicJwk, senderEntry, setup, startSeller } from './setup.ts';
import { collect } from '../support/collect.ts';

/** What is reachable now, MiB. A turn of the event loop first: until it ends, what weak references were asked for is held. */
async function heldMiB(): Promise<number> {
  await setImmediate();
  collect();
  collect();
  return process.memoryUsage().heapUsed / 1_048_576;
}

const AGENT = 'https://seller.example/mcp';
const MINUTES_OF_A_DAY = 24 * 60;
const JWK = publicJwk('k');
const SHORT_LIVED = { headers: { 'cache-control': 'max-age=60' } };
/** Other agents' entries, of which none is alike. @param seed tells documents apart. @param keys of each: 16 KiB as text, where it is one. */
const otherAgents = (seed: string, keys = 1): object[] =>
  Array.from({ length: 100 }, (_, index) => ({
    url: `https://agent-${index}.${seed}/mcp`,
    signing_keys: Array.from({ length: keys }, (_key, at) => ({
      kty: 'OKP',
      crv: 'Ed25519',
      x: `${index}-${at}-${seed}`.padEnd(43, 'x'),
      kid: `${index}-${at}`,
    })),
  }));

const jwks = (): Response => Response.json({ keys: [JWK] });

/** MiB that a day of a delivery a minute adds, after the first minute. */
async function heldAfterADay({ keys, now, advance }: Bench, sender: SenderEntry): Promise<number> {
  let before = 0;
  for (let minute = 0; minute < MINUTES_OF_A_DAY; minute += 1) {
    const { candidates } = await keys.find('k', { senders: [sender], arrivedAt: now() });
    if (candidates.length !== 1) throw new Error(`no key in minute ${minute}`);
    advance(MINUTE);
    if (minute % 60 === 0) await setImmediate();
    // By then all code is loaded.
    if (minute === 0) before = await heldMiB();
  }
  return (await heldMiB()) - before;
}

test('a brand.json that points elsewhere every minute of a day leaves what its hard limit allows', async () => {
  let pointers = 0;
  const transport: KeyFetch = async (url) => {
    const { hostname, pathname } = new URL(url);
    if (pathname.endsWith('jwks.json')) return jwks();
    // In the last half hour those that are held at the end, of 512 KiB: as they are they would take 20 MiB.
    const isLate = pointers > MINUTES_OF_A_DAY - 35;
    if (hostname !== 'seller.example') {
      const agents = [{ url: AGENT }, ...otherAgents(hostname, isLate ? 50 : 1)];
      return Response.json({ agents }, SHORT_LIVED);
    }
    pointers += 1;
    return Response.json(
      { authoritative_location: `https://house-${pointers}.example/brand.json` },
      SHORT_LIVED,
    );
  };
  const bench = await setup({ fetch: transport, allowLoopback: false });
  const held = await heldAfterADay(bench, senderEntry(AGENT));
  expect(pointers).toBeGreaterThan(1_000);
  // The agents of 31 documents: 5 MiB. With the documents themselves 20 MiB, with all agents of the day 30.
  expect(held).toBeLessThan(10);
});

test('an adagents.json that points elsewhere every minute of a day is an alarm, and stays within the bound', async () => {
  let pointers = 0;
  const transport: KeyFetch = async (url) => {
    const { hostname } = new URL(url);
    if (hostname !== 'publisher.example') {
      const authorized_agents = [{ url: AGENT, signing_keys: [JWK] }, ...otherAgents(hostname)];
      return Response.json({ authorized_agents }, SHORT_LIVED);
    }
    pointers += 1;
    return Response.json({ authoritative_location: `https://house-${pointers}.example/a.json` }, SHORT_LIVED);
  };
  const bench = await setup({ fetch: transport, allowLoopback: false, limits: { maxBytes: 4 * 1_048_576 } });
  const held = await heldAfterADay(bench, senderEntry(AGENT, { publishers: ['publisher.example'] }));
  expect(pointers).toBeGreaterThan(1_000);
  // By its own hard limit of four hours there would be 240 of them, 20 MiB.
  expect(held).toBeLessThan(12);
  const moved = bench.alarmsOf('jwks_uri_moved');
  expect(moved.length).toBeGreaterThan(1_000);
  expect(moved[0]).toMatchObject({ sender: AGENT, first: 'https://house-1.example/a.json' });
  expect(moved[0]?.message).toContain(
    'its adagents.json at https://publisher.example/.well-known/adagents.json points to https://house-',
  );
});

test('of a publisher whose file was dropped only the keys of its sender are held', async () => {
  const transport: KeyFetch = async (url) => {
    const authorized_agents = [{ url: AGENT, signing_keys: [JWK] }, ...otherAgents(new URL(url).hostname)];
    return Response.json({ authorized_agents });
  };
  const { keys, now } = await setup({
    fetch: transport,
    allowLoopback: false,
    limits: { maxBytes: 1_048_576 },
  });
  const publishers = Array.from({ length: 300 }, (_, index) => `publisher-${index}.example`);
  const sender = senderEntry(AGENT, { publishers });
  const before = await heldMiB();
  const { candidates } = await keys.find('k', { senders: [sender], arrivedAt: now() });
  expect(candidates).toHaveLength(1);
  expect((await heldMiB()) - before).toBeLessThan(12);
});

test.each([
  ['of one sender goes', [], 2],
  ['that another sender has too stays', ['https://other.example/mcp'], 1],
])('the JWKS that a brand.json named before: %s', async (_, others, fetches) => {
  const asked: string[] = [];
  let place = 'a';
  const transport: KeyFetch = async (url) => {
    const { origin, pathname } = new URL(url);
    asked.push(url);
    if (pathname.endsWith('jwks.json'))
      return Response.json({ keys: [JWK] }, { headers: { 'cache-control': 'max-age=1800' } });
    const at = origin === 'https://seller.example' ? place : 'a';
    const jwks_uri = `https://${at}.keys.example/jwks.json`;
    return Response.json({ agents: [{ url: `${origin}/mcp`, jwks_uri }] }, SHORT_LIVED);
  };
  const { keys, now, advance } = await setup({ fetch: transport, allowLoopback: false });
  const find = async (agentUrl: string): Promise<number> => {
    const senders = [senderEntry(agentUrl)];
    return (await keys.find('k', { senders, arrivedAt: now() })).candidates.length;
  };
  for (const agentUrl of others) expect(await find(agentUrl)).toBe(1);
  for (place of ['a', 'b', 'a']) {
    expect(await find(AGENT)).toBe(1);
    advance(2 * MINUTE);
  }
  const count = (host: string): number => asked.filter((url) => url.startsWith(`https://${host}`)).length;
  expect([count('a.keys'), count('b.keys')]).toEqual([fetches, 1]);
});

test('each JWKS that a brand.json named before goes, also one that was named twice', async () => {
  const asked: string[] = [];
  let place = 'a';
  const transport: KeyFetch = async (url) => {
    const { origin, pathname, hostname } = new URL(url);
    if (pathname.endsWith('jwks.json')) {
      asked.push(hostname[0] ?? '');
      return Response.json({ keys: [JWK] }, { headers: { 'cache-control': 'max-age=1800' } });
    }
    const agents = [{ url: `${origin}/mcp`, jwks_uri: `https://${place}.keys.example/jwks.json` }];
    return Response.json({ agents }, SHORT_LIVED);
  };
  const { keys, now, advance } = await setup({ fetch: transport, allowLoopback: false });
  for (place of 'abababa') {
    const { candidates } = await keys.find('k', { senders: [senderEntry(AGENT)], arrivedAt: now() });
    expect(candidates).toHaveLength(1);
    advance(2 * MINUTE);
  }
  expect(asked.join('')).toBe('abababa');
});

test('documents and revocation lists have one bound', async () => {
  const asked: string[] = [];
  const kids = Array.from({ length: 5_000 }, (_, index) => `revoked-${index}`);
  const transport: KeyFetch = async (url) => {
    const { origin, pathname } = new URL(url);
    if (pathname.endsWith('brand.json')) {
      asked.push(url);
      return Response.json({ agents: [{ url: `${origin}/mcp` }] });
    }
    if (pathname.endsWith('jwks.json')) return jwks();
    const [updated, next_update] = [now() - MINUTE, now() + 20 * MINUTE].map((at) =>
      new Date(at).toISOString(),
    );
    const list = { version: '1', issuer: origin, updated, next_update, revoked_jtis: [] };
    return Response.json({ ...list, revoked_kids: kids });
  };
  const { keys, now } = await setup({
    fetch: transport,
    allowLoopback: false,
    limits: { maxBytes: 524_288 },
  });
  const senders = ['one', 'two', 'three'].map((name) => senderEntry(`https://${name}.example/mcp`));
  for (const sender of [...senders, ...senders]) {
    await keys.find('k', { senders: [sender], arrivedAt: now() });
    expect(await keys.revocation(sender, 'k')).toBe('valid');
    expect(await keys.revocation(sender, 'revoked-7')).toBe('revoked');
  }
  // The lists of the others had pushed them out.
  expect(asked.length).toBeGreaterThan(3);
});

test('a key that was found holds nothing of the header that named it', async () => {
  const kids = Array.from({ length: 200 }, (_, index) => `a-key-of-the-seller-${index}`);
  const { sender } = await startSeller(...kids.map((kid) => publicJwk(kid)));
  const { keys, now } = await setup();
  const found = async (keyid: string): Promise<number> =>
    (await keys.find(keyid, { senders: [sender], arrivedAt: now() })).candidates.length;
  await found('unknown');
  const before = await heldMiB();
  for (const kid of kids) {
    const line = `sig1=("x");created=1;expires=2;nonce="${'n'.repeat(65_000)}";keyid="${kid}";alg="a";tag="t"`;
    // Not the template, of which V8 would keep the parts: one text, as a request has it.
    const input = parseSignatureInputFast(Buffer.from(line).toString('latin1'));
    expect(await found(input?.parameters.keyid ?? '')).toBe(1);
  }
  // With the headers it is over 12 MiB.
  expect((await heldMiB()) - before).toBeLessThan(4);
});
