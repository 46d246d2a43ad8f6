import nodeCrypto from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { inMicros, PARTS, WHOLE, type PartName } from '../lib/breakdown.ts';
import { bareContestant, floorContestant, pipelineContestant } from '../lib/contestants.ts';
import { AGENT_URL, makeKey, prepare, PUBLIC_URL, type Prepared } from '../lib/deliveries.ts';
import {
  alternate,
  figure,
  IN_SERVICE,
  micros,
  operations,
  plan,
  type Contestant,
  type Figure,
  type Figures,
  type Times,
} from '../lib/measure.ts';
import { stageContestants } from '../lib/stages.ts';
import { contextOf } from '../lib/walk.ts';
import { createReceiver, type ReceiverOptions } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import type { KeyPair } from '../../src/sender/sign.ts';

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

function optionsFor(key: KeyPair): ReceiverOptions {
  return {
    publicUrl: PUBLIC_URL,
    senders: [{ agentUrl: AGENT_URL, pins: [key.publicJwk] }],
    store: memoryStore(),
    durability: { require: 'process' },
    logger: SILENT,
    handlers: { other: async () => {} },
  };
}

/** The whole way with every signature taken for good: what verification costs in its place is the difference. */
function unverified(key: KeyPair, all: readonly Prepared[]): Contestant {
  const { verify } = nodeCrypto;
  const contestant = pipelineContestant(UNVERIFIED, () => createReceiver(optionsFor(key)), all);
  return {
    ...contestant,
    async setUp(count) {
      await contestant.setUp?.(count);
      nodeCrypto.verify = () => true;
    },
    async tearDown() {
      nodeCrypto.verify = verify;
      await contestant.tearDown?.();
    },
  };
}

/** What is measured with something else in it, and that. */
const WITHIN: Readonly<Partial<Record<PartName, readonly [string, string]>>> = {
  'strict count: names twice, depth': ['strict', 'decode and JSON.parse'],
  'envelope and event': ['reading', 'strict'],
};

const UNVERIFIED = 'unverified';
const IN_PLACE = 'verification: more in its place than alone' satisfies PartName;
const REST = 'rest: promises, order of the stages' satisfies PartName;

/** Repetition by repetition. */
function minus(times: Times, of: string, less: readonly (readonly number[])[]): readonly number[] {
  return (times.get(of) ?? []).map((value, at) =>
    less.reduce((left, each) => left - (each[at] ?? Number.NaN), value),
  );
}

function partTimes(times: Times): ReadonlyMap<PartName, readonly number[]> {
  const all = new Map<PartName, readonly number[]>();
  for (const name of Object.keys(PARTS) as PartName[]) {
    if (name === REST || name === IN_PLACE) continue;
    const [whole, inner] = WITHIN[name] ?? [];
    const within = whole === undefined ? [] : [times.get(inner ?? '') ?? []];
    all.set(name, minus(times, whole ?? name, within));
  }
  const alone = all.get('verification') ?? [];
  all.set(IN_PLACE, minus(times, WHOLE, [times.get(UNVERIFIED) ?? [], alone]));
  return all.set(REST, minus(times, WHOLE, [...all.values()]));
}

/**
 * Where the time of a delivery goes: 1 KB, Ed25519, memory store, one thread. Each part is run alone by the library's
 * own functions, from the sources. Verification is measured in its place too, by a whole way without it, for it
 * need not cost the same there. The rest is the whole less all of them. Always by the clock: the processor's time ticks
 * in 10 ms on some systems, which is a whole repetition of most parts.
 */
export async function measure(): Promise<Figures> {
  // A part is idle while all others are measured, each behind a full collection: V8 drops code that looks old.
  setFlagsFromString('--no-flush-bytecode');
  const key = await makeKey('ed25519');
  const planned = plan(2000, 11, IN_SERVICE);
  const all = await prepare(operations(planned), key, 'ed25519', 1024);
  const stages = await stageContestants(all.slice(0, planned.count), await contextOf(optionsFor(key)));
  const times = await alternate(
    [
      pipelineContestant(WHOLE, () => createReceiver(optionsFor(key)), all),
      unverified(key, all),
      bareContestant('bare', key, 'ed25519', all),
      floorContestant('floor', key, 'ed25519', all),
      ...stages,
    ],
    planned,
  );
  const results: Record<string, Figure> = {
    [inMicros(WHOLE)]: micros(times, WHOLE),
    [inMicros('bare verification')]: micros(times, 'bare'),
    [inMicros('FLOOR')]: micros(times, 'floor'),
  };
  for (const [name, values] of partTimes(times)) results[inMicros(name)] = figure(values);
  return results;
}
