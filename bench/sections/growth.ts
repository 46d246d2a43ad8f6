import type { AcceptRequest } from '../../dist/store.js';
import { acceptOne, acceptRequest, completeOne, fill } from '../lib/accepts.ts';
import { BACKENDS, type Backend, type Opened } from '../lib/backends.ts';
import type { BackendName } from '../lib/places.ts';
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
  type Times,
} from '../lib/measure.ts';
import { residentMiB, residentOf } from '../lib/memory.ts';

const HELD: readonly [number, number, number] = QUICK ? [300, 1000, 3000] : [1000, 100_000, 1_000_000];
const [SMALL, MIDDLE, LARGE] = HELD;

const WIDTH = 16;
/** Numbers of events that no fill reaches: those of accepts that are timed, and those of processes of their own. */
const TIMED = 1_000_000_000;
const ELSEWHERE = 500_000_000;

/**
 * V8 doubles the room for young objects while a process works, whatever it works on: for Redis and Postgres at last
 * before 28,000 events, for at 70,000 a process holds as much.
 */
const SERVICE = plan(28_000, 5, 0);

/** A store that holds so many records. */
interface Holding {
  readonly records: number;
  /** Before each repetition. */
  readonly opened: () => Promise<Opened>;
  /** Whether it is a new one each time. */
  readonly anew: boolean;
}

/** Measured beside each other. */
function contestant({ records, opened, anew }: Holding): Contestant {
  let current: Opened | undefined;
  let events = TIMED;
  let requests: readonly AcceptRequest[] = [];
  return {
    name: String(records),
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
      if (anew) await end();
    },
  };
}

async function filled(backend: Backend, count: number): Promise<Opened> {
  const opened = await backend.open();
  await fill(opened.store, 0, count);
  return opened;
}

/** MiB of a new process for each look, which opens a store and adds events to it, by the records it finds there. */
async function residents(holdings: readonly Holding[]): Promise<Times> {
  const { count, repetitions, warmUps } = SERVICE;
  const found = new Map<string, number[]>(holdings.map(({ records }) => [String(records), []]));
  for (let round = 0; round < warmUps + repetitions; round += 1) {
    for (const [at] of holdings.entries()) {
      const { records, opened, anew } = holdings[(at + round) % holdings.length] as Holding;
      const { place, close } = await opened();
      const resident = await residentOf({ place, records, from: ELSEWHERE + round * count, count });
      if (round >= warmUps) found.get(String(records))?.push(resident);
      if (anew) await close();
    }
  }
  return found;
}

const once = (value: number): Figure => figure([value]);

function accepts(name: BackendName, times: Times): Record<string, Figure> {
  const results: Record<string, Figure> = {};
  for (const held of HELD) results[`${name}, ${held} records held: accept, µs`] = micros(times, String(held));
  const ratioTo = (held: number): Figure => ratio(times, String(held), String(SMALL));
  results[`${name}: accept with ${LARGE} records ÷ with ${SMALL}`] = atMost(ratioTo(LARGE), 1.3);
  results[`${name}: accept with ${MIDDLE} records ÷ with ${SMALL}`] = ratioTo(MIDDLE);
  return results;
}

function memory(name: BackendName, mebibytes: Times): Record<string, Figure> {
  const results: Record<string, Figure> = {};
  for (const held of HELD) {
    const what = `resident memory of a new process after ${SERVICE.count} events, MiB`;
    results[`${name}, opened with ${held} records: ${what}`] = figure(mebibytes.get(String(held)) ?? []);
  }
  const ratioTo = (held: number): Figure => ratio(mebibytes, String(held), String(SMALL));
  const grown = ratioTo(LARGE);
  results[`${name}: resident memory opened with ${LARGE} records ÷ with ${SMALL}`] =
    name === 'sqlite' ? grown : atMost(grown, 1.1);
  results[`${name}: resident memory opened with ${MIDDLE} records ÷ with ${SMALL}`] = ratioTo(MIDDLE);
  return results;
}

/** What an accept costs, and what a record takes, by how many a store holds. */
export async function measure(part: string): Promise<Figures> {
  const name = part as BackendName;
  const backend = await BACKENDS[name]();
  try {
    const middle = await filled(backend, MIDDLE);
    await middle.bytes();
    const early = await residentMiB();
    const large = await filled(backend, LARGE);
    const bytes = (await large.bytes()) / LARGE;
    const late = await residentMiB();
    const holdings: readonly Holding[] = [
      // Small ones would not stay small: a new one each time.
      { records: SMALL, opened: () => filled(backend, SMALL), anew: true },
      { records: MIDDLE, opened: async () => middle, anew: false },
      { records: LARGE, opened: async () => large, anew: false },
    ];
    const times = await alternate(holdings.map(contestant), plan(640));
    const mebibytes = await residents(holdings);
    await middle.close();
    await large.close();
    const wrote = (records: number): string =>
      `${name}: resident memory of one process that has written ${records} records, MiB`;
    return {
      ...accepts(name, times),
      [`${name}: bytes a record`]: once(bytes),
      ...memory(name, mebibytes),
      // What a process grows by in service: of its work, and not of what is held.
      [wrote(MIDDLE)]: once(early),
      [wrote(MIDDLE + LARGE)]: once(late),
    };
  } finally {
    await backend.stop();
  }
}
