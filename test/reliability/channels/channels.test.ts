import { describe, expect, inject, it } from 'vitest';
import { LONG } from '../form.ts';
import type { Kind } from '../processes/stores.ts';
import type { Mode } from '../processes/wire.ts';
import { run } from './run.ts';

const FORM = LONG
  ? { tasks: 3_000, kills: 60, seed: Date.now() % 2 ** 31, deadlineMs: 3_600_000 }
  : { tasks: 48, kills: 3, seed: 20_261_124, deadlineMs: 480_000 };

const KINDS: readonly Kind[] = ['SQLite', 'Postgres', 'MySQL', 'Redis'];
const MODES: readonly Mode[] = ['inline', 'inbox'];

describe.each(KINDS)('the end of a task told by webhook, answer and poll, with kill -9, %s', (kind) => {
  it.each(MODES)(
    '%s: each is handled, and completed once, whichever channel tells it',
    async (mode) => {
      const result = await run({ ...FORM, kind, mode, concurrency: 8, shared: inject('shared') });
      if (LONG) process.stdout.write(`${JSON.stringify(result.figures)}\n`);
      const kept = { lost: [], completedTwice: [], effectsWrong: [] };
      expect(result.verdict, JSON.stringify(result.figures)).toEqual(kept);
      expect(result.unexpected).toEqual([]);
      expect(result.figures).toMatchObject({ kills: FORM.kills });
    },
    FORM.deadlineMs + 60_000,
  );
});

it('the checker catches a store that does not keep by which channel a task’s end was told', async () => {
  const { verdict } = await run({
    kind: 'SQLite',
    mode: 'inbox',
    breaks: 'knows-no-channel',
    tasks: 12,
    kills: 0,
    seed: 1,
    concurrency: 4,
    deadlineMs: 480_000,
    shared: inject('shared'),
  });
  expect(verdict.lost).toEqual([]);
  expect(verdict.completedTwice).not.toEqual([]);
}, 540_000);
