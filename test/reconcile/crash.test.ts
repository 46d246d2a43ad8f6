import { describe, expect, inject, it } from 'vitest';
import { BACKENDS } from '../reliability/processes/backends.ts';
import type { Kind } from '../reliability/processes/stores.ts';
import { LONG } from '../reliability/form.ts';
import { crash } from './crash/run.ts';
import { daily } from './market/buys.ts';

const at = (text: string): number => Date.parse(text);

/** Those on servers in the long form: each costs the starts of many processes. */
const STORES: readonly Kind[] = LONG ? ['SQLite', 'Postgres', 'MySQL', 'Redis'] : ['SQLite'];
const LIMIT_MS = 3_600_000;
const SPAN = {
  begin: at('2026-02-27T12:00:00Z'),
  end: at(LONG ? '2026-04-06T12:00:00Z' : '2026-03-07T12:00:00Z'),
};

describe.each(STORES)('the account of a buyer whose processes are killed, %s', (kind) => {
  it(
    'is exact after each day: nothing is lost, counted twice or pulled twice',
    async () => {
      const { place, remove } = await BACKENDS[kind](inject('shared'));
      const seed = LONG ? Date.now() % 2 ** 31 : 7;
      try {
        const options = {
          place,
          mode: kind === 'Postgres' ? 'inbox' : 'inline',
          seed,
          killing: LONG ? 0.02 : 0.06,
        } as const;
        const { wrong, ...figures } = await crash({ ...SPAN, ...options, buys: daily(seed, 0.1) });
        process.stdout.write(`${JSON.stringify({ kind, seed, ...figures })}\n`);
        expect(wrong, `seed ${seed}`).toEqual([]);
        expect(figures.kills).toBeGreaterThan(0);
        expect(figures.byPull).toBeGreaterThan(0);
      } finally {
        await remove();
      }
    },
    LIMIT_MS,
  );
});
