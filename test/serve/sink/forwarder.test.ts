import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Alarm, PermanentError } from '../../../src/index.ts';
import {
  createForwarder,
  createPause,
  type Forwarder,
  type SinkAttempt,
} from '../../../src/serve/sink/for-tests.ts';
import { ears, HOSTILE } from '../../support/hostile-text.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';
import { virtualClock, type VirtualClock } from '../../support/virtual-clock.ts';
import { eventOf, payloads } from './kit.ts';

const EVENT = eventOf(payloads.tool('completed'));
const down = (more: object = {}): Error => Object.assign(new Error('connect ECONNREFUSED'), more);

/** What a run of the handler came to: undefined as long as it runs. */
interface Ended {
  readonly id: string;
  readonly abort: AbortController;
  how: string | undefined;
  error: unknown;
}

interface Bench {
  readonly forwarder: Forwarder;
  /** The ids of the attempts that were made, each with its second. */
  readonly attempts: string[];
  readonly given: SinkAttempt[];
  readonly alarms: Alarm[];
  readonly lines: string[];
  readonly handle: (id: string, run?: number) => Ended;
}

let clock: VirtualClock;
beforeEach(() => {
  clock = virtualClock(0);
});
afterEach(() => clock.end());

/** @param send what the sink makes of an attempt. */
function bench(send: (attempt: SinkAttempt) => unknown, concurrency = 16): Bench {
  const attempts: string[] = [];
  const given: SinkAttempt[] = [];
  const alarms: Alarm[] = [];
  const lines: string[] = [];
  const line =
    (level: string) =>
    (_: object, message: string): void =>
      void lines.push(`${level} ${message}`);
  const forwarder = createForwarder(
    {
      name: 'http://127.0.0.1:3000/events',
      send: async (attempt) => {
        attempts.push(`${clock.now() / 1000} ${attempt.id}`);
        given.push(attempt);
        await send(attempt);
      },
      check: async () => {},
      close: async () => {},
    },
    {
      onAlarm: (alarm) => void alarms.push(alarm),
      logger: { debug() {}, info: line('info'), warn: line('warn'), error: line('error') },
      concurrency,
      clock: { now: clock.now, sleep: (ms, signal) => clock.sleep(ms, signal) },
    },
  );
  const handle = (id: string, run = 1): Ended => {
    const abort = new AbortController();
    const ended: Ended = { id, abort, how: undefined, error: undefined };
    const ctx = { deliveryId: id, run, signal: abort.signal, log: SILENT_LOGGER };
    const end = (how: string, error?: unknown): void => void Object.assign(ended, { how, error });
    forwarder.handle(EVENT, ctx).then(
      () => end('done'),
      (error: { readonly code?: string }) => end(error.code ?? 'charged', error),
    );
    return ended;
  };
  return { forwarder, attempts, given, alarms, lines, handle };
}

const hows = (...ended: readonly Ended[]): (string | undefined)[] => ended.map(({ how }) => how);

