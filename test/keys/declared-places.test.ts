import { describe, expect, test } from 'vitest';
import type { EditionName, Jwk, Store } from '../../src/index.ts';
import type { Declared, KeySearch } from '../../src/keys/for-tests.ts';
import { editionFor, type SenderEntry } from '../../src/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { type KeyServer, startKeyServer } from './key-server.ts';
import { type Bench, BRAND, declare, MINUTE, publicJwk, senderEntry, setup } from './setup.ts';

interface Agent {
  readonly server: KeyServer;
  readonly agentUrl: string;
  /** Lists the agent in a file of this server, with keys of its own. */
  readonly list: (path: string, ...keys: readonly Jwk[]) => string;
}

async function startAgent(server?: KeyServer): Promise<Agent> {
  const own = server ?? (await startKeyServer());
  const agentUrl = `${own.origin}/mcp`;
  return {
    server: own,
    agentUrl,
    list: (path, ...keys) => {
      const jwks = `${path}.keys`;
      own.serve(jwks, { keys });
      own.serve(path, { agents: [{ url: agentUrl, jwks_uri: `${own.origin}${jwks}` }] });
      return `${own.origin}${path}`;
    },
  };
}

const of = (agentUrl: string, edition?: EditionName, more: Partial<SenderEntry> = {}): SenderEntry =>
  senderEntry(agentUrl, { edition: editionFor(edition), ...more });

async function found(bench: Bench, keyid: string, ...senders: readonly SenderEntry[]): Promise<unknown> {
  const { candidates, undecided }: KeySearch = await bench.keys.find(keyid, {
    senders,
    arrivedAt: bench.now(),
  });
  const whose: unknown[] = [];
  for (const { sender, key, firstUse } of candidates)
    if ((await firstUse?.()) === undefined) whose.push([sender.agentUrl, key.jwk['x']]);
  return whose.length > 0 ? whose : undecided.length > 0 ? 'undecided' : 'unknown';
}

/** A seller with a key at each of its places, and what it declared in the store. */
async function twoPlaces(more: Partial<Declared> = {}) {
  const store = memoryStore();
  const agent = await startAgent();
  const [usual, declared] = [publicJwk('usual'), publicJwk('declared')];
  agent.list(BRAND, usual);
  const brandJsonUrl = agent.list('/declared.json', declared);
  await declare(store, agent.agentUrl, { brandJsonUrl, ...more });
  const bench = await setup({ store });
  const key = (jwk: Jwk): unknown => [[agent.agentUrl, jwk['x']]];
  return { ...agent, store, bench, usual, declared, brandJsonUrl, key };
}

