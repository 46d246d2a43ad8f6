import type { Receiver, Store } from '../../dist/index.js';
import { memoryStore } from '../../dist/memory.js';
import { createRegistrations } from '../../dist/registrations.js';
import { signDelivery, type KeyPair } from '../../dist/sender.js';
import { BACKENDS } from '../lib/backends.ts';
import { receiverFor } from '../lib/contestants.ts';
import { AGENT_URL, makeKey, PUBLIC_URL } from '../lib/deliveries.ts';
import {
  alternate,
  atMost,
  type Contestant,
  type Figures,
  micros,
  ownClock,
  plan,
  QUICK,
  ratio,
} from '../lib/measure.ts';
import type { BackendName } from '../lib/places.ts';

/** As many as are counted of one report. */
const ROWS = QUICK ? 1000 : 10_000;
/** What a report may take. */
const MOST_MS = 1000;
const DAY_MS = 86_400_000;
/** Reports are of days before today. */
const FIRST = Math.floor(Date.now() / DAY_MS) - 100;

const idOf = (at: number): string => `mb_${String(at).padStart(32, '0')}`;
const iso = (day: number): string => new Date(day * DAY_MS).toISOString();

/** A report of one day of all media buys. */
const report = (round: number): object => ({
  idempotency_key: `report-${round}-0123456789abcdef`,
  task_id: 'reports',
  task_type: 'media_buy_delivery',
  status: 'completed',
  timestamp: new Date(Date.now() - 60_000).toISOString(),
  result: {
    notification_type: 'scheduled',
    sequence_number: round + 1,
    reporting_period: { start: iso(FIRST + round), end: iso(FIRST + round + 1) },
    currency: 'USD',
    media_buy_deliveries: Array.from({ length: ROWS }, (_, at) => ({
      media_buy_id: idOf(at),
      status: 'active',
      totals: { impressions: 1000 + at, spend: 12.5 },
      by_package: [],
    })),
  },
});

/** Delivers a report a repetition, each of another day. */
function contestant(name: string, receiver: Receiver, key: KeyPair): Contestant {
  let signed: Awaited<ReturnType<typeof signDelivery>> | undefined;
  let round = 0;
  return {
    name,
    setUp: async () => {
      signed = await signDelivery({ url: PUBLIC_URL, body: report(round), key: key.privateJwk });
      round += 1;
    },
    run: async () => {
      if (!signed) throw new Error('nothing is signed');
      const { kind, code } = await receiver.verifyAndDispatch(signed.body, signed.headers);
      if (kind !== 'accepted') throw new Error(`a report is ${kind} ${code}`);
    },
  };
}

const options = (store: Store) => ({
  store,
  maxBodyBytes: 16 * 1024 * 1024,
  handlers: { deliveryReport: async () => {}, other: async () => {} },
});

/** A receiver that counts the windows of as many media buys: one is registered, and the others' rows are made of its own. */
async function counting(store: Store, key: KeyPair): Promise<Receiver> {
  const registrations = createRegistrations({
    store,
    call: async () => ({}),
    baseUrl: 'https://buyer.example/webhooks',
    secrets: [Buffer.alloc(32, 7).toString('base64')],
  });
  const receiver = receiverFor(key, {}, { ...options(store), registrations });
  await receiver.ready();
  const made = await registrations.create({
    agentUrl: AGENT_URL,
    taskType: 'create_media_buy',
    arguments: {
      start_time: iso(FIRST),
      end_time: iso(FIRST + 200),
      reporting_webhook: { url: 'https://buyer.example/r', reporting_frequency: 'daily' },
    },
  });
  await made.settle({ media_buy_id: idOf(0), status: 'completed' });
  const rows = store.registrations;
  const [row] = (await rows?.page({ kind: 'stream', limit: 1 }))?.rows ?? [];
  if (!rows || !row) throw new Error(`${store.name} has no account of a media buy`);
  for (let from = 1; from < ROWS; from += 500) {
    await rows.run(AGENT_URL, (step) => {
      for (let at = from; at < Math.min(from + 500, ROWS); at += 1) {
        step.save({ ...row, id: idOf(at), value: row.value.replaceAll(idOf(0), idOf(at)) });
      }
    });
  }
  return receiver;
}

/** What a report of 10,000 media buys takes, from its bytes to its completion: with an account of each, and without registrations. */
async function measured(name: string, stores: readonly [Store, Store]): Promise<Figures> {
  const key = await makeKey('ed25519');
  const [own, other] = stores;
  const plainly = receiverFor(key, {}, options(other));
  await plainly.ready();
  const contestants = [
    contestant('counted', await counting(own, key), key),
    contestant('plain', plainly, key),
  ];
  const times = await alternate(contestants, plan(1), ownClock);
  const ms = (of: string) => {
    const { median, min, max } = micros(times, of);
    return { median: median / 1000, min: min / 1000, max: max / 1000 };
  };
  const what = `${name}: a report of ${ROWS} media buys`;
  return {
    [`${what}, ms`]: atMost(ms('counted'), MOST_MS),
    [`${what}, without registrations, ms`]: ms('plain'),
    [`${what} ÷ the same without registrations`]: ratio(times, 'counted', 'plain'),
  };
}

export async function measure(part: string): Promise<Figures> {
  if (part === 'memory') return measured(part, [memoryStore(), memoryStore()]);
  const backend = await BACKENDS[part as BackendName]();
  const opened = [await backend.open(), await backend.open()] as const;
  try {
    return await measured(part, [opened[0].store, opened[1].store]);
  } finally {
    for (const { close } of opened) await close();
    await backend.stop();
  }
}
