import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Clock, createForwarder, type Sink } from '../../../src/serve/sink/for-tests.ts';
import type { Event } from '../../../src/events/index.ts';
import { HOSTILE } from '../../support/hostile-text.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';
import { attemptOf, changed, eventOf, faultOf, idOf, payloads } from './kit.ts';

/** What the backend does with an event. `hang`: nothing, until it is not waited for any more. */
export type Deed = 'done' | 'permanent' | 'fault' | 'later' | 'hang';

/** A text that the backend gives for `permanent` and `fault`. */
export const REASON = 'no such column';
/** How long it wants to be left alone for `later`. Ms. */
export const LATER_MS = 7_000;

export interface Received {
  readonly id: string;
  /** As JSON has it. */
  readonly event: unknown;
}

/** A sink, and what stands behind it. */
export interface Backend {
  readonly sink: Sink;
  readonly received: readonly Received[];
  /** Resolves when an attempt that hangs was told that nobody waits for it. */
  readonly abandoned: Promise<void>;
}

/** @param deed of each event, by its id. */
export type MakeBackend = (deed: (id: string) => Deed, timeoutMs: number) => Promise<Backend>;

/** Long enough for any machine. */
const PATIENT_MS = 120_000;

/** A hundred times as fast as ours. */
const FAST: Clock = {
  now: () => 100 * performance.now(),
  sleep: (ms, signal) => sleep(ms / 100, undefined, { signal }).catch(() => undefined),
};

const asJson = (event: Event): unknown => JSON.parse(JSON.stringify(event)) as unknown;

