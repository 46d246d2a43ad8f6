import { expect, inject, it } from 'vitest';
import { LONG } from '../form.ts';
import type { Kind } from '../processes/stores.ts';
import { FORWARDED, type Verdict } from './judge.ts';
import { run, type RunOptions } from './run.ts';
import type { SinkBreak } from './wire.ts';
import { tell } from '../../support/tell.ts';

const FORM = LONG
  ? {
      events: 10_000,
      kills: { serve: 100, sink: 50, both: 20, hangs: 10 },
      concurrency: 16,
      seed: Date.now() % 2 ** 31,
      deadlineMs: 3_600_000,
    }
  : {
      events: 200,
      kills: { serve: 3, sink: 2, both: 1, hangs: 1 },
      concurrency: 16,
      seed: 20_261_128,
      deadlineMs: 240_000,
    };

/** `npm run test:rows` has one store: what differs between them is proven by their contract, and by `kill`. */
const KINDS: readonly Kind[] = LONG ? ['SQLite', 'Postgres', 'MySQL', 'Redis'] : ['SQLite'];

it.each(KINDS)(
  'kill -9 of serve, of its sink and of both under load, %s: each acknowledged event reaches the sink, in order within its task, under one id',
  async (kind) => {
    const { verdict, unexpected, figures, exit } = await run({ ...FORM, kind, shared: inject('shared') });
    tell(figures);
    expect(verdict, JSON.stringify(figures)).toEqual(FORWARDED);
    expect(unexpected).toEqual([]);
    expect(exit).toBe(0);
    const { serve, sink, both } = FORM.kills;
    expect(figures).toMatchObject({
      acknowledged: FORM.events,
      killsOfServe: serve + both,
      killsOfSink: sink + both,
    });
  },
  FORM.deadlineMs + 60_000,
);

/** A judge that finds nothing may be looking at nothing: here are sinks with a mistake, and it has to name each. */
const MISTAKES: readonly (readonly [SinkBreak, Partial<RunOptions>, keyof Verdict])[] = [
  ['forgets', { kills: { serve: 0, sink: 0, both: 0, hangs: 0 } }, 'lost'],
  ['answers-first', { kills: { serve: 0, sink: 4, both: 0, hangs: 0 } }, 'lost'],
  ['writes-backwards', { kills: { serve: 0, sink: 0, both: 0, hangs: 0 } }, 'backwards'],
];

it.each(MISTAKES)(
  'the judge catches a sink that %s',
  async (breaks, some, found) => {
    const options = { kind: 'SQLite', events: 120, concurrency: 16, seed: 7, deadlineMs: 240_000 } as const;
    const kills = { serve: 0, sink: 0, both: 0, hangs: 0 };
    const { verdict } = await run({ ...options, kills, ...some, breaks, shared: inject('shared') });
    expect(verdict[found]).not.toEqual([]);
    expect(verdict).toMatchObject({ dead: [], unfinished: [], unverified: [], unknown: [] });
  },
  300_000,
);
