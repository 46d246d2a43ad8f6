import { inMicros, PARTS, WHOLE } from '../../bench/lib/breakdown.ts';
import { EVENT_FIGURES, ROOM_FIGURES } from '../../bench/lib/event-figures.ts';
import type { Figure } from '../../bench/lib/measure.ts';
import type { Results } from '../../bench/lib/results.ts';

const about = (median: number): Figure => ({ median, min: median * 0.9, max: median * 1.1 });

const section = (figures: Readonly<Record<string, number>>): Results[string] => ({
  measured: '2026-01-02',
  commit: '0123abcd',
  machine: { processor: '2 × processor & co', node: '24.0.0' },
  quick: false,
  cpu: false,
  figures: Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, about(value)])),
});

const STORES = ['mysql', 'postgres', 'redis', 'sqlite'];

/** Every part takes 1 µs, the verification 85. */
function breakdown(): Record<string, number> {
  const names = Object.keys(PARTS);
  const parts = names.map((name) => [inMicros(name), name === 'verification' ? 85 : 1] as const);
  return {
    ...Object.fromEntries(parts),
    [inMicros(WHOLE)]: 84 + names.length,
    [inMicros('bare verification')]: 84,
    [inMicros('FLOOR')]: 88,
  };
}

function http(): Record<string, number> {
  const doors = ['node', 'express', 'fastify', 'hono'].flatMap((door) => [
    [`${door}: bare server with one crypto.verify, requests/s`, 8000],
    [`${door}: whole pipeline, deliveries/s`, 5000],
  ]);
  const pool = ['node: verification off the main thread ÷ on it, by deliveries/s', 1.5];
  const stores = STORES.flatMap((store) => [
    [`${store}: bare server with one crypto.verify and one durable write, requests/s`, 4000],
    [`${store}: whole pipeline, deliveries/s`, 2000],
  ]);
  return Object.fromEntries([...doors, pool, ...stores]) as Record<string, number>;
}

const eachStore = (figures: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(
    STORES.flatMap((store) => Object.entries(figures).map(([name, value]) => [`${store}${name}`, value])),
  );

/** Results as a run writes them, of round numbers. */
export const RESULTS: Results = {
  breakdown: section(breakdown()),
  pipeline: section({
    'ed25519: whole pipeline, µs': 125,
    'ecdsa-p256-sha256: whole pipeline, µs': 100,
  }),
  http: section(http()),
  stores: section(
    eachStore({
      ', 1 concurrent: accepts/s': 1000,
      ', 16 concurrent: accepts/s': 8000,
      ', 64 concurrent: accepts/s': 20_000,
    }),
  ),
  events: section(
    eachStore({
      [`: ${EVENT_FIGURES.rate}`]: 10_000,
      [`: ${EVENT_FIGURES.micros}`]: 100,
      [`: ${ROOM_FIGURES.done}`]: 300,
      [`: ${ROOM_FIGURES.task}`]: 200,
      [`: ${ROOM_FIGURES.nonce}`]: 100,
      [`: ${ROOM_FIGURES.waiting}`]: 1500,
    }),
  ),
};