describe('keys at a place that the seller declares (verification.md §5.1a)', () => {
  test.each([undefined, '3.1', '3.2'] as const)('edition %s: beside the usual place', async (edition) => {
    const { bench, agentUrl, usual, declared, key } = await twoPlaces();
    const sender = of(agentUrl, edition);
    for (let time = 0; time < 2; time += 1) {
      expect(await found(bench, 'declared', sender)).toEqual(key(declared));
      expect(await found(bench, 'usual', sender)).toEqual(key(usual));
      bench.advance(31_000);
    }
    expect(await found(bench, 'made up', sender)).toBe('unknown');
    expect(bench.alarms).toEqual([]);
  });

  test('edition 3.0: ignored; 3.3: in the place of the usual one', async () => {
    const { bench, agentUrl, usual, declared, key } = await twoPlaces();
    expect(await found(bench, 'usual', of(agentUrl, '3.0'))).toEqual(key(usual));
    expect(await found(bench, 'usual', of(agentUrl, '3.3'))).toBe('unknown');
    expect(await found(bench, 'declared', of(agentUrl, '3.3'))).toEqual(key(declared));
    bench.advance(31_000);
    expect(await found(bench, 'declared', of(agentUrl, '3.0'))).toBe('unknown');
  });

  test('the owner’s word is absolute: a configured place, and pins', async () => {
    const { bench, agentUrl, server, usual, key } = await twoPlaces();
    const configured = of(agentUrl, undefined, { brandJsonUrl: `${server.origin}${BRAND}` });
    expect(await found(bench, 'declared', configured)).toBe('unknown');
    expect(await found(bench, 'usual', configured)).toEqual(key(usual));
    expect(await found(bench, 'declared', of(agentUrl, undefined, { pins: [usual] }))).toBe('unknown');
    expect(server.count('/declared.json')).toBe(0);
  });

  test('a usual place that is not there: the declared one has the keys, and an unknown key is undecided', async () => {
    const { bench, agentUrl, server, declared, key } = await twoPlaces();
    server.answer(BRAND, (_req, res) => void res.writeHead(404).end());
    expect(await found(bench, 'declared', of(agentUrl))).toEqual(key(declared));
    expect(bench.alarms).toEqual([]);
    expect(await found(bench, 'made up', of(agentUrl))).toBe('undecided');
  });

  test('what is declared after the first delivery is read before a key is called unknown', async () => {
    const store = memoryStore();
    const agent = await startAgent();
    agent.list(BRAND, publicJwk('usual'));
    const late = publicJwk('late');
    const bench = await setup({ store });
    expect(await found(bench, 'late', of(agent.agentUrl))).toBe('unknown');
    await declare(store, agent.agentUrl, { brandJsonUrl: agent.list('/late.json', late) });
    bench.advance(31_000);
    expect(await found(bench, 'late', of(agent.agentUrl))).toEqual([[agent.agentUrl, late['x']]]);
    expect(agent.server.count('/late.json')).toBe(1);
  });

  test('a store that cannot be read leaves an unknown key undecided, and a known one as it is', async () => {
    const { store, agentUrl, usual, key } = await twoPlaces();
    const down = {
      registrations: { ...store.registrations, run: async () => Promise.reject(new Error('down')) },
    };
    const bench = await setup({ store: down as unknown as Store });
    expect(await found(bench, 'usual', of(agentUrl))).toEqual(key(usual));
    expect(await found(bench, 'declared', of(agentUrl))).toBe('undecided');
  });

  test('what a list at the origin of one place revokes is revoked for keys of the other', async () => {
    const { bench, agentUrl, server } = await twoPlaces();
    const list = {
      version: 1,
      issuer: server.origin,
      updated: new Date(bench.now()).toISOString(),
      next_update: new Date(bench.now() + 10 * MINUTE).toISOString(),
      revoked_kids: ['declared'],
      revoked_jtis: [],
    };
    server.serve('/.well-known/adcp-revocations.json', list);
    const sender = of(agentUrl);
    const { candidates } = await bench.keys.find('declared', { senders: [sender], arrivedAt: bench.now() });
    expect(candidates).toHaveLength(1);
    for (const one of candidates) expect(await bench.keys.revocation(one.sender, 'declared')).toBe('revoked');
    expect(await bench.keys.revocation(sender, 'declared')).toBe('revoked');
    expect(await bench.keys.revocation(sender, 'usual')).toBe('valid');
  });
});

