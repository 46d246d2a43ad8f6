import { setTimeout } from 'node:timers/promises';
import type { AcceptRequest } from '../../dist/index.js';
import { acceptOne, acceptRequest, completeOne, fill } from '../lib/accepts.ts';
import { BACKENDS, type Backend, type BackendName, type Opened } from '../lib/backends.ts';
import {
  alternate,
  atMost,
  concurrently,
  figure,
  micros,
  plan,
  QUICK,
  ratio,
  type Contestant,
  type Figure,
  type Figures,
} from '../lib/measure.ts';

const HELD: readonly [number, number, number] = QUICK ? [300, 1000, 3000] : [1000, 100_000, 1_000_000];
const [SMALL, MIDDLE, LARGE] = HELD;

const WIDTH = 16;
const FAR = 1_000_000_000;

/** Measured beside each other: `open` gives the store before each repetition. */
function contestant(name: string, opened: () => Promise<Opened>, close: boolean): Contestant {
  let current: Opened | undefined;
  let events = FAR;
  let requests: readonly AcceptRequest[] = [];
  return {
    name,
    setUp: async (count) => {
      current = await opened();
      requests = Array.from({ length: count }, () => {
        events += 1;
        return acceptRequest({ at: events, task: `task-${events}` });
      });
    },
    run: async (count) => {
      const { store } = current as Opened;
      await concurrently(count, WIDTH, (at) => acceptOne(store, requests[at] as AcceptRequest));
    },
    tearDown: async () => {
      const { store, close: end } = current as Opened;
      await concurrently(requests.length, WIDTH, (at) => completeOne(store, requests[at] as AcceptRequest));
      if (close) await end();
    },
  };
}

async function filled(backend: Backend, count: number): Promise<Opened> {
  const opened = await backend.open();
  await fill(opened.store, 0, count);
  return opened;
}

const LOOKS = 8;

/** What the process holds, MiB: the least of several looks, for what is collected goes back to the system bit by bit. */
async function residentMiB(): Promise<number> {
  let least = Infinity;
  for (let look = 0; look < LOOKS; look += 1) {
    globalThis.gc?.();
    await setTimeout(100);
    least = Math.min(least, process.memoryUsage.rss() / 1_048_576);
  }
  return least;
}

const once = (value: number): Figure => figure([value]);

/** What an accept costs, and what a record takes, by how many a store holds. */
export async function measure(part: string): Promise<Figures> {
  const name = part as BackendName;
  const backend = await BACKENDS[name]();
  try {
    const middle = await filled(backend, MIDDLE);
    await middle.bytes();
    const residentBefore = await residentMiB();
    const large = await filled(backend, LARGE);
    const bytes = (await large.bytes()) / LARGE;
    const residentAfter = await residentMiB();
    const times = await alternate(
      [
        // Small ones would not stay small: a new one each time.
        contestant(String(SMALL), () => filled(backend, SMALL), true),
        contestant(String(MIDDLE), async () => middle, false),
        contestant(String(LARGE), async () => large, false),
      ],
      plan(640),
    );
    const grown = figure([residentAfter / residentBefore]);
    const results: Record<string, Figure> = {};
    for (const held of HELD)
      results[`${name}, ${held} records held: accept, µs`] = micros(times, String(held));
    results[`${name}: accept with ${LARGE} records ÷ with ${SMALL}`] = atMost(
      ratio(times, String(LARGE), String(SMALL)),
      1.3,
    );
    results[`${name}: accept with ${MIDDLE} records ÷ with ${SMALL}`] = ratio(
      times,
      String(MIDDLE),
      String(SMALL),
    );
    results[`${name}: bytes a record`] = once(bytes);
    results[`${name}: resident memory of the process with ${LARGE} records, MiB`] = once(residentAfter);
    // What a process that has worked for a while already may grow by for other reasons.
    results[`${name}: resident memory with ${LARGE} records more ÷ before`] =
      name === 'sqlite' ? grown : atMost(grown, 1.1);
    await middle.close();
    await large.close();
    return results;
  } finally {
    await backend.stop();
  }
}
