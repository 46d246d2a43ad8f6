import { describe, expect, it } from 'vitest';
import { type DeliveryRow, type ScenarioKit, SCENARIOS } from '../../src/dev/for-tests.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import { ask, SCHEMES, world } from './kit.ts';

const OF_DEV = ['retries', 'duplicate', 'replay', 'out-of-order', 'two-at-once', 'proof-of-control'];

describe('scenarios', () => {
  it.each(SCHEMES)('a right receiver passes each of them by the scheme %s', async (scheme) => {
    const { play, state, handled } = await world();
    const { choices } = await state();
    expect(choices.scenarios.map(({ name }) => name)).toEqual(expect.arrayContaining(OF_DEV));
    for (const name of OF_DEV.filter((one) => SCENARIOS[one]?.schemes.includes(scheme))) {
      const run = await play(name, { scheme });
      expect(run).toMatchObject({ name, scheme, state: 'passed' });
      expect(run.note).toBeUndefined();
      expect(run.steps.length).toBeGreaterThan(0);
      expect(run.steps.every(({ ok }) => ok === true)).toBe(true);
    }
    // retries, duplicate, out-of-order, and two at once: the older status may come second, and is stale then.
    const runs = handled.filter((status) => status === 'completed').length;
    expect(runs).toBe(scheme === 'signature' ? 5 : 4);
  });

  it('retries go on until an answer ends them', async () => {
    let left = 1;
    const { play, handled } = await world({
      handlers: {
        other: async () => {
          left -= 1;
          if (left >= 0) throw new Error('not yet');
        },
      },
    });
    const run = await play('retries');
    expect(run.state).toBe('passed');
    expect(run.steps.map(({ ok }) => ok)).toEqual([false, true]);
    expect(handled).toEqual([]);
  });

  it('what a seller takes for final ends them, and says so', async () => {
    const { play } = await world({ listener: (_, res) => void res.writeHead(404).end() });
    const run = await play('retries');
    expect(run).toMatchObject({ state: 'failed', note: expect.stringContaining('gives up after 404') });
    expect(run.steps).toHaveLength(1);
  });

  it('one that fails says how many answers are wrong, and one of a name runs at a time', async () => {
    const answers: (() => void)[] = [];
    const { dev, play, state } = await world({
      listener: (_, res) => void answers.push(() => res.writeHead(200).end()),
    });
    const first = play('replay');
    await expect.poll(() => answers.length).toBe(1);
    const second = await ask(dev, 'scenarios/replay', {});
    expect([second.status, second.body.error?.code]).toEqual([409, 'scenario_running']);
    expect((await state()).scenarios).toMatchObject([{ state: 'running', steps: [{ delivery: 1 }] }]);
    answers[0]?.();
    await expect.poll(() => answers.length).toBe(2);
    answers[1]?.();
    expect(await first).toMatchObject({
      state: 'failed',
      note: '1 of its answers are not the expected ones.',
      steps: [{ ok: true }, { ok: false, expected: { status: 401, code: 'webhook_signature_replayed' } }],
    });
    const { body } = await ask<{ rows: DeliveryRow[] }>(dev, 'deliveries');
    expect(body.rows[0]).toMatchObject({
      scenario: { name: 'replay', run: 1 },
      next: expect.stringContaining('accepted what it has to refuse'),
    });
  });

  it('a key that is rotated is found in the JWKS, and the older one holds', async () => {
    // A receiver that has not asked for keys yet asks again at once.
    const { play, dev } = await world();
    const run = await play('key-rotation');
    expect(run).toMatchObject({ state: 'passed' });
    expect(run.steps.map(({ ok }) => ok)).not.toContain(false);
    expect(run.steps.length).toBeGreaterThanOrEqual(3);
    const jwks = await fetch(`${dev.sellers[0]?.agentUrl}/jwks.json`);
    expect(((await jwks.json()) as { keys: unknown[] }).keys).toHaveLength(3);
  }, 60_000);

  it('a new key that a receiver cannot look for yet is sent once more when it can', async () => {
    const statuses = [200, 503, 200, 200];
    const waits: number[] = [];
    const notes: (string | undefined)[] = [];
    const sent: (boolean | undefined)[] = [];
    const kit = {
      payloads: samplePayloads(),
      addKey: async () => ({ kid: 'new' }),
      sleep: async (ms: number) => waits.push(ms),
      waiting: (note?: string) => notes.push(note),
      send: async ({ key }: { key?: object }) => {
        sent.push(key !== undefined);
        return { asExpected: true, status: statuses.shift() } as DeliveryRow;
      },
    };
    await SCENARIOS['key-rotation']?.run(kit as unknown as ScenarioKit);
    expect(sent).toEqual([false, true, true, false]);
    expect(waits).toEqual([31_000]);
    expect(notes).toEqual([expect.stringContaining('at most once in 30 s'), undefined]);
  });
});