describe('a paused sink is tried by one attempt at a time', () => {
  it('at once with another event than the one that failed, then once a second, each time with another', async () => {
    const at = bench(() => {
      throw down();
    });
    for (const id of ['a', 'b', 'c']) at.handle(id);
    await clock.pass(4_500);
    expect(at.attempts).toEqual(['0 a', '0 b', '0 c', '0 b', '1 a', '2 c', '3 b', '4 a']);
  });

  it('with the one that failed after a second, where no other waits', async () => {
    const at = bench(() => {
      throw down();
    });
    at.handle('a');
    await clock.pass(2_000);
    expect(at.attempts).toEqual(['0 a', '1 a', '2 a']);
  });

  it('at once with one that comes later, as long as no other was tried, and then before those that were', async () => {
    const at = bench(() => {
      throw down();
    });
    at.handle('a');
    await clock.pass(300);
    at.handle('b');
    await clock.pass(100);
    at.handle('c');
    await clock.pass(2_000);
    expect(at.attempts).toEqual(['0 a', '0.3 b', '1.3 c', '2.3 a']);
  });

  it('and no other begins while one is under way, however long it takes', async () => {
    const at = bench(async () => {
      await clock.sleep(15_000);
      throw down();
    });
    at.handle('a');
    at.handle('b');
    await clock.pass(46_000);
    expect(at.attempts).toEqual(['0 a', '0 b', '15 b', '30 a', '45 b']);
  });

  it('not before the sink wants it by more than one event, but no later than in a minute', async () => {
    const wishes = [30_000, 3_600_000, undefined];
    const at = bench(() => {
      throw down({ retryAfterMs: wishes.shift() });
    });
    at.handle('a');
    await clock.pass(20_000);
    at.handle('b');
    await clock.pass(65_000);
    at.handle('c');
    await clock.pass(2_000);
    // What the first one is answered holds for that one alone: it may be all that the sink does not take.
    expect(at.attempts).toEqual(['0 a', '20 b', '80 b', '85 c', '86 c', '87 c']);
  });

  it('until one passes: then all that wait are tried', async () => {
    let isUp = false;
    const at = bench(() => {
      if (!isUp) throw down();
    });
    const ended = ['a', 'b', 'c'].map((id) => at.handle(id));
    await clock.pass(2_500);
    expect(at.forwarder.state()).toEqual({ paused: true, since: 0, lastFault: 'connect ECONNREFUSED' });
    isUp = true;
    await clock.pass(500);
    expect(hows(...ended)).toEqual(['done', 'done', 'done']);
    expect(at.attempts.slice(6)).toEqual(['3 b', '3 a', '3 c']);
    expect(at.forwarder.state()).toEqual({ paused: false });
  });

  it('by one that began behind the fault: what was under way says nothing of the sink as it is now', async () => {
    const at = bench(async ({ id }) => {
      if (id === 'slow') await clock.sleep(500);
      else throw down();
    });
    const slow = at.handle('slow');
    const other = at.handle('a');
    await clock.pass(700);
    expect(hows(slow, other)).toEqual(['done', undefined]);
    expect(at.forwarder.state().paused).toBe(true);
    expect(at.attempts).toEqual(['0 slow', '0 a']);
  });

  it('a refusal of one event is no fault, and ends no pause', async () => {
    const at = bench(({ id }) => {
      throw id === 'a' ? down() : new PermanentError('the sink answered 422');
    });
    const refused = at.handle('b');
    await clock.settled();
    expect(at.forwarder.state().paused).toBe(false);
    at.handle('a');
    const later = at.handle('c');
    await clock.settled();
    expect(hows(refused, later)).toEqual(['permanent_error', 'permanent_error']);
    expect(refused.error).toMatchObject({ message: 'the sink answered 422' });
    expect(at.forwarder.state().paused).toBe(true);
    await clock.pass(1_000);
    expect(at.attempts.at(-1)).toBe('1 a');
  });
});

