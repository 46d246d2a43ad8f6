import {
  bareContestant,
  floorContestant,
  pipelineContestant,
  oneThread,
  withSodium,
} from '../lib/contestants.ts';
import { makeKey, prepare, type Alg } from '../lib/deliveries.ts';
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

interface Limits {
  readonly most: number;
  readonly stretch: number;
}

const LIMITS: Readonly<Record<Alg, Limits>> = {
  ed25519: { most: 1.25, stretch: 1.2 },
  'ecdsa-p256-sha256': { most: 1.35, stretch: 1.28 },
};

/** The whole pipeline over bare `crypto.verify`: 1 KB, one thread, memory store. */
export async function measure(): Promise<Figures> {
  const results: Record<string, Figure> = {};
  for (const [alg, { most, stretch }] of Object.entries(LIMITS) as [Alg, Limits][]) {
    const key = await makeKey(alg);
    const planned = plan(3000, 11, IN_SERVICE);
    const all = await prepare(operations(planned), key, alg, 1024);
    const times = await alternate(
      [
        bareContestant('bare', key, alg, all),
        pipelineContestant('pipeline', () => oneThread(key), all),
        pipelineContestant('canonical', () => oneThread(key, { edition: '3.2' }), all),
        floorContestant('floor', key, alg, all),
        // libsodium takes half of OpenSSL's time for Ed25519; it has no other algorithm.
        ...(alg === 'ed25519' ? [pipelineContestant('sodium', () => withSodium(key), all)] : []),
      ],
      planned,
      ownClock,
    );
    const whole = ratio(times, 'pipeline', 'bare');
    results[`${alg}: bare verify, µs`] = micros(times, 'bare');
    results[`${alg}: whole pipeline, µs`] = micros(times, 'pipeline');
    results[`${alg}: whole pipeline ÷ bare verify`] = atMost(whole, most);
    results[`${alg}: whole pipeline ÷ bare verify (stretch)`] = atMost(whole, stretch);
    results[`${alg}: whole pipeline with canonical JSON (edition 3.2) ÷ bare verify`] = ratio(
      times,
      'canonical',
      'bare',
    );
    results[`${alg}: FLOOR ÷ bare verify`] = ratio(times, 'floor', 'bare');
    if (!times.has('sodium')) continue;
    results[`${alg}: whole pipeline with sodium-native ÷ bare verify`] = ratio(times, 'sodium', 'bare');
  }
  return results;
}
