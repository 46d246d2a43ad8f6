import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { StoreLocation } from './places.ts';

/** What `resident.ts` is told to do. */
export interface ResidentJob {
  readonly place: StoreLocation;
  /** How many records were put there. */
  readonly records: number;
  /** Number of the first event; none of them is in the store. */
  readonly from: number;
  /** How many events. */
  readonly count: number;
}

const LOOKS = 8;

/** What this process holds, MiB: the least of several looks. */
export async function residentMiB(): Promise<number> {
  let least = Infinity;
  for (let look = 0; look < LOOKS; look += 1) {
    await setTimeout(50);
    least = Math.min(least, process.memoryUsage.rss() / 1_048_576);
  }
  return least;
}

/** What a new process holds after its job, MiB. */
export async function residentOf(job: ResidentJob): Promise<number> {
  const child = fork(fileURLToPath(new URL('resident.ts', import.meta.url)));
  const gone = once(child, 'exit');
  child.send(job);
  const answer = await Promise.race([once(child, 'message'), gone.then(() => undefined)]);
  await gone;
  if (!answer) throw new Error(`the process on ${job.place.backend} ended`);
  return answer[0] as number;
}
