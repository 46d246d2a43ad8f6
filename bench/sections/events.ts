import { acceptOne, acceptRequest, completeOne } from '../lib/accepts.ts';
import { type Backend, BACKENDS } from '../lib/backends.ts';
import type { BackendName } from '../lib/places.ts';
import { EVENT_FIGURES, ROOM_FIGURES, WIDTH } from '../lib/event-figures.ts';
import {
  concurrently,
  figure,
  plan,
  processorClock,
  wallClock,
  type Figure,
  type Figures,
} from '../lib/measure.ts';
import { roomOf, type RoomKind } from '../lib/room.ts';
import type { Store } from '../../dist/index.js';

interface Spent {
  readonly wall: number;
  readonly processor: number;
}

/** µs an event: an accept and a completion, of events and tasks of their own. */
async function spent(store: Store, from: number, count: number): Promise<Spent> {
  const requests = Array.from({ length: count }, (_, index) =>
    acceptRequest({ at: from + index, task: `task-${from + index}` }),
  );
  const [wall, processor] = [wallClock(), processorClock()];
  await concurrently(count, WIDTH, async (at) => {
    const request = requests[at];
    if (!request) throw new Error('no request');
    await acceptOne(store, request);
    await completeOne(store, request);
  });
  return { wall: (wallClock() - wall) / count, processor: (processorClock() - processor) / count };
}

/** What the server spends on `count` of something, one of it. µs; undefined: there is no server. */
async function serverTime(
  { serverMicros }: Backend,
  count: number,
  work: () => Promise<void>,
): Promise<number | undefined> {
  const before = await serverMicros();
  await work();
  const after = await serverMicros();
  return before === undefined || after === undefined ? undefined : (after - before) / count;
}

/** The time of the server, by a server of its own: one that counts it is slower by some per cent. */
async function serverFigures(name: BackendName): Promise<Figures> {
  const backend = await BACKENDS[name](true);
  try {
    const { count, repetitions } = plan(4000);
    const bare: number[] = [];
    const event: number[] = [];
    for (let round = 0; round <= repetitions; round += 1) {
      const micros = await serverTime(backend, count, () =>
        concurrently(count, WIDTH, async (at) => void (await backend.bare(`${round} ${at}`))),
      );
      if (micros !== undefined && round > 0) bare.push(micros);
    }
    const { store, close } = await backend.open();
    for (let round = 0; round <= repetitions; round += 1) {
      const micros = await serverTime(backend, count, async () => {
        await spent(store, round * count, count);
      });
      if (micros !== undefined && round > 0) event.push(micros);
    }
    await close();
    if (event.length === 0) return {};
    return {
      [`${name}: ${EVENT_FIGURES.bareServer}`]: figure(bare),
      [`${name}: ${EVENT_FIGURES.server}`]: figure(event),
    };
  } finally {
    await backend.stop();
  }
}

/** What a store takes of one sender's events, of this process's processor for them, of its server, and of room. */
export async function measure(part: string): Promise<Figures> {
  const name = part as BackendName;
  const ofServer = await serverFigures(name);
  const backend = await BACKENDS[name]();
  try {
    const { store, close } = await backend.open();
    const { count, repetitions } = plan(4000);
    const times: Spent[] = [];
    for (let round = 0; round <= repetitions; round += 1)
      times.push(await spent(store, round * count, count));
    await close();
    // The first one warms up.
    const counted = times.slice(1);
    const results: Record<string, Figure> = {
      ...ofServer,
      [`${name}: ${EVENT_FIGURES.rate}`]: figure(counted.map(({ wall }) => 1_000_000 / wall)),
      [`${name}: ${EVENT_FIGURES.micros}`]: figure(counted.map(({ processor }) => processor)),
    };
    const room = await roomOf(backend.open, plan(20_000).count);
    for (const [kind, what] of Object.entries(ROOM_FIGURES))
      results[`${name}: ${what}`] = figure([room[kind as RoomKind]]);
    return results;
  } finally {
    await backend.stop();
  }
}
