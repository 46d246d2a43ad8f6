import type { AcceptRequest } from '../../dist/store.js';
import { acceptOne, acceptRequest, completeOne } from '../lib/accepts.ts';
import { BACKENDS, type Backend, type Opened } from '../lib/backends.ts';
import type { BackendName } from '../lib/places.ts';
import {
  alternate,
  atLeast,
  concurrently,
  plan,
  rate,
  ratio,
  type Contestant,
  type Figure,
  type Figures,
} from '../lib/measure.ts';

const COUNTS: Readonly<Record<number, number>> = { 1: 800, 16: 4000, 64: 6000 };

/** Throughput of accepts over the bare write's, at least; by concurrency. */
const LEAST: Readonly<Record<BackendName, Readonly<Record<number, number>>>> = {
  redis: { 1: 0.5, 16: 0.2, 64: 0.2 },
  postgres: { 1: 0.7, 64: 2 },
  mysql: {},
  sqlite: { 1: 0.7, 64: 2.5 },
};

function contestants({ bare }: Backend, { store }: Opened, width: number): readonly Contestant[] {
  let events = width * 100_000_000;
  let keys = events;
  let requests: readonly AcceptRequest[] = [];
  return [
    {
      name: 'bare',
      run: (count) => concurrently(count, width, () => bare(String(keys++))),
    },
    {
      name: 'accept',
      setUp: (count) => {
        requests = Array.from({ length: count }, () => {
          events += 1;
          return acceptRequest({ at: events, task: `task-${events}` });
        });
      },
      run: (count) => concurrently(count, width, (at) => acceptOne(store, requests[at] as AcceptRequest)),
      // Not measured, but no store holds thousands of events that nobody completes.
      tearDown: () =>
        concurrently(requests.length, 64, (at) => completeOne(store, requests[at] as AcceptRequest)),
    },
  ];
}

/** Accepts on a durable store over the bare write of its backend, by how many are under way. */
export async function measure(part: string): Promise<Figures> {
  const name = part as BackendName;
  const results: Record<string, Figure> = {};
  const backend = await BACKENDS[name]();
  try {
    const opened = await backend.open();
    for (const [width, each] of Object.entries(COUNTS)) {
      const times = await alternate(contestants(backend, opened, Number(width)), plan(each));
      const least = LEAST[name][Number(width)];
      const share = ratio(times, 'bare', 'accept');
      const of = `${name}, ${width} concurrent`;
      results[`${of}: ${backend.bareName}/s`] = rate(times, 'bare');
      results[`${of}: accepts/s`] = rate(times, 'accept');
      results[`${of}: accepts ÷ ${backend.bareName}, by number a second`] =
        least === undefined ? share : atLeast(share, least);
    }
    await opened.close();
    return results;
  } finally {
    await backend.stop();
  }
}
