import { describe, expect, inject, it } from 'vitest';
import { LONG } from '../form.ts';
import type { Mode } from '../processes/wire.ts';
import type { Kind } from '../processes/stores.ts';
import { run } from './run.ts';

/**
 * Each of the eight. The long form's seed is new each time, and printed. The short one kills twice as often as the checker
 * needs to name a broken store (`bites.test.ts`: 4 kills or deaths): each costs the start of a process, which is nearly all
 * that these tests do.
 */
const FORM = LONG
  ? {
      events: 25_000,
      kills: 200,
      deaths: 40,
      pauses: 20,
      failures: 250,
      seed: Date.now() % 2 ** 31,
      deadlineMs: 3_600_000,
    }
  : { events: 300, kills: 8, deaths: 3, pauses: 1, failures: 10, seed: 20_260_102, deadlineMs: 480_000 };

const KINDS: readonly Kind[] = ['SQLite', 'Postgres', 'MySQL', 'Redis'];
const MODES: readonly Mode[] = ['inline', 'inbox'];

describe.each(KINDS)('kill -9 of receivers and workers under load, %s', (kind) => {
  it.each(MODES)(
    '%s: no acknowledged event is lost, none is completed twice, no effect of ctx.transaction happens twice',
    async (mode) => {
      const result = await run({
        ...FORM,
        kind,
        mode,
        concurrency: 16,
        hasDuplicates: true,
        shared: inject('shared'),
      });
      if (LONG) process.stdout.write(`${JSON.stringify(result.figures)}\n`);
      const kept = { lost: [], completedTwice: [], effectsTwice: [], backwards: [], otherCopy: [] };
      expect(result.verdict, JSON.stringify(result.figures)).toEqual(kept);
      expect(result.unexpected).toEqual([]);
      expect(result.figures).toMatchObject({ acknowledged: FORM.events, kills: FORM.kills });
    },
    FORM.deadlineMs + 60_000,
  );
});
