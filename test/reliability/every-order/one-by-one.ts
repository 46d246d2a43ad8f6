import { expect } from 'vitest';
import { storeOf } from '../../../src/stores/index.ts';
import type { Store } from '../../../src/index.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import type { Planted } from '../../support/planted.ts';
import { keptRows, rowBackend } from '../../support/row-backend.ts';
import type { Pass } from './every-order.ts';
import { everyOrder } from './every-order.ts';

/** What a process does. */
export interface Call {
  readonly name: string;
  /** Its answer can be written as JSON, and is the same for the same store. */
  readonly make: (store: Store) => Promise<unknown>;
}

/** Processes on one store, each with a handle of its own. */
export interface Scenario {
  /** One after the other, by the first process, before the others begin. */
  readonly before: readonly Call[];
  /** By process: one call after the other. */
  readonly scripts: readonly (readonly Call[])[];
  /** All that is left in the end. */
  readonly look: Call;
  /** Whether the processes have one handle: they are one, which makes its calls at once. */
  readonly isOneHandle?: boolean;
}

interface Made {
  readonly script: number;
  readonly call: Call;
  readonly answer: string;
  /** Places in the order: others that were answered before `since` came before it. */
  readonly since: number;
  readonly until: number;
}

/** What the calls come to in memory, one after the other. */
interface OneByOne {
  /** By script, in the order of their calls. */
  readonly order: readonly number[];
  readonly answers: readonly string[];
  readonly left: string;
}

const answerOf = async ({ make }: Call, store: Store): Promise<string> =>
  JSON.stringify((await make(store)) ?? null);

/**
 * Every order of the loads, looks and commits of a driven store, and of when calls begin: the answers, and what is left, are
 * those of the same calls one after the other in memory, of which none comes before one that was answered before it began.
 * @returns how many orders there are.
 * @throws Error that tells the order and the answers.
 */
export async function expectOneByOne(
  scenario: Scenario,
  planted: Planted = (backend) => backend,
): Promise<number> {
  const possible = await inMemory(scenario);
  return everyOrder({
    prepare: () => onDriver(scenario, planted),
    play: (driven, pass) => play(scenario, driven, pass),
    judge: async ({ made, gate, stores }, order) => {
      delete gate.pass;
      const [first] = stores;
      const left = first && (await answerOf(scenario.look, first));
      if (possible.some((one) => one.left === left && isSame(one, made))) return;
      const answers = made.map(({ script, call, answer }) => `${script + 1}: ${call.name} → ${answer}`);
      throw new Error(['Not as one after the other:', ...order, ...answers, `left ${left}`].join('\n'));
    },
  });
}

interface Driven {
  readonly gate: { pass?: Pass };
  /** By process. */
  readonly stores: readonly Store[];
  readonly made: Made[];
}

async function onDriver({ before, scripts, isOneHandle }: Scenario, planted: Planted): Promise<Driven> {
  const kept = keptRows();
  const gate: Driven['gate'] = {};
  const open = async (at: number): Promise<Store> => {
    const backend = planted(
      rowBackend(kept, () => Date.now()),
      kept,
    );
    const { registrations = expect.fail('it has them') } = backend;
    const store = storeOf(
      {
        ...backend,
        load: async (request) => {
          // By one handle, calls that are made before a load is over may share what comes after it.
          await gate.pass?.(`${at + 1} loads`, isOneHandle ? undefined : at);
          return backend.load(request);
        },
        commit: async (request) => {
          await gate.pass?.(`${at + 1} commits`);
          return backend.commit(request);
        },
        registrations: {
          ...registrations,
          due: async (request) => {
            await gate.pass?.(`${at + 1} looks for what is due`);
            return registrations.due(request);
          },
        },
      },
      { clockOffsetMs: () => 0, random: () => 0.99 },
    );
    await store.open();
    return store;
  };
  const first = await open(0);
  const stores = [first];
  while (stores.length < scripts.length) stores.push(isOneHandle ? first : await open(stores.length));
  for (const { make } of before) await make(first);
  return { gate, stores, made: [] };
}

async function play({ scripts, isOneHandle }: Scenario, driven: Driven, pass: Pass): Promise<void> {
  const { gate, stores, made } = driven;
  gate.pass = pass;
  let ticks = 0;
  const tick = (): number => (ticks += 1);
  await Promise.all(
    stores.map(async (store, script) => {
      for (const call of scripts[script] ?? []) {
        await pass(`${script + 1} begins: ${call.name}`, isOneHandle ? undefined : script);
        const since = tick();
        const answer = await answerOf(call, store);
        made.push({ script, call, answer, since, until: tick() });
      }
    }),
  );
}

/** Each order of the calls that keeps that of each script. */
function ordersOf(left: readonly number[]): readonly (readonly number[])[] {
  if (left.every((count) => count === 0)) return [[]];
  return left.flatMap((count, script) =>
    count === 0 ? [] : ordersOf(left.with(script, count - 1)).map((order) => [script, ...order]),
  );
}

function inMemory({ before, scripts, look }: Scenario): Promise<readonly OneByOne[]> {
  const orders = ordersOf(scripts.map(({ length }) => length));
  return Promise.all(
    orders.map(async (order) => {
      const store = memoryStore();
      await store.open();
      for (const { make } of before) await make(store);
      const answers: string[] = [];
      const next = scripts.map((script) => script.values());
      for (const script of order) {
        const call = next[script]?.next().value;
        if (call) answers.push(await answerOf(call, store));
      }
      return { order, answers, left: await answerOf(look, store) };
    }),
  );
}

function isSame({ order, answers }: OneByOne, made: readonly Made[]): boolean {
  const next = order.map(() => 0);
  let latest = 0;
  return order.every((script, place) => {
    const one = made.filter((other) => other.script === script)[next[script] ?? 0];
    next[script] = (next[script] ?? 0) + 1;
    if (!one || one.answer !== answers[place] || one.until < latest) return false;
    latest = Math.max(latest, one.since);
    return true;
  });
}
