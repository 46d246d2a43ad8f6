// Starts a process that takes many events, and returns what it held after each part.
// Called by `memory.test.ts`.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BACKENDS } from '../processes/backends.ts';
import { launch } from '../processes/child.ts';
import type { Row } from '../processes/rows.ts';
import type { StoreLocation } from '../processes/stores.ts';
import type { Mode } from '../processes/wire.ts';

/** What a process holds after a part, once its garbage is collected. */
export interface Look {
  /** Events handled so far. */
  readonly handled: number;
  /** Live objects, and memory outside the heap that they own. */
  readonly heapBytes: number;
  /** Memory of the whole process, as the system sees it. */
  readonly residentBytes: number;
}

/** What the process is told when it starts. */
export interface HolderOptions {
  readonly place: StoreLocation;
  readonly mode: Mode;
  readonly parts: number;
  /** Events of a part. */
  readonly each: number;
  /** A fault that the judge has to find. */
  readonly leaks?: boolean;
}

const HOLDER = fileURLToPath(new URL('fixtures/holder.ts', import.meta.url));

export async function looksOf(
  { kind, mode, ...size }: Row & Omit<HolderOptions, 'place'>,
  shared: string,
): Promise<readonly Look[]> {
  const backend = await BACKENDS[kind](shared);
  const told: HolderOptions = { ...size, mode, place: backend.place };
  const child = launch<readonly Look[]>('the holder', HOLDER, told, join(shared, 'compiled'));
  try {
    const looks = await child.ready;
    await child.gone;
    return looks;
  } finally {
    child.process.kill('SIGKILL');
    await child.gone;
    await backend.remove();
  }
}

/** The most that a later look has over the first one, bytes: by then all code is loaded, and caches are full. */
export function growthOf([first, ...later]: readonly Look[]): number {
  if (first === undefined || later.length === 0) throw new Error('two looks are needed');
  return Math.max(...later.map(({ heapBytes }) => heapBytes - first.heapBytes));
}
