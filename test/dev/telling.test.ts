import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { DeliveryFull, Told } from '../../src/dev/for-tests.ts';
import { devHooks } from '../../src/testing/index.ts';
import { ask, folder, SCHEMES, world, type World, type WorldOptions } from './kit.ts';

const payload = { kind: 'task', transport: 'tool', status: 'completed' } as const;

async function tell({ dev }: World, told: Told): Promise<void> {
  expect((await ask(dev, 'told', told)).status).toBe(200);
}

const keyOf = (text: string): string => (JSON.parse(text) as { idempotency_key: string }).idempotency_key;

/** A receiver that tells this dev. */
function telling(options: WorldOptions = {}): Promise<World> {
  const cwd = folder();
  return world({ ...devHooks({ dir: join(cwd, '.proto-webhooks') }), ...options, dev: { cwd } });
}

describe('what hooks tell', () => {
  it.each(SCHEMES)('of a copy stands beside the copy, by the scheme %s', async (scheme) => {
    const at = await telling();
    const { steps } = await at.play('duplicate', { scheme });
    const told = async (): Promise<unknown> =>
      Promise.all(steps.map(async ({ delivery }) => (await at.full(delivery)).told));
    await expect.poll(told).toEqual(['applied', 'duplicate']);
    const [first, second] = await Promise.all(steps.map(({ delivery }) => at.full(delivery)));
    const toldOf = ({ tellings }: DeliveryFull): unknown => tellings.filter(({ hook }) => hook !== 'alarm');
    expect(first && toldOf(first)).toMatchObject([
      { hook: 'handled' },
      { hook: 'outcome', kind: 'accepted' },
    ]);
    expect(second && toldOf(second)).toMatchObject([{ hook: 'outcome', kind: 'duplicate' }]);
  });

  it('when both copies were sent and answered is told in the order of the answers', async () => {
    const at = await world();
    const { steps } = await at.play('duplicate');
    const [first, second] = await Promise.all(steps.map(({ delivery }) => at.full(delivery)));
    const key = keyOf(first?.request.body.text ?? '');
    const common = { sender: at.dev.sellers[0]?.agentUrl ?? '', key, deliveryId: 'd' };
    const run = {
      ...common,
      hook: 'handled',
      status: 'completed',
      run: 1,
      durationMs: 1,
      waitedMs: 1,
    } as const;
    await tell(at, { ...run, state: 'failed' });
    await tell(at, { ...common, hook: 'outcome', kind: 'accepted', state: 'queued', status: 200 });
    await tell(at, { ...common, hook: 'outcome', kind: 'duplicate', state: 'queued', status: 200 });
    await tell(at, { ...run, state: 'applied', run: 2 });
    expect((await at.full(first?.id ?? 0)).tellings).toMatchObject([
      { state: 'failed' },
      { kind: 'accepted' },
      { state: 'applied' },
    ]);
    expect((await at.full(second?.id ?? 0)).tellings).toMatchObject([{ kind: 'duplicate' }]);
  });

  it('is found by the key of the event, and stands beside its delivery', async () => {
    const at = await world();
    const sender = at.dev.sellers[0]?.agentUrl ?? '';
    const shown = await at.full((await at.send({ payload })).id);
    await at.send({ payload });
    expect((await at.state()).hookHeard).toBe(false);
    const key = keyOf(shown.request.body.text);
    const event = { kind: 'task', status: 'completed', data: { a: 1 } };
    const handled = {
      hook: 'handled',
      sender,
      key,
      deliveryId: 'd',
      state: 'applied',
      run: 1,
      durationMs: 2,
      waitedMs: 3,
    } as const;
    await tell(at, handled);
    const outcome = {
      hook: 'outcome',
      sender,
      kind: 'accepted',
      state: 'applied',
      status: 200,
      key,
      deliveryId: 'd',
      event,
    } as const;
    await tell(at, outcome);
    expect(await at.full(shown.id)).toMatchObject({ told: 'applied', tellings: [handled, outcome] });
    expect((await at.full(shown.id + 1)).tellings).toEqual([]);
    expect((await at.state()).hookHeard).toBe(true);
  });

  it('of a refusal is found by its signature', async () => {
    const at = await world();
    const row = await at.send({ payload, mistake: 'tampered-body' });
    await at.send({ payload, mistake: 'tampered-body' });
    const { request } = await at.full(row.id);
    const proof = request.headers.find(([name]) => name === 'Signature')?.[1] ?? '';
    await tell(at, {
      hook: 'refused',
      status: 401,
      code: 'webhook_signature_digest_mismatch',
      detail: 'why',
      proof,
    });
    expect(await at.full(row.id)).toMatchObject({ told: 'refused', tellings: [{ detail: 'why' }] });
  });

  it('is the reason of a 503, the latest that was told', async () => {
    const at = await world({ listener: (_, res) => void res.writeHead(503).end() });
    const sender = at.dev.sellers[0]?.agentUrl ?? '';
    const { id } = await at.send({ payload });
    const key = keyOf((await at.full(id)).request.body.text);
    await tell(at, {
      hook: 'outcome',
      sender,
      kind: 'unavailable',
      status: 503,
      code: 'handler_failed',
      detail: 'it threw',
      key,
    });
    expect((await at.full(id)).next).toBe('handler_failed: it threw');
    await tell(at, {
      hook: 'handled',
      sender,
      key,
      deliveryId: 'd',
      state: 'failed',
      run: 1,
      durationMs: 1,
      waitedMs: 1,
      error: 'no table buys',
    });
    expect((await at.full(id)).next).toBe('the handler failed: no table buys');
    await tell(at, { hook: 'alarm', code: 'store_unavailable', message: 'the store is away' });
    expect((await at.full(id)).next).toBe('alarm store_unavailable: the store is away');
  });

  it.each([
    [
      "senders that lack dev's",
      'https://seller.example/mcp',
      "The receiver's senders lack dev's seller. Paste",
    ],
    ['keys that were asked for lately', '', 'Wait 30 s'],
  ])('of %s says what to do', async (_name, agentUrl, next) => {
    const at = await world({ listener: (_, res) => void res.writeHead(503).end() });
    const sender = at.dev.sellers[0]?.agentUrl ?? '';
    const { id } = await at.send({ payload });
    const detail = `No key decides, and some could not be fetched: ${agentUrl || sender}: fetched again lately, cooling down`;
    await tell(at, { hook: 'outcome', kind: 'unavailable', status: 503, code: 'keys_unavailable', detail });
    await tell(at, { hook: 'alarm', code: 'key_fetch_failing', message: 'revocation list at …' });
    expect((await at.full(id)).next).toContain(next);
  });

  it('of a key that a receiver looked for lately is that it waits, and names the seller', async () => {
    const at = await telling();
    const wrong = { payload, mistake: 'unknown-key' };
    await at.send({ payload });
    await at.send(wrong);
    const { id } = await at.send(wrong);
    const outcome = async (): Promise<Told | undefined> =>
      (await at.full(id)).tellings.find(({ hook }) => hook === 'outcome');
    await expect.poll(outcome).toMatchObject({
      code: 'keys_unavailable',
      detail: expect.stringMatching(/proto-webhooks-dev\/signature: .*cooling down/) as string,
    });
  });

  it('of another publicUrl is the URL that was signed, and alarms nobody', async () => {
    const at = await telling({ publicUrl: 'http://127.0.0.1:1/webhooks/*' });
    const { id } = await at.send({ payload });
    const { url } = (await at.full(id)).request;
    const next = async (): Promise<string | undefined> => (await at.full(id)).next;
    await expect.poll(next).toContain(`This delivery was signed for ${url}`);
    expect(await next()).toContain('--public-url');
    expect(await next()).not.toContain('replays');
  });

  it("of others' sellers is not kept, and of what dev did not send neither", async () => {
    const at = await world();
    const { id } = await at.send({ payload });
    const key = keyOf((await at.full(id)).request.body.text);
    await tell(at, {
      hook: 'outcome',
      sender: 'https://seller.example/mcp',
      kind: 'accepted',
      status: 200,
      key,
    });
    await tell(at, { hook: 'outcome', kind: 'accepted', status: 200, key: 'another' });
    await tell(at, { hook: 'refused', status: 401, code: 'x', detail: 'y', proof: 'sig1=:AA:' });
    expect((await at.full(id)).tellings).toEqual([]);
  });
});
