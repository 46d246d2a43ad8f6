import { expect, inject, it } from 'vitest';
import { LONG } from '../form.ts';
import { EVERY_ROW } from '../processes/rows.ts';
import { tell } from '../../support/tell.ts';
import { growthOf, looksOf } from './looks.ts';

const FORM = LONG ? { parts: 6, each: 50_000 } : { parts: 3, each: 1_800 };
const DEADLINE_MS = LONG ? 3_600_000 : 240_000;

/** What may come after the first part, for all later ones: at 250,000 events a leak of 17 bytes each is more. */
const MOST_BYTES = 4 * 1_048_576;

/** A worker has more to keep; a door that runs handlers itself is the same on each store. */
const ROWS = EVERY_ROW.filter(({ kind, mode }) => mode === 'inbox' || kind === 'SQLite');

it.each(ROWS)(
  'a process that takes one event after the other holds no more than after the first ones, $kind, $mode',
  async (row) => {
    const looks = await looksOf({ ...FORM, ...row }, inject('shared'));
    const events = FORM.parts * FORM.each;
    const mebibytes = looks.map(({ heapBytes }) => Math.round(heapBytes / 104_857.6) / 10);
    if (LONG) tell({ events, mebibytes, growthKiB: Math.round(growthOf(looks) / 1024) });
    expect(looks.at(-1)?.handled).toBe(events);
    expect(growthOf(looks), JSON.stringify(looks)).toBeLessThan(MOST_BYTES);
  },
  DEADLINE_MS,
);

it(
  'a store that keeps each event is found',
  async () => {
    const row = { kind: 'SQLite', mode: 'inline', leaks: true } as const;
    const looks = await looksOf({ parts: 3, each: 1_800, ...row }, inject('shared'));
    expect(growthOf(looks), JSON.stringify(looks)).toBeGreaterThan(MOST_BYTES);
  },
  DEADLINE_MS,
);
