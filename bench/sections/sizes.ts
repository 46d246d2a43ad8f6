import { floorContestant, pipelineContestant, oneThread } from '../lib/contestants.ts';
import { makeKey, prepare } from '../lib/deliveries.ts';
import {
  alternate,
  atMost,
  IN_SERVICE,
  micros,
  operations,
  ownClock,
  plan,
  ratio,
  type Figure,
  type Figures,
} from '../lib/measure.ts';

interface Size {
  readonly name: string;
  readonly bytes: number;
  readonly count: number;
  readonly most: number;
}

const SIZES: readonly Size[] = [
  { name: '1 KB', bytes: 1024, count: 3000, most: 1.2 },
  { name: '10 KB', bytes: 10_240, count: 1500, most: 1.3 },
  { name: '100 KB', bytes: 102_400, count: 150, most: 1.45 },
  // Under the default cap of a body.
  { name: '1 MB', bytes: 1_000_000, count: 20, most: 1.55 },
];

/** The whole pipeline over FLOOR by size of the body: Ed25519, one thread, memory store. */
export async function measure(): Promise<Figures> {
  const results: Record<string, Figure> = {};
  const key = await makeKey('ed25519');
  for (const { name, bytes, count: each, most } of SIZES) {
    const planned = plan(each, 9, IN_SERVICE);
    const all = await prepare(operations(planned), key, 'ed25519', bytes);
    const times = await alternate(
      [
        floorContestant('floor', key, 'ed25519', all),
        pipelineContestant('pipeline', () => oneThread(key), all),
      ],
      planned,
      ownClock,
    );
    results[`${name}: FLOOR, µs`] = micros(times, 'floor');
    results[`${name}: whole pipeline ÷ FLOOR`] = atMost(ratio(times, 'pipeline', 'floor'), most);
  }
  return results;
}