describe('attacks', () => {
  test('a seller declares a victim’s brand.json: it does not list the attacker, and nothing is taken', async () => {
    const store = memoryStore();
    const [victim, attacker] = [await startAgent(), await startAgent()];
    const theirs = victim.list(BRAND, publicJwk('victim'));
    attacker.list(BRAND, publicJwk('own'));
    await declare(store, attacker.agentUrl, { brandJsonUrl: theirs });
    const bench = await setup({ store });
    expect(await found(bench, 'victim', of(attacker.agentUrl))).toBe('undecided');
    expect(bench.alarmsOf('agent_not_listed')).toMatchObject([{ sender: attacker.agentUrl, url: theirs }]);
    expect(await found(bench, 'victim', of(attacker.agentUrl), of(victim.agentUrl))).toMatchObject([
      [victim.agentUrl, expect.any(String)],
    ]);
  });

  test('another registrable domain lists the agent, and is no house that authorized it', async () => {
    const { store, bench, agentUrl, server, declared } = await twoPlaces();
    // The name of another host that leads to the same server.
    const foreign = server.origin.replace('127.0.0.1', 'localhost');
    await declare(store, agentUrl, { brandJsonUrl: `${foreign}/declared.json` });
    expect(await found(bench, 'declared', of(agentUrl))).toBe('undecided');
    expect(bench.alarmsOf('agent_not_listed')[0]?.message).toContain('authorized_operators');
    const [house, file] = [{ name: 'House' }, { agents: [{ url: agentUrl, jwks_uri: `${foreign}/k` }] }];
    server.serve('/k', { keys: [declared] });
    server.serve('/house.json', { ...file, house, authorized_operators: [{ domain: '127.0.0.1' }] });
    await declare(store, agentUrl, { brandJsonUrl: `${foreign}/house.json` });
    bench.advance(31_000);
    expect(await found(bench, 'declared', of(agentUrl))).toEqual([[agentUrl, declared['x']]]);
  });

  test('key_origins of a foreign host: the declared place is refused, the usual one is as good as ever', async () => {
    const { bench, agentUrl, usual, key } = await twoPlaces({ keyOrigin: 'https://victim.example' });
    expect(await found(bench, 'declared', of(agentUrl))).toBe('undecided');
    expect(await found(bench, 'declared', of(agentUrl, '3.3'))).toBe('undecided');
    expect(bench.alarmsOf('agent_not_listed')[0]?.message).toContain(
      'key_origins ("https://victim.example")',
    );
    expect(await found(bench, 'usual', of(agentUrl))).toEqual(key(usual));
  });

  test('edition 3.3: key_origins binds the usual place too, where no other is declared', async () => {
    const { store, bench, agentUrl, server, usual, key } = await twoPlaces();
    await declare(store, agentUrl, { keyOrigin: 'https://victim.example' });
    expect(await found(bench, 'usual', of(agentUrl, '3.3'))).toBe('undecided');
    expect(await found(bench, 'usual', of(agentUrl))).toEqual(key(usual));
    await declare(store, agentUrl, { keyOrigin: server.origin });
    bench.advance(31_000);
    expect(await found(bench, 'usual', of(agentUrl, '3.3'))).toEqual(key(usual));
  });

  test.each([
    'http://10.0.0.1/brand.json',
    'ftp://seller.example/b',
    'https://u:p@seller.example/',
    '/x',
    '',
  ])('a URL that the fetcher refuses is not declared: %s', async (brandJsonUrl) => {
    const store = memoryStore();
    const asked: string[] = [];
    const agentUrl = 'https://seller.example/mcp';
    await declare(store, agentUrl, { brandJsonUrl });
    const bench = await setup({
      store,
      allowLoopback: false,
      fetch: async (url) => {
        asked.push(url);
        return new Response(undefined, { status: 404 });
      },
    });
    expect(await found(bench, 'k', of(agentUrl))).toBe('undecided');
    expect(asked).toEqual([`https://seller.example${BRAND}`]);
  });

  test('a declaration that changes is an alarm, once for each value it takes', async () => {
    const { store, bench, agentUrl, list, declared, brandJsonUrl } = await twoPlaces();
    expect(await found(bench, 'declared', of(agentUrl))).not.toBe('unknown');
    const moved = list('/moved.json', publicJwk('moved'));
    await declare(store, agentUrl, { brandJsonUrl: moved });
    bench.advance(31_000);
    expect(await found(bench, 'moved', of(agentUrl))).toMatchObject([[agentUrl, expect.any(String)]]);
    expect(bench.alarms).toMatchObject([
      { code: 'jwks_uri_moved', sender: agentUrl, first: brandJsonUrl, url: moved },
    ]);
    bench.advance(31_000);
    expect(await found(bench, 'declared', of(agentUrl))).toBe('unknown');
    expect([declared['kid'], bench.alarms.length]).toEqual(['declared', 1]);
  });

  test('a copied key: a seller whose keys are at a declared place keeps them at a URL of several', async () => {
    const store = memoryStore();
    const [victim, thief] = [await startAgent(), await startAgent()];
    const jwk = publicJwk('k');
    victim.list(BRAND, publicJwk('usual'));
    await declare(store, victim.agentUrl, { brandJsonUrl: victim.list('/declared.json', jwk) });
    const bench = await setup({ store });
    const senders = [of(victim.agentUrl), of(thief.agentUrl)];
    thief.list(BRAND, publicJwk('other'));
    expect(await found(bench, 'k', ...senders)).toEqual([[victim.agentUrl, jwk['x']]]);
    thief.list(BRAND, jwk);
    bench.advance(31_000);
    expect(await found(bench, 'k', ...senders)).toEqual([[victim.agentUrl, jwk['x']]]);
  });

  test('a thief alone has the key in its set: the victim’s declared place is asked before it counts', async () => {
    const store = memoryStore();
    const [victim, thief] = [await startAgent(), await startAgent()];
    const jwk = publicJwk('k');
    victim.list(BRAND, publicJwk('usual'));
    await declare(store, victim.agentUrl, { brandJsonUrl: victim.list('/declared.json', jwk) });
    thief.list(BRAND, jwk);
    const bench = await setup({ store });
    // Its own set is at hand, and the victim's is not.
    expect(await found(bench, 'k', of(thief.agentUrl))).toEqual([[thief.agentUrl, jwk['x']]]);
    expect(await found(bench, 'k', of(thief.agentUrl), of(victim.agentUrl))).toBe('unknown');
    expect(bench.alarmsOf('key_shared')).not.toEqual([]);
  });
});
