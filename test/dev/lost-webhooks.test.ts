import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type CalledSellers,
  calledSellers,
  type CallEvent,
  type DevSeller,
  type ScenarioKit,
  type Told,
} from '../../src/dev/for-tests.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import { listening, type Listening } from '../adapters/raw-client.ts';
import { virtualClock, type VirtualClock } from '../support/virtual-clock.ts';

const MINUTE_MS = 60_000;
const SELLER: DevSeller = {
  scheme: 'signature',
  agentUrl: 'http://127.0.0.1:4646/proto-webhooks-dev/signature',
  forward: 'http://127.0.0.1:3000/webhooks/seller',
  publicUrl: 'http://127.0.0.1:3000/webhooks/seller',
  line: '',
};
const WEBHOOK = { url: 'https://buyer.example/webhooks/a' };
const REPORTS = { ...WEBHOOK, reporting_frequency: 'daily' };

let clock: VirtualClock;
let server: Listening;
let sellers: CalledSellers;
let heard: CallEvent[];
let sent: string[];
let notes: string[];
let ended: AbortController;

beforeEach(async () => {
  clock = virtualClock(Date.parse('2026-03-10T09:00:00Z'));
  heard = [];
  sent = [];
  notes = [];
  ended = new AbortController();
  sellers = calledSellers({
    sellers: [SELLER],
    protocol: 'proto',
    brandJsonUrl: 'http://127.0.0.1:4646/.well-known/brand.json',
    now: Date.now,
    heard: (call) => heard.push(call),
    deliver: (_seller, { what }) => sent.push(what),
  });
  server = await listening((req, res) => void sellers.answer(SELLER, req, res));
});
afterEach(async () => {
  clock.end();
  await server[Symbol.asyncDispose]();
});

async function call(name: string, args: object): Promise<Record<string, unknown>> {
  const response = await fetch(server.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
  });
  const { result } = (await response.json()) as { result: { structuredContent: Record<string, unknown> } };
  return result.structuredContent;
}

/** How it ended: `passed`, or the message of its error. */
function play(name: string): Promise<string> {
  const kit: ScenarioKit = {
    scheme: 'signature',
    edition: '3.1',
    seller: SELLER,
    auth: undefined,
    payloads: samplePayloads(),
    now: Date.now,
    signal: ended.signal,
    send: () => Promise.reject(new Error('it sends nothing')),
    sign: () => Promise.reject(new Error('it signs nothing')),
    addKey: () => Promise.reject(new Error('it adds nothing')),
    sleep: async (ms, signal) => {
      await clock.sleep(ms, signal ? AbortSignal.any([signal, ended.signal]) : ended.signal);
      ended.signal.throwIfAborted();
    },
    waiting: (note) => void (note !== undefined && notes.push(note)),
  };
  const scenario = sellers.scenarios[name];
  if (!scenario) throw new Error(`no scenario ${name}`);
  return scenario.run(kit).then(
    () => 'passed',
    (error: unknown) => (error as Error).message,
  );
}

const handled = (more: Partial<Extract<Told, { hook: 'handled' }>>): Told => ({
  hook: 'handled',
  sender: SELLER.agentUrl,
  key: 'observation/poll/a',
  deliveryId: 'd',
  state: 'applied',
  run: 1,
  durationMs: 1,
  waitedMs: 1,
  ...more,
});

