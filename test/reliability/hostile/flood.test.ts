import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, inject, it } from 'vitest';
import { FORM } from '../form.ts';
import type { Report } from './fixtures/flood.ts';
import { serversOf, type StoreName } from './stores.ts';

const FLOOD = fileURLToPath(new URL('fixtures/flood.ts', import.meta.url));
const CAP = 500;
/** Deliveries under way at once, as `fixtures/flood.ts` has it. */
const CONCURRENT = 64;
const MIB = 1_048_576;

/** Fresh keys: `npm test` has what tells a flood from a good day, on one store; a million on demand. */
const COUNTS: Readonly<Partial<Record<StoreName, number>>> = {
  short: { SQLite: 4000 },
  rows: { memory: 30_000, SQLite: 10_000, Postgres: 5000, MySQL: 5000, Redis: 5000 },
  long: { memory: 1_000_000, SQLite: 1_000_000, Postgres: 1_000_000, MySQL: 1_000_000, Redis: 1_000_000 },
}[FORM];

/** One that a test's limit left behind is still at work. */
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

const servers = serversOf(inject('shared'));
afterAll(() => servers.stop());

async function flooded(name: StoreName, count: number): Promise<Report> {
  const args = ['--expose-gc', FLOOD, name, await servers.urlOf(name), String(count), String(CAP)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return JSON.parse(await text(child.stdout)) as Report;
}

describe.each(Object.entries(COUNTS) as [StoreName, number][])(
  'a hostile sender with valid signatures, %s',
  (name, count) => {
    it(
      'gets 429 at its cap, without effect on other senders',
      async () => {
        const seen = await flooded(name, count);
        const { 200: taken = 0, '429 sender_over_limit 5': refused = 0, ...rest } = seen.hostile;
        expect(rest).toEqual({});
        expect([taken + refused, seen.handled]).toEqual([count, taken]);
        // Memory and SQLite count in the step that takes an event; on a server what was under way may be taken too.
        expect(taken).toBeGreaterThanOrEqual(CAP);
        expect(taken).toBeLessThanOrEqual(name === 'memory' || name === 'SQLite' ? CAP : CAP + CONCURRENT);
        expect(seen.honest).toEqual({ 200: 100 });
        expect(seen.duplicates).toEqual({ 200: 100 });
        // Four fifths of the keys came between the two looks.
        expect(seen.memory[1] - seen.memory[0]).toBeLessThan(2 * MIB);
        expect(seen.size[1] - seen.size[0]).toBeLessThan(MIB);
      },
      FORM === 'long' ? 3_600_000 : 480_000,
    );
  },
);
