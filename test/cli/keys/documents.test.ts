import { expect, it } from 'vitest';
import { type Chain, walkChain } from '../../../src/cli/for-tests.ts';
import type { KeyFetch } from '../../../src/index.ts';
import { defaultFetch } from '../../../src/keys/for-tests.ts';
import { generateKey, type Jwk } from '../../../src/sender/sign.ts';
import { createFakeSeller, type FakeSeller } from '../../../src/testing/index.ts';

const JWKS = '/.well-known/jwks.json';

const walk = ({ agentUrl }: FakeSeller): Promise<Chain> =>
  walkChain({
    sender: { agentUrl },
    protocol: undefined,
    allowLoopback: true,
    fetch: defaultFetch(true),
    now: Date.now,
  });

const keyNamed = async (kid: string): Promise<Jwk> =>
  (await generateKey('ed25519', 'webhook-signing', { kid })).publicJwk;

it('keys check: says since when a key is revoked by its own revoked_at', async () => {
  await using seller = await createFakeSeller();
  const [past, future, broken] = ['2020-01-01T00:00:00Z', '2120-01-01T00:00:00Z', 'soon'];
  seller.documents.set(JWKS, {
    keys: [
      { ...(await keyNamed('past')), revoked_at: past },
      { ...(await keyNamed('future')), revoked_at: future },
      { ...(await keyNamed('broken')), revoked_at: broken },
    ],
  });
  const { keys, faults } = await walk(seller);
  expect(keys.map(({ kid, revoked, revokedAt }) => [kid, revoked, revokedAt])).toEqual([
    ['past', true, past],
    ['future', false, future],
    ['broken', true, broken],
  ]);
  expect(faults).toEqual([]);
});

it('keys check: notes a kid of several keys that differ, and counts the others', async () => {
  await using seller = await createFakeSeller();
  const good = await keyNamed('good');
  seller.documents.set(JWKS, { keys: [await keyNamed('twice'), good, await keyNamed('twice'), good] });
  const { keys, faults, notes } = await walk(seller);
  expect([keys.map(({ kid }) => kid), faults]).toEqual([['good'], []]);
  expect(notes).toEqual([
    expect.stringMatching(`^JWKS at ${seller.jwksUrl}: different keys share the kid "twice"`),
  ]);
});

it('keys check: a publisher’s pins of one kid take no others along, and a list of over 16 KiB is a fault', async () => {
  await using seller = await createFakeSeller();
  await using publisher = await createFakeSeller();
  const pin = (...signing_keys: readonly object[]): Promise<Chain> => {
    publisher.documents.set('/.well-known/adagents.json', {
      authorized_agents: [{ url: seller.agentUrl, signing_keys }],
    });
    return walkChain({
      sender: { agentUrl: seller.agentUrl, publishers: [new URL(publisher.agentUrl).host] },
      protocol: undefined,
      allowLoopback: true,
      fetch: defaultFetch(true),
      now: Date.now,
    });
  };
  const [good, ...twice] = await Promise.all(['good', 'twice', 'twice'].map(keyNamed));
  const some = await pin({ ...good }, ...twice);
  expect([some.keys.map(({ kid }) => kid), some.faults]).toEqual([['good'], []]);
  expect(some.notes).toContainEqual(expect.stringContaining('different keys share the kid "twice"'));
  const none = await pin(...twice);
  expect(none.keys).toEqual([]);
  expect(none.faults).toEqual(['No key can sign webhooks. Deliveries are answered 401.']);
  const long = await pin({ ...good, pad: 'x'.repeat(16_384) });
  expect(long.faults).toEqual([
    expect.stringContaining('what it pins cannot be used: signing_keys has more than 16 KiB of keys.'),
  ]);
});

it('keys check: follows a publisher’s file to where it is, and says where that does not list the agent', async () => {
  await using seller = await createFakeSeller();
  await using publisher = await createFakeSeller();
  const pin = await keyNamed('pinned');
  const check = (): Promise<Chain> =>
    walkChain({
      sender: { agentUrl: seller.agentUrl, publishers: [new URL(publisher.agentUrl).host] },
      protocol: undefined,
      allowLoopback: true,
      fetch: defaultFetch(true),
      now: Date.now,
    });
  const origin = new URL(publisher.agentUrl).origin;
  publisher.faults.set('/.well-known/adagents.json', { redirect: '/moved.json' });
  publisher.documents.set('/moved.json', { authoritative_location: `${origin}/list.json` });
  publisher.documents.set('/list.json', {
    authorized_agents: [{ url: seller.agentUrl, signing_keys: [pin] }],
  });
  const { keys, links, faults } = await check();
  expect([keys.map(({ kid, source }) => [kid, source]), faults]).toEqual([[['pinned', 'adagents.json']], []]);
  expect(links.filter(({ document }) => document.endsWith('adagents.json'))).toMatchObject([
    { document: 'adagents.json', state: 'good', redirectedTo: `${origin}/moved.json` },
    { document: 'authoritative adagents.json', url: `${origin}/list.json`, state: 'good' },
  ]);
  publisher.documents.set('/list.json', { authorized_agents: [] });
  expect((await check()).faults).toEqual([
    expect.stringContaining('does not list the agent. Deliveries are answered 503.'),
  ]);
});