describe('lost-and-polled (dev.md §2.3)', () => {
  it('without a scenario the webhook is sent once the call was answered, and the call is told', async () => {
    const { task_id: taskId } = await call('create_media_buy', { push_notification_config: WEBHOOK });
    await expect.poll(() => sent).toEqual(['completed (tool): a call']);
    expect(heard).toEqual([
      {
        at: Date.now(),
        scheme: 'signature',
        tool: 'create_media_buy',
        taskId,
        mediaBuyId: expect.stringMatching(/^mb_/) as string,
        webhookUrl: WEBHOOK.url,
      },
    ]);
  });

  it('fails when no call comes in five minutes, and says what to call', async () => {
    const run = play('lost-and-polled');
    await clock.pass(5 * MINUTE_MS);
    expect(await run).toMatch(/^No such call came in 5 minutes\. Waits for create_media_buy at http/);
    await call('create_media_buy', { push_notification_config: WEBHOOK });
    await expect.poll(() => sent).toHaveLength(1);
  });

  it('fails when nobody asks until then, and says what to start', async () => {
    const run = play('lost-and-polled');
    await clock.pass(2 * MINUTE_MS);
    await call('create_media_buy', { push_notification_config: WEBHOOK });
    await clock.pass(3 * MINUTE_MS);
    expect(await run).toMatch(/^The buyer did not ask in 5 minutes\. Start a poller/);
    expect(sent).toEqual([]);
  });

  it('takes one call: the next one has its webhook', async () => {
    const run = play('lost-and-polled');
    await call('create_media_buy', { push_notification_config: WEBHOOK });
    await call('create_media_buy', { push_notification_config: WEBHOOK });
    await expect.poll(() => sent).toHaveLength(1);
    await clock.pass(5 * MINUTE_MS);
    await run;
  });

  it('passes with what the handler got, or without a hook half a minute after the question', async () => {
    for (const isTold of [true, false]) {
      const run = play('lost-and-polled');
      await clock.settled();
      const { task_id } = await call('create_media_buy', { push_notification_config: WEBHOOK });
      await clock.pass(7_000);
      await call('get_task_status', { task_id });
      await clock.settled();
      expect(notes.at(-1)).toMatch(/7 s after its call\. Waits until devHooks\(\) tells/);
      // Of another task, of another seller, and no run at all.
      sellers.told(handled({ taskId: 'task_other' }));
      sellers.told(handled({ taskId: task_id as string, sender: 'https://seller.example/mcp' }));
      sellers.told({ hook: 'alarm', code: 'clock_skew', message: 'x' });
      if (isTold) sellers.told(handled({ taskId: task_id as string }));
      await clock.pass(30_000);
      expect(await run).toBe('passed');
      expect(notes.at(-1)).toBe(
        `The buyer asked about the task 7 s after its call. ${isTold ? "Its handler's run 1 ended as applied." : 'No hook told what its handler got.'}`,
      );
    }
  });

  it('ends with dev', async () => {
    const run = play('lost-and-polled');
    await clock.settled();
    ended.abort(new Error('dev has ended'));
    expect(await run).toBe('dev has ended');
  });
});

describe('report-lost-and-pulled', () => {
  const row = async (): Promise<Record<string, unknown>> => {
    const { media_buys } = await call('get_media_buys', {});
    return (media_buys as Record<string, unknown>[]).at(-1) ?? {};
  };

  it.each([
    ['daily', {}, '2026-03-07T00:00:00.000Z'],
    ['monthly', {}, '2026-01-01T00:00:00.000Z'],
    ['hourly', {}, '2026-03-07T00:00:00.000Z'],
    [
      'daily',
      { start_time: '2026-02-01T00:00:00Z', end_time: '2026-02-05T00:00:00Z' },
      '2026-02-01T00:00:00.000Z',
    ],
    [
      'daily',
      { start_time: '2026-03-09T00:00:00Z', end_time: '2026-03-09T12:00:00Z' },
      '2026-03-07T00:00:00.000Z',
    ],
  ])('%s reports of %j are due since %s', async (reporting_frequency, flight, start_time) => {
    const run = play('report-lost-and-pulled');
    await clock.settled();
    await call('create_media_buy', { ...flight, reporting_webhook: { ...WEBHOOK, reporting_frequency } });
    await clock.settled();
    expect(await row()).toMatchObject({ start_time });
    expect(notes.at(-1)).toContain(`since ${start_time} are due (${reporting_frequency})`);
    await clock.pass(5 * MINUTE_MS);
    expect(await run).toMatch(/^The buyer did not ask in 5 minutes\. Start a reconciler/);
  });

  it('waits for a call with reports, whose end is sent, and for the pull', async () => {
    const run = play('report-lost-and-pulled');
    await clock.settled();
    await call('create_media_buy', { push_notification_config: WEBHOOK });
    await call('create_media_buy', { push_notification_config: WEBHOOK, reporting_webhook: REPORTS });
    await expect.poll(() => sent).toHaveLength(2);
    const { media_buy_id: id } = await row();
    await call('get_media_buy_delivery', { media_buy_ids: [] });
    await clock.settled();
    expect(notes.at(-1)).toMatch(/^The reports of mb_/);
    await call('get_media_buy_delivery', {
      media_buy_ids: [id],
      start_date: '2026-03-07',
      end_date: '2026-03-08',
    });
    await clock.settled();
    sellers.told(handled({ key: 'observation/poll/a' }));
    sellers.told(handled({ key: 'observation/pull/a', state: 'dead', error: 'Error: no' }));
    expect(await run).toBe(
      "The buyer asked for the reports 0 s after its call. Its handler's run 1 ended as dead: Error: no.",
    );
  });

  it('without a scenario a flight is what was asked for', async () => {
    await call('create_media_buy', { reporting_webhook: REPORTS });
    expect(await row()).toMatchObject({ start_time: '2026-03-10T09:00:00.000Z' });
  });
});