describe('an event that waits', () => {
  it('is given back after a minute, behind its last attempt where it makes the next one', async () => {
    const at = bench(() => {
      throw down();
    });
    const [first, second] = [at.handle('a'), at.handle('b')];
    await clock.pass(59_900);
    expect(hows(first, second)).toEqual([undefined, undefined]);
    await clock.pass(1_100);
    expect(hows(first, second)).toEqual(['given_back', 'given_back']);
    expect(first.error).toMatchObject({ message: 'the sink is paused: connect ECONNREFUSED' });
    // Two at first, one at once, and one a second up to the sixtieth.
    expect(at.attempts).toHaveLength(63);
    expect(at.attempts.at(-1)).toBe('60 b');
  });

  it('is given back in time where the sink wants to be left alone for longer', async () => {
    let tries = 0;
    const at = bench(() => {
      tries += 1;
      throw down({ retryAfterMs: tries === 1 ? 50_000 : 60_000 });
    });
    const first = at.handle('a');
    await clock.pass(50_500);
    expect(at.attempts).toEqual(['0 a', '50 a']);
    await clock.pass(10_000);
    expect(hows(first)).toEqual(['given_back']);
  });

  it('waits no longer for several pauses than for one', async () => {
    let isUp = false;
    const at = bench(({ id }) => {
      if (!isUp || id === 'a') throw down();
    });
    const first = at.handle('a');
    const second = at.handle('b');
    await clock.pass(50_500);
    isUp = true;
    await clock.pass(2_000);
    expect(hows(first, second)).toEqual([undefined, 'done']);
    isUp = false;
    await clock.pass(10_000);
    expect(hows(first)).toEqual(['given_back']);
  });

  it('is given back at once where its run has to end, and the next one is tried in its place', async () => {
    const at = bench(() => {
      throw down();
    });
    const [first, second] = [at.handle('a'), at.handle('b')];
    await clock.pass(500);
    first.abort.abort(new Error('the worker stops'));
    await clock.settled();
    expect(hows(first, second)).toEqual(['given_back', undefined]);
    await clock.pass(500);
    expect(at.attempts.at(-1)).toBe('1 b');
    second.abort.abort();
    await clock.pass(10_000);
    expect(hows(second)).toEqual(['given_back']);
    expect(at.attempts).toHaveLength(4);
  });

  it('is given back where its attempt is under way then: that is no fault of the sink', async () => {
    const at = bench(
      ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        }),
    );
    const first = at.handle('a');
    await clock.settled();
    first.abort.abort(new Error('the worker stops'));
    await clock.settled();
    expect(hows(first)).toEqual(['given_back']);
    expect(at.forwarder.state()).toEqual({ paused: false });
    const late = at.handle('b');
    late.abort.abort();
    await clock.settled();
    expect(hows(late)).toEqual(['given_back']);
  });

  it('tells the sink whether it may have had the event before', async () => {
    let isUp = false;
    const at = bench(() => {
      if (!isUp) throw down();
    });
    at.handle('a');
    await clock.pass(500);
    isUp = true;
    await clock.pass(500);
    at.handle('b', 2);
    await clock.settled();
    expect(at.given.map(({ id, run, repeated }) => [id, run, repeated])).toEqual([
      ['a', 1, false],
      ['a', 1, true],
      ['b', 2, true],
    ]);
  });
});

