import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Kind } from './stores.ts';
import type { ProcessOptions, World } from './wire.ts';

/*
 * Time of a process that is ahead of the machine's: days pass at once, for those that start then. Imported first: whatever else is
 * imported has this clock.
 */

const { buys } = JSON.parse(process.argv[2] ?? '{}') as Partial<ProcessOptions>;

/** Beside the world's file: while it is there, processes that start wait, each with a file of its own in it. */
export const gateOf = (file: string): string => `${file}.gate`;

function waitAt(gate: string): void {
  const lock = new Int32Array(new SharedArrayBuffer(4));
  while (existsSync(gate)) {
    try {
      writeFileSync(join(gate, String(process.pid)), '');
    } catch {
      // It is open by now.
    }
    Atomics.wait(lock, 0, 0, 5);
  }
}

if (buys?.moves) waitAt(gateOf(buys.moves.world));

/** What this process starts with; undefined: nothing is moved. */
export const world: World | undefined = buys?.moves
  ? (JSON.parse(readFileSync(buys.moves.world, 'utf8')) as World)
  : undefined;

const offsetMs = world?.offsetMs ?? 0;
if (offsetMs > 0) {
  const real = Date.now.bind(Date);
  Date.now = () => real() + offsetMs;
}

/** Of a store's clock: a server's is not this process's. */
export const storeOffset = (kind: Kind): { readonly clockOffsetMs?: () => number } =>
  kind === 'SQLite' || offsetMs === 0 ? {} : { clockOffsetMs: () => offsetMs };
