import { afterEach, describe, expect, it } from 'vitest';
import type { HandlerContext } from '../../src/index.ts';
import type { InboxRecord } from '../../src/stores/index.ts';
import { AGENT, type TestReceiver, type TestReceiverOptions } from '../receiver/setup.ts';
import { BACKENDS, type Channel, channel, eventKey, inboxOf, inboxSetup, status } from './setup.ts';

const KEY = eventKey(1);
const HOUR_MS = 3_600_000;

interface Line {
  readonly level: string;
  readonly message: string;
}

interface Working extends TestReceiver {
  readonly runs: Channel<HandlerContext>;
  readonly lines: readonly Line[];
  /** What is stored, beside the receiver. */
  readonly record: () => Promise<InboxRecord | undefined>;
}

/** As `src/serve` gives an event back for which its sink is not there. */
const givenBack = (): Error => Object.assign(new Error('the sink is paused'), { code: 'given_back' });

describe.each(Object.entries(BACKENDS))('an event that its handler gives back, on %s', (_, make) => {
  const ended: (() => unknown)[] = [];

  afterEach(async () => {
    for (const end of ended.splice(0)) await end();
  });

  /** A receiver whose handler does what `does` says, run by run. */
  async function working(does: (run: number) => unknown, options: TestReceiverOptions): Promise<Working> {
    const backend = make();
    const observer = backend.open();
    await observer.open();
    const runs = channel<HandlerContext>();
    const lines: Line[] = [];
    const line =
      (level: string) =>
      (_fields: object, message: string): void =>
        void lines.push({ level, message });
    const made = await inboxSetup(backend, {
      handler: (_event, ctx) => {
        runs.push(ctx);
        return does(ctx.run);
      },
      logger: { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') },
      worker: { pollMs: 1 },
      ...options,
    });
    ended.push(async () => {
      await made.receiver.stop();
      await observer.close();
      backend.remove();
    });
    return { ...made, runs, lines, record: () => inboxOf(observer).inspect(AGENT, KEY) };
  }

  it('is charged no attempt, is never DEAD, and is no failure of a handler', async () => {
    let hours = 0;
    const made = await working(
      (run) => {
        hours += 1;
        if (run <= 30) throw givenBack();
      },
      // The last attempt is the first.
      { retry: { attempts: 1, baseMs: 1, maxMs: 1 }, now: () => Date.now() + hours * HOUR_MS },
    );
    await made.deliver(status(KEY, 'task-1'));
    await made.receiver.start();
    for (let run = 1; run <= 31; run += 1) {
      const ctx = await made.runs.next();
      expect([ctx.run, ctx.chargedAttempts]).toEqual([run, 1]);
    }
    await made.receiver.stop();
    expect(await made.record()).toMatchObject({ state: 'applied', runs: 31, attempts: 1 });
    expect(made.alarms.map(({ code }) => code)).toEqual([]);
    const told = made.lines.filter(({ message }) => message === 'an event was given back');
    expect(told.map(({ level }) => level)).toEqual(Array(30).fill('info'));
    expect(made.lines.filter(({ level }) => level !== 'info' && level !== 'debug')).toEqual([]);
  });

  it('is due again after the first step of the back-off, however often its runs had failed', async () => {
    const began = Date.now();
    const made = await working(
      (run) => {
        if (run <= 3) throw new Error('the sink refuses it');
        throw givenBack();
      },
      { retry: { attempts: 12, baseMs: 20, maxMs: HOUR_MS } },
    );
    await made.deliver(status(KEY, 'task-1'));
    await made.receiver.start();
    const ctx: HandlerContext[] = [];
    for (let run = 1; run <= 6; run += 1) ctx.push(await made.runs.next());
    await made.receiver.stop();
    expect(ctx.map(({ chargedAttempts }) => chargedAttempts)).toEqual([1, 2, 3, 4, 4, 4]);
    const record = await made.record();
    expect(record).toMatchObject({ state: 'queued', attempts: 3, lastError: 'the sink is paused' });
    expect(record?.notBefore).toBeGreaterThan(began);
    expect(record?.notBefore).toBeLessThanOrEqual(Date.now() + 20);
  });
});