describe('a run is charged', () => {
  it('if its event had two faults, and another event passed behind each', async () => {
    const at = bench(({ id }) => {
      if (id === 'poison') throw down({ message: 'the sink answered 500: no such column' });
    });
    const poison = at.handle('poison');
    at.handle('a');
    await clock.settled();
    expect(hows(poison)).toEqual([undefined]);
    // It is tried again as soon as another one has passed.
    expect(at.attempts).toEqual(['0 poison', '0 a']);
    at.handle('b');
    await clock.settled();
    expect(at.attempts).toEqual(['0 poison', '0 a', '0 b', '0 poison']);
    at.handle('c');
    await clock.settled();
    expect(hows(poison)).toEqual(['charged']);
    expect(poison.error).toMatchObject({ message: 'the sink answered 500: no such column' });
    expect(at.attempts).toHaveLength(5);
    expect(at.forwarder.state().paused).toBe(false);
  });

  it('if it has the only place: it is given back at once, and its faults count in its next run', async () => {
    const at = bench(({ id }) => {
      if (id === 'poison') throw down({ message: 'the sink answered 500', retryAfterMs: 60_000 });
    }, 1);
    const runs: Ended[] = [];
    for (const [n, other] of ['a', 'b'].entries()) {
      runs.push(at.handle('poison', n + 1));
      await clock.settled();
      const passing = at.handle(other);
      await clock.pass(1_000);
      expect(hows(passing)).toEqual(['done']);
      await clock.pass(5_000);
    }
    runs.push(at.handle('poison', 3));
    await clock.settled();
    expect(hows(...runs)).toEqual(['given_back', 'given_back', 'charged']);
    expect(at.attempts.map((line) => line.replace(/^\S+ /, ''))).toEqual(['poison', 'a', 'poison', 'b']);
  });

  it('not by faults of a run that are older than ten minutes', async () => {
    const at = bench(({ id }) => {
      if (id === 'poison') throw down();
    }, 1);
    at.handle('poison');
    await clock.settled();
    at.handle('a');
    await clock.pass(601_000);
    const second = at.handle('poison', 2);
    await clock.settled();
    at.handle('b');
    await clock.pass(1_000);
    const third = at.handle('poison', 3);
    await clock.settled();
    expect(hows(second, third)).toEqual(['given_back', 'given_back']);
  });

  it('and while its kind has all the places, others get one each 5 s', async () => {
    const at = bench(({ id }) => {
      if (id.startsWith('poison')) throw down();
    }, 2);
    const [one, two] = [at.handle('poison 1'), at.handle('poison 2')];
    await clock.pass(300);
    expect(hows(one, two)).toEqual(['given_back', undefined]);
    const three = at.handle('poison 3');
    await clock.pass(5_000);
    expect([hows(two, three)].flat().filter(Boolean)).toEqual(['given_back']);
    const good = at.handle('good');
    await clock.pass(1_000);
    expect(hows(good)).toEqual(['done']);
  });

  it('never, if it is the only event', async () => {
    const at = bench(() => {
      throw down();
    });
    for (let run = 1; run <= 60; run += 1) {
      const ended = at.handle('a', run);
      await clock.pass(62_000);
      expect(hows(ended)).toEqual(['given_back']);
    }
  });

  it('by faults with nothing between them as by one: an outage, however long, is one fault', async () => {
    let isUp = false;
    const at = bench(({ id }) => {
      if (!isUp || id === 'poison') throw down();
    });
    const [poison, other] = [at.handle('poison'), at.handle('b')];
    await clock.pass(30_500);
    isUp = true;
    await clock.pass(2_000);
    expect(hows(poison, other)).toEqual([undefined, 'done']);
    at.handle('c');
    await clock.settled();
    expect(hows(poison)).toEqual(['charged']);
  });

  it('not by what passed of attempts that had begun before its fault, as where a sink ends in order', async () => {
    // It takes no new connection, and answers what it has.
    const at = bench(async ({ id }) => {
      if (!id.startsWith('old')) throw down();
      await clock.sleep(1_000 * Number(id.slice(3)));
    });
    for (let n = 1; n <= 8; n += 1) at.handle(`old${n}`);
    const runs = ['a', 'b', 'c', 'd'].map((id) => at.handle(id));
    await clock.pass(20_000);
    expect(hows(...runs)).toEqual([undefined, undefined, undefined, undefined]);
    await clock.pass(45_000);
    expect(hows(...runs)).toEqual(['given_back', 'given_back', 'given_back', 'given_back']);
  });

  it('each by its own faults, where two fail among others that pass', async () => {
    const at = bench(({ id }) => {
      if (id.startsWith('poison')) throw down({ message: `500 for ${id}` });
    });
    const poisons = [at.handle('poison1'), at.handle('poison2')];
    for (let n = 0; n < 10; n += 1) {
      at.handle(`good${n}`);
      await clock.pass(1_000);
    }
    expect(hows(...poisons)).toEqual(['charged', 'charged']);
    expect(poisons.map(({ error }) => (error as Error).message)).toEqual([
      '500 for poison1',
      '500 for poison2',
    ]);
    expect(at.attempts.filter((one) => one.includes('good'))).toHaveLength(10);
  });

  it('by no more than that, at a sink that takes and refuses in turn', async () => {
    let attempts = 0;
    const at = bench(() => {
      attempts += 1;
      if (attempts % 2 === 1) throw down();
    });
    const runs: Ended[] = [];
    for (let n = 0; n < 50; n += 1) {
      for (let one = 0; one < 4; one += 1) runs.push(at.handle(`${n}-${one}`));
      await clock.pass(2_000);
    }
    const faults = (id: string): number => at.attempts.filter((one) => one.endsWith(` ${id}`)).length;
    const charged = runs.filter(({ how }) => how === 'charged');
    expect(runs.filter(({ how }) => how !== 'charged' && how !== 'done')).toEqual([]);
    for (const { id } of charged) expect(faults(id)).toBeGreaterThanOrEqual(2);
    expect(runs.filter(({ how, id }) => how === 'done' && faults(id) > 1).length).toBeGreaterThan(0);
    expect(charged.length).toBeLessThan(runs.length / 4);
  });
});

