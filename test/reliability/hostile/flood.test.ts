import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { LONG } from '../form.ts';
import type { Report } from './fixtures/flood.ts';
import { type Servers, startServers, type StoreName } from './stores.ts';

const FLOOD = fileURLToPath(new URL('fixtures/flood.ts', import.meta.url));
const CAP = 500;
const MIB = 1_048_576;

/** Fresh keys: a million on demand. */
const COUNTS: Readonly<Record<StoreName, number>> = LONG
  ? { memory: 1_000_000, SQLite: 1_000_000, Postgres: 1_000_000, MySQL: 1_000_000, Redis: 1_000_000 }
  : { memory: 30_000, SQLite: 10_000, Postgres: 5000, MySQL: 5000, Redis: 5000 };

/** One that a test's limit left behind is still at work. */
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

let servers: Servers;
beforeAll(async () => {
  servers = await startServers(inject('shared'));
});
afterAll(() => servers.stop());

async function flooded(name: StoreName): Promise<Report> {
  const args = ['--expose-gc', FLOOD, name, await servers.urlOf(name), String(COUNTS[name]), String(CAP)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return JSON.parse(await text(child.stdout)) as Report;
}

describe.each(Object.keys(COUNTS) as StoreName[])('a hostile sender with valid signatures, %s', (name) => {
  it(
    'gets 429 at its cap, without effect on other senders',
    async () => {
      const seen = await flooded(name);
      const count = COUNTS[name];
      const { 200: taken = 0, '429 sender_over_limit 5': refused = 0, ...rest } = seen.hostile;
      expect(rest).toEqual({});
      expect([taken + refused, seen.handled]).toEqual([count, taken]);
      expect(taken).toBe(CAP);
      expect(seen.honest).toEqual({ 200: 100 });
      expect(seen.duplicates).toEqual({ 200: 100 });
      // Four fifths of the keys came between the two looks.
      expect(seen.memory[1] - seen.memory[0]).toBeLessThan(2 * MIB);
      expect(seen.size[1] - seen.size[0]).toBeLessThan(MIB);
    },
    LONG ? 3_600_000 : 480_000,
  );
});
