import { describe, expect, test } from 'vitest';
import { KEY_LIMITS, type KeyRequest } from '../../src/keys/for-tests.ts';
import { type Answerer, gate, sends } from './key-server.ts';
import { onWorkerd } from '../support/workerd.ts';
import { type Bench, BRAND, JWKS_PATH, MINUTE, publicJwk, type Seller, setup, startSeller } from './setup.ts';

const LIST = '/revocations.json';
const DELIVERY_MS = 2_000;

/** Says nothing until the server is closed. */
const silent: Answerer = () => undefined;

/** The answer comes when the delivery's time is just over. */
function late(bench: Bench, answer: unknown): Answerer {
  return (req, res) => {
    bench.advance(DELIVERY_MS);
    sends(JSON.stringify(answer))(req, res);
  };
}

const requestOf = ({ now }: Bench, ...sellers: readonly Seller[]): KeyRequest => ({
  senders: sellers.map(({ sender }) => sender),
  arrivedAt: now(),
});

describe('a delivery waits for documents 2 s in all (verification.md §5.21)', () => {
  test('a fetch that it no longer waits for goes on and serves the retry', async () => {
    const seller = await startSeller(publicJwk('k'));
    const held = gate(sends(JSON.stringify({ keys: [publicJwk('k')] })));
    seller.server.answer(JWKS_PATH, held.answerer);
    const bench = await setup({ limits: { deliveryMs: 20 } });
    expect(await bench.keys.find('k', requestOf(bench, seller))).toMatchObject({
      candidates: [],
      undecided: [expect.stringContaining('no answer in time')],
    });
    held.open();
    await expect
      .poll(async () => (await bench.keys.find('k', requestOf(bench, seller))).candidates)
      .toHaveLength(1);
    expect([seller.server.count(BRAND), seller.server.count(JWKS_PATH)]).toEqual([1, 1]);
  });

  test('in total: after a late brand.json the JWKS is not waited for', async () => {
    const seller = await startSeller();
    const bench = await setup({ limits: KEY_LIMITS });
    seller.server.answer(BRAND, late(bench, { agents: [{ url: seller.sender.agentUrl }] }));
    seller.server.answer(JWKS_PATH, silent);
    const { undecided } = await bench.keys.find('k', requestOf(bench, seller));
    expect(undecided).toHaveLength(1);
    await seller.server.asked(JWKS_PATH, 1);
  });

  test('for copies past their life: the cached ones serve', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup({ limits: KEY_LIMITS });
    await bench.keys.find('k', requestOf(bench, seller));
    bench.advance(6 * MINUTE);
    seller.server.answer(BRAND, late(bench, { agents: [{ url: seller.sender.agentUrl }] }));
    seller.server.answer(JWKS_PATH, silent);
    expect((await bench.keys.find('k', requestOf(bench, seller))).candidates).toHaveLength(1);
    await seller.server.asked(JWKS_PATH, 2);
  });

  test('for files of several publishers', async () => {
    const seller = await startSeller(publicJwk('k'));
    const publishers = await Promise.all(Array.from({ length: 4 }, () => startSeller()));
    const bench = await setup({ limits: { ...KEY_LIMITS, width: 1 } });
    const path = '/.well-known/adagents.json';
    for (const { server } of publishers) server.answer(path, silent);
    publishers[0]?.server.answer(path, late(bench, { authorized_agents: [] }));
    const sender = { ...seller.sender, publishers: publishers.map(({ server }) => server.host) };
    const { undecided } = await bench.keys.find('k', { senders: [sender], arrivedAt: bench.now() });
    expect(undecided).toHaveLength(1);
    for (const { server } of publishers) await server.asked(path, 1);
  });

  test('for both searches and the revocation list', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup({ limits: KEY_LIMITS });
    const { server } = seller;
    const sender = { ...seller.sender, revocation: { url: `${server.origin}${LIST}` } };
    server.answer(LIST, silent);
    server.answer(JWKS_PATH, late(bench, { keys: [publicJwk('k')] }));
    const request: KeyRequest = { senders: [sender], arrivedAt: bench.now() };
    const { candidates } = await bench.keys.find('k', request);
    server.answer(JWKS_PATH, silent);
    bench.advance(MINUTE);
    const again = await bench.keys.findReplaced('k', request, candidates);
    expect([again.candidates, again.undecided.length]).toEqual([[], 1]);
    expect(await bench.keys.revocation(sender, 'k', request)).toBe('stale');
    await server.asked(LIST, 1);
  });

  test('longer on workerd, where a fetch ends with its request', async () => {
    const seller = await startSeller();
    const held = gate(sends(JSON.stringify({ keys: [publicJwk('k')] })));
    seller.server.answer(JWKS_PATH, held.answerer);
    onWorkerd();
    const bench = await setup({ limits: { deliveryMs: 1, ownFetchMs: 60_000 } });
    const finding = bench.keys.find('k', requestOf(bench, seller));
    await seller.server.asked(JWKS_PATH, 1);
    held.open();
    expect((await finding).candidates).toHaveLength(1);
  });

  test('no longer when the clock is set back meanwhile', async () => {
    const seller = await startSeller(publicJwk('k'));
    const bench = await setup({ limits: { deliveryMs: 20 } });
    seller.server.answer(BRAND, (req, res) => {
      bench.advance(-60 * MINUTE);
      sends(JSON.stringify({ agents: [{ url: seller.sender.agentUrl }] }))(req, res);
    });
    seller.server.answer(JWKS_PATH, silent);
    expect((await bench.keys.find('k', requestOf(bench, seller))).undecided).toHaveLength(1);
  });
});