it('keys check: explains pins without a purpose, and pins that the JWKS lacks, by the edition', async () => {
  await using seller = await createFakeSeller();
  const { publicJwk } = seller.keys.ed25519;
  const { proto_use: _proto, adcp_use: _adcp, ...bare } = publicJwk;
  const lost = await keyNamed('lost');
  const { proto_use: _its, adcp_use: _own, ...unstated } = lost;
  seller.documents.set('/.well-known/adagents.json', {
    authorized_agents: [{ url: seller.agentUrl, signing_keys: [bare, unstated] }],
  });
  const check = (edition?: '3.3'): Promise<Chain> =>
    walkChain({
      sender: { agentUrl: seller.agentUrl, publishers: [new URL(seller.agentUrl).host] },
      protocol: undefined,
      edition,
      allowLoopback: true,
      fetch: defaultFetch(true),
      now: Date.now,
    });
  const kid = JSON.stringify(publicJwk['kid']);
  const { keys, faults, notes } = await check();
  expect([keys.map(({ accepted, source }) => [accepted, source]), faults]).toEqual([
    [
      [true, 'adagents.json'],
      [true, 'adagents.json'],
    ],
    [],
  ]);
  expect(notes).toEqual([
    `The key ${kid} is pinned without a purpose: it has that of the same key in the JWKS.`,
    expect.stringMatching(/pins the key "lost" .* without a purpose .* it counts for webhooks/),
    'The key "lost" is pinned, and the JWKS does not have it: the pin decides. Edition 3.3 refuses it.',
  ]);
  const narrowed = await check('3.3');
  expect(narrowed.keys).toMatchObject([{ kid: publicJwk['kid'], source: 'JWKS', accepted: true }]);
  expect(narrowed.faults).toEqual([]);
});

const BRAND_MOVES = 'brand.json at https://seller.example/.well-known/brand.json points to';
const JWKS_MOVES = "the agent's jwks_uri is";
const ADAGENTS_MOVES = 'adagents.json at https://publisher.example/.well-known/adagents.json points to';

it.each([
  ['nothing', []],
  ['authoritative_location', [BRAND_MOVES]],
  ['jwks_uri', [JWKS_MOVES]],
  ['adagents.json', [ADAGENTS_MOVES]],
  ['authoritative_location, jwks_uri, adagents.json', [BRAND_MOVES, JWKS_MOVES, ADAGENTS_MOVES]],
])('keys check: notes what moves: %s', async (moving, moves) => {
  const agentUrl = 'https://seller.example/mcp';
  const key = await keyNamed('k');
  let asked = 0;
  const moved = (what: string): string => {
    asked += 1;
    return moving.includes(what) ? String(asked) : '';
  };
  const transport: KeyFetch = async (url) => {
    const { hostname, pathname } = new URL(url);
    const list = hostname.startsWith('list');
    if (pathname === JWKS) return Response.json({ keys: [key] });
    if (pathname.includes('revocations')) return new Response(null, { status: 404 });
    if (pathname.endsWith('adagents.json')) {
      const location = `https://list${moved('adagents.json')}.publisher.example/adagents.json`;
      return list
        ? Response.json({ authorized_agents: [{ url: agentUrl }] })
        : Response.json({ authoritative_location: location });
    }
    const location = `https://list${moved('authoritative_location')}.seller.example/brand.json`;
    const jwks_uri = `https://keys${moved('jwks_uri')}.seller.example${JWKS}`;
    return Response.json(
      list ? { agents: [{ url: agentUrl, jwks_uri }] } : { authoritative_location: location },
    );
  };
  const { faults, notes } = await walkChain({
    sender: { agentUrl, publishers: ['publisher.example'] },
    protocol: undefined,
    allowLoopback: false,
    fetch: transport,
    now: Date.now,
    looksTwice: true,
  });
  expect(faults).toEqual([]);
  expect(notes.filter((text) => text.startsWith('The location changes'))).toEqual(
    moves.map((move) => expect.stringContaining(`The location changes: ${move} https://`)),
  );
});

it.each(['3.3', undefined] as const)(
  'keys check: a key that several publishers pin is revoked from the first revoked_at on; edition %s',
  async (edition) => {
    await using seller = await createFakeSeller();
    await using first = await createFakeSeller();
    await using second = await createFakeSeller();
    const key = await keyNamed('k');
    seller.documents.set(JWKS, { keys: [key] });
    const [past, future] = ['2020-01-01T00:00:00Z', '2120-01-01T00:00:00Z'];
    for (const order of [
      [past, future],
      [future, past],
      [past, undefined],
    ]) {
      for (const [index, publisher] of [first, second].entries()) {
        publisher.documents.set('/.well-known/adagents.json', {
          authorized_agents: [{ url: seller.agentUrl, signing_keys: [{ ...key, revoked_at: order[index] }] }],
        });
      }
      const publishers = [first, second].map(({ agentUrl }) => new URL(agentUrl).host);
      const { keys } = await walkChain({
        sender: { agentUrl: seller.agentUrl, publishers },
        protocol: undefined,
        ...(edition && { edition }),
        allowLoopback: true,
        fetch: defaultFetch(true),
        now: Date.now,
      });
      expect(keys.map(({ kid, revoked, revokedAt }) => [kid, revoked, revokedAt])).toEqual([
        ['k', true, past],
      ]);
    }
  },
);