describe('what the owner is told', () => {
  it('an alarm after 10 s, then once an hour, and a line when it is over', async () => {
    let isUp = false;
    const at = bench(() => {
      if (!isUp) throw down();
    });
    let ended = at.handle('a');
    const pass = async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= 2_000) {
        await clock.pass(Math.min(left, 2_000));
        // The worker leases it again.
        if (ended.how === 'given_back') ended = at.handle('a', 2);
      }
    };
    await pass(9_500);
    expect(at.alarms).toEqual([]);
    await pass(1_000);
    expect(at.alarms).toEqual([
      {
        code: 'sink_unavailable',
        sink: 'http://127.0.0.1:3000/events',
        durationMs: 10_000,
        fault: 'connect ECONNREFUSED',
        message:
          'the sink http://127.0.0.1:3000/events has taken no event for 10 s. They wait in the store, and none is charged for it. The last fault: connect ECONNREFUSED',
      },
    ]);
    await pass(3_598_000);
    expect(at.alarms).toHaveLength(1);
    await pass(3_605_000);
    expect(at.alarms.map(({ durationMs }) => Math.round(Number(durationMs) / 10_000) * 10)).toEqual([
      10, 3_610, 7_210,
    ]);
    expect(at.lines).toEqual(['warn the sink is paused']);
    isUp = true;
    await pass(2_000);
    expect(at.lines).toEqual(['warn the sink is paused', 'info the sink takes events again']);
  });

  it('nothing of a pause at which nobody waits', async () => {
    const at = bench(() => {
      throw down();
    });
    const ended = at.handle('a');
    await clock.settled();
    ended.abort.abort();
    await clock.pass(7_200_000);
    expect(at.alarms).toEqual([]);
  });

  it('one line a minute of pauses, however many there are', async () => {
    let attempts = 0;
    const at = bench(() => {
      attempts += 1;
      if (attempts % 2 === 1) throw down();
    });
    for (let n = 0; n < 90; n += 1) {
      at.handle(`${n}`);
      await clock.pass(2_000);
    }
    expect(attempts).toBe(180);
    expect(at.lines).toEqual(Array(3).fill('warn the sink is paused'));
  });

  it('nothing of a fault that a log or a terminal would act on', async () => {
    const heard = ears();
    const thrown: unknown[] = [
      new Error(HOSTILE),
      HOSTILE,
      { message: HOSTILE },
      { message: { toString: null } },
      undefined,
      new Proxy({}, { get: () => expect.fail('a trap') }),
      Object.assign(new Error(HOSTILE), { retryAfterMs: Number.NaN }),
      Object.assign(new Error(HOSTILE), { code: 'permanent_error' }),
    ];
    const forwarder = createForwarder(
      {
        name: 'sink',
        send: async () => {
          throw thrown.shift();
        },
        check: async () => {},
        close: async () => {},
      },
      {
        onAlarm: heard.hear,
        logger: heard.logger,
        concurrency: 16,
        clock: { now: clock.now, sleep: clock.sleep },
      },
    );
    const { signal } = new AbortController();
    const handled = forwarder.handle(EVENT, { deliveryId: 'a', run: 1, signal, log: heard.logger });
    const error = handled.catch((reason: unknown) => reason as Error);
    await clock.pass(20_000);
    expect(thrown).toEqual([]);
    const { message, code } = (await error) as PermanentError;
    heard.hear(message);
    expect(code).toBe('permanent_error');
    heard.expectClean(5);
  });
});

it('a run that ends in its turn without an attempt leaves the turn to the next one', async () => {
  const none = (): void => undefined;
  const pause = createPause(clock, { begun: none, lasting: none, over: none }, 16);
  const { signal } = new AbortController();
  const [first, second, third] = [pause.begin('a'), pause.begin('b'), pause.begin('c')];
  await pause.turn(first, signal);
  pause.faulted(first, 'down', undefined);
  await pause.turn(second, signal);
  pause.end(second, false);
  let had = false;
  void pause.turn(third, signal).then(() => (had = true));
  await clock.pass(2_000);
  expect(had).toBe(true);
});
