import { describe, expect, it } from 'vitest';
import { ConfigError, PermanentError } from '../../../src/index.ts';
import type { Event } from '../../../src/events/index.ts';
import { moduleSink, type SinkAttempt } from '../../../src/serve/sink/for-tests.ts';
import { gate } from '../../support/gate.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';
import { type Deed, describeSink, LATER_MS, REASON, type Received } from './contract.ts';
import { attemptOf, eventOf, faultOf, idOf, payloads } from './kit.ts';

const event = eventOf(payloads.tool('completed'));

type Context = Pick<SinkAttempt, 'signal' | 'id' | 'run' | 'log'>;

const OTHER: Readonly<Record<Exclude<Deed, 'done' | 'hang'>, () => Error>> = {
  permanent: () => new PermanentError(REASON),
  fault: () => new Error(REASON),
  later: () => Object.assign(new Error(REASON), { retryAfterMs: LATER_MS }),
};

describeSink('a module', async (deed, timeoutMs) => {
  const received: Received[] = [];
  const abandoned = gate();
  const module = {
    send: async (given: Event, { id, signal }: Context): Promise<void> => {
      received.push({ id, event: JSON.parse(JSON.stringify(given)) as unknown });
      const does = deed(id);
      if (does === 'done') return;
      if (does !== 'hang') throw OTHER[does]();
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve());
      });
      abandoned.open();
    },
  };
  return {
    sink: moduleSink(module, { name: './mine.js', timeoutMs }),
    received,
    abandoned: abandoned.opened,
  };
});

describe('a module of the owner’s', () => {
  const open = (module: unknown, timeoutMs = 60_000) => moduleSink(module, { name: './mine.js', timeoutMs });

  it('is given the event as a handler gets it, its id, the run, a signal and a logger', async () => {
    const given: unknown[] = [];
    const sink = open({ send: (...all: unknown[]) => void given.push(...all) });
    await sink.send(attemptOf(event, { run: 3 }));
    expect(given).toEqual([
      event,
      { id: idOf(1), run: 3, log: SILENT_LOGGER, signal: expect.any(AbortSignal) as AbortSignal },
    ]);
    expect(given[0]).toBe(event);
  });

  it.each<readonly [string, unknown, string]>([
    ['nothing', undefined, './mine.js: exports no function send.'],
    ['no send', { default: () => {} }, './mine.js: exports no function send.'],
    ['a send that is no function', { send: 'https://…' }, './mine.js: exports no function send.'],
    [
      'a close that is no function',
      { send() {}, close: true },
      './mine.js: its export close is not a function.',
    ],
  ])('is refused where it exports %s', (_, module, message) => {
    expect(() => open(module)).toThrow(ConfigError);
    expect(() => open(module)).toThrow(message);
  });

  it('may return what it likes, and throw at once', async () => {
    await open({ send: () => 'a text' }).send(attemptOf(event));
    const throwing = open({
      send: () => {
        throw new Error(REASON);
      },
    });
    expect((await faultOf(throwing.send(attemptOf(event)))).message).toBe(REASON);
  });

  it('may reject when nobody waits any more', async () => {
    const rejected = gate();
    const sink = open(
      {
        send: async (_: Event, { signal }: Context) => {
          await new Promise<void>((resolve) => {
            signal.addEventListener('abort', () => resolve());
          });
          setImmediate(() => setImmediate(rejected.open));
          throw new Error('too late');
        },
      },
      5,
    );
    expect((await faultOf(sink.send(attemptOf(event)))).message).toBe('send has not ended within 5 ms');
    // An unhandled rejection would fail the run.
    await rejected.opened;
  });

  it('is closed by its close, which is waited for', async () => {
    const closing = gate();
    let closed = 0;
    const sink = open({
      send() {},
      close: async () => {
        await closing.opened;
        closed += 1;
      },
    });
    const over = sink.close();
    closing.open();
    await over;
    expect(closed).toBe(1);
    await open({ send() {} }).close();
  });
});
