import { randomUUID } from 'node:crypto';
import type { Store } from '../../dist/index.js';
import { acceptRequest } from '../lib/accepts.ts';
import { BACKENDS } from '../lib/backends.ts';
import {
  atMost,
  concurrently,
  figure,
  plan,
  QUICK,
  wallClock,
  type Figure,
  type Figures,
} from '../lib/measure.ts';
import type { BackendName } from '../lib/places.ts';

const SENDERS = QUICK ? 500 : 10_000;
/** What a look may take. Ms. */
const MOST_MS = 50;
/** Events that a worker asks for, and tasks that a poller does. */
const MAX = 16;
const HOLD_MS = 600_000;

const senderOf = (at: number): string => `https://seller-${at}.example/mcp`;

/** Of each sender an event and a watched task, both due. */
async function fill(store: Store): Promise<void> {
  await concurrently(SENDERS, 128, async (at) => {
    const sender = senderOf(at);
    await store.accept({
      ...acceptRequest({ at, task: `task-${at}`, withoutNonce: true }),
      sender,
      mode: 'inbox',
    });
    await store.registrations?.run(sender, (rows) =>
      rows.save({
        kind: 'watch',
        sender,
        id: 'task',
        value: '{}',
        dueAt: 1000 + at,
        list: null,
        expiresAt: null,
      }),
    );
  });
}

type Look = (max: number) => Promise<number>;

/** @returns each how many it has found. */
function looksOf(store: Store): Readonly<Record<string, Look>> {
  const { inbox, registrations } = store;
  if (!inbox || !registrations) throw new Error(`${store.name} keeps no inbox or no registrations`);
  const retry = { attempts: 12, crashes: 5 };
  return {
    'a worker’s look': async (max) => {
      const asked = { owner: randomUUID(), max, leaseMs: HOLD_MS, retry, retentionMs: HOLD_MS, senders: [] };
      return (await inbox.lease(asked)).events.length;
    },
    'a poller’s look': async (max) =>
      (await registrations.due({ kind: 'watch', max, holdMs: HOLD_MS, senders: [] })).rows.length,
  };
}

async function timed(look: Look, found: number): Promise<Figure> {
  const { repetitions, warmUps } = plan(1);
  const times: number[] = [];
  for (let round = 0; round < warmUps + repetitions; round += 1) {
    const since = wallClock();
    const count = await look(MAX);
    if (count !== found) throw new Error(`a look found ${count}, not ${found}`);
    if (round >= warmUps) times.push((wallClock() - since) / 1000);
  }
  return figure(times);
}

/** What a worker's and a poller's look take where thousands of senders have something due, and where none has it yet. */
export async function measure(part: string): Promise<Figures> {
  const name = part as BackendName;
  const backend = await BACKENDS[name]();
  const results: Record<string, Figure> = {};
  try {
    const { store, close } = await backend.open();
    await fill(store);
    for (const [what, look] of Object.entries(looksOf(store))) {
      const of = `${name}: ${what}, ms`;
      results[`${of}: something due of all`] = atMost(await timed(look, MAX), MOST_MS);
      for (let left = SENDERS; left > 0; left -= 1) if ((await look(200)) === 0) break;
      results[`${of}: nothing due yet`] = atMost(await timed(look, 0), MOST_MS);
    }
    await close();
    return results;
  } finally {
    await backend.stop();
  }
}