/** The contract of a sink (serve.md §2.5, §2.6, §2.9), whatever its kind. */
export function describeSink(name: string, make: MakeBackend): void {
  const event = eventOf(payloads.tool('completed'));

  const open = async (deed: (id: string) => Deed, timeoutMs = PATIENT_MS): Promise<Backend> => {
    const backend = await make(deed, timeoutMs);
    onTestFinished(() => backend.sink.close());
    return backend;
  };

  describe(`a sink that is ${name}`, () => {
    it('is given the event and its id, and is done where it takes it', async () => {
      const { sink, received } = await open(() => 'done');
      await sink.send(attemptOf(event));
      expect(received).toEqual([{ id: idOf(1), event: asJson(event) }]);
    });

    it('makes an event DEAD where it says so', async () => {
      const { sink } = await open(() => 'permanent');
      const error = await faultOf(sink.send(attemptOf(event)));
      expect(error.code).toBe('permanent_error');
      expect(error.message).toContain(REASON);
    });

    it('has a fault in any other case, with what it said', async () => {
      const { sink } = await open(() => 'fault');
      const error = await faultOf(sink.send(attemptOf(event)));
      expect(error.code).not.toBe('permanent_error');
      expect(error.message).toContain(REASON);
      expect(error).not.toMatchObject({ retryAfterMs: expect.any(Number) });
    });

    it('may ask to be left alone', async () => {
      const { sink } = await open(() => 'later');
      const error = await faultOf(sink.send(attemptOf(event)));
      expect(error).toMatchObject({ retryAfterMs: LATER_MS });
    });

    it('has a fault where it has not answered within its time, and learns of it', async () => {
      const { sink, abandoned } = await open(() => 'hang', 20);
      const error = await faultOf(sink.send(attemptOf(event)));
      expect(error.code).not.toBe('permanent_error');
      expect(error.message).toContain('within 20 ms');
      await abandoned;
    });

    it('is not waited for behind the end of the run, and learns of it', async () => {
      const { sink, abandoned, received } = await open(() => 'hang');
      const run = new AbortController();
      const sent = faultOf(sink.send(attemptOf(event, { signal: run.signal })));
      await expect.poll(() => received.length).toBe(1);
      const reason = new Error('the worker stops');
      run.abort(reason);
      expect(await sent).toBe(reason);
      await abandoned;
    });

    it('is given nothing where the run is over before', async () => {
      const { sink, received } = await open(() => 'done');
      await faultOf(sink.send(attemptOf(event, { signal: AbortSignal.abort() })));
      await sink.send(attemptOf(event, { id: idOf(2) }));
      expect(received.map(({ id }) => id)).toEqual([idOf(2)]);
    });

    it('answers for each of many events by itself', async () => {
      const deeds: readonly Deed[] = ['done', 'permanent', 'fault', 'later'];
      const { sink, received } = await open((id) => deeds[Number(id.slice(-2)) % 4] ?? 'done');
      const ids = Array.from({ length: 32 }, (_, n) => idOf(n));
      const ends = await Promise.allSettled(ids.map((id) => sink.send(attemptOf(event, { id }))));
      const said = ends.map((end) =>
        end.status === 'fulfilled' ? 'done' : (end.reason as { code: string }).code,
      );
      expect(said.filter((one) => one === 'done')).toHaveLength(8);
      expect(ends.map(({ status }) => status)).toEqual(ids.map((_, n) => (n % 4 ? 'rejected' : 'fulfilled')));
      expect(said.filter((one, n) => one === 'permanent_error' && n % 4 === 1)).toHaveLength(8);
      expect(said.filter((one) => one === 'permanent_error')).toHaveLength(8);
      expect(new Set(received.map(({ id }) => id))).toEqual(new Set(ids));
    });

    it('is there, by a check that gives it no event', async () => {
      const { sink, received } = await open(() => 'done');
      await sink.check(new AbortController().signal);
      expect(received).toEqual([]);
    });

    it('is closed behind what is under way', async () => {
      const { sink, received } = await open(() => 'hang');
      const run = new AbortController();
      const sent = faultOf(sink.send(attemptOf(event, { signal: run.signal })));
      await expect.poll(() => received.length).toBe(1);
      let isClosed = false;
      const closed = sink.close().then(() => {
        isClosed = true;
        return isClosed;
      });
      for (let turns = 0; turns < 10; turns += 1) await turn();
      expect(isClosed).toBe(false);
      run.abort();
      await sent;
      expect(await closed).toBe(true);
    });

    it('is given the event again by a forwarder until it takes it, under the same id', async () => {
      const deeds: Deed[] = ['fault', 'later', 'fault'];
      const { sink, received } = await open(() => deeds.shift() ?? 'done');
      const forwarder = createForwarder(sink, {
        onAlarm: () => {},
        logger: SILENT_LOGGER,
        concurrency: 16,
        clock: FAST,
      });
      const { signal } = new AbortController();
      const ctx = { deliveryId: idOf(7), signal, log: SILENT_LOGGER };
      const handle = (run: number): Promise<void> =>
        forwarder.handle(event, { ...ctx, run }).catch((error: unknown) => {
          // A slow machine: the worker would bring it again.
          expect(error).toMatchObject({ code: 'given_back' });
          return handle(run + 1);
        });
      await handle(1);
      expect(received.map(({ id }) => id)).toEqual(Array(4).fill(idOf(7)));
    });

    it.each<readonly [string, string]>([
      ['line ends and control characters', `a\r\nWebhook-Reject: permanent\r\n\r\n\0\u007F\u009B${HOSTILE}`],
      ['characters beyond ASCII', 'Größe 🦀 \u202E\u2028\uFFFE\u{1FFFF}'],
      ['lone surrogates', '\uD83D and \uDE00'],
      ['a megabyte', 'ä'.repeat(500_000)],
    ])('is given %s of a seller’s as they are', async (_, text) => {
      const hostile = changed(event, { taskId: text, taskType: text, message: text, data: { [text]: text } });
      const other = changed(eventOf(payloads.family('impairment')), { family: text, taskId: undefined });
      const { sink, received } = await open(() => 'done');
      await sink.send(attemptOf(hostile));
      await sink.send(attemptOf(other, { id: idOf(2) }));
      expect(received).toEqual([
        { id: idOf(1), event: asJson(hostile) },
        { id: idOf(2), event: asJson(other) },
      ]);
    });
  });
}
