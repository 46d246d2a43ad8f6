import { afterAll, describe, expect, it } from 'vitest';
import type { Outcome } from '../../../src/index.ts';
import { inThisForm } from '../form.ts';
import type { RedisServer } from '../../support/redis.ts';
import { ON_DISK, startPair, startServer, until } from '../../support/redis.ts';
import type { Mishap } from '../../support/tcp-proxy.ts';
import type { TestReceiver, Signed } from '../../receiver/setup.ts';
import { AGENT, testReceiver, payloads, said } from '../../receiver/setup.ts';
import type { Backend, OpenBackend } from './backends.ts';
import { LONG_MS, mysqlBackend, postgresBackend, redisBackend } from './backends.ts';

type Mode = 'inline' | 'inbox';
type Point = 'accept' | 'complete';
type Retry = 'a fresh delivery' | 'the same bytes';

const LEASE_MS = 30_000;

/** Started where a row of this form asks for them. */
let redis: Promise<RedisServer> | undefined;
let pair: ReturnType<typeof startPair> | undefined;
afterAll(async () => {
  await (await redis)?.remove();
  await (await pair)?.stop();
});

const BACKENDS: Readonly<Record<string, OpenBackend>> = {
  Postgres: postgresBackend,
  MySQL: mysqlBackend,
  Redis: async (timeoutMs) => redisBackend((await (redis ??= startServer(ON_DISK))).port, timeoutMs),
  'Redis with a replica': async (timeoutMs) =>
    redisBackend((await (pair ??= startPair())).primary.port, timeoutMs),
};

/** `npm test` has one store, whose calls do not know whether they were done. */
const NAMES = inThisForm(Object.keys(BACKENDS), (name) => name === 'Postgres');

/** What is true of the event in the database. */
async function isSafe({ judge }: Backend, key: string): Promise<boolean> {
  return (await judge.inbox.inspect(AGENT, key))?.acked === true;
}

/** A final answer is only given to what is safe; anything else is 503. */
async function expectHonest(backend: Backend, key: string, outcome: Outcome): Promise<void> {
  const { status } = outcome.response;
  if (status !== 503) expect(await isSafe(backend, key), `${said(outcome)}, and it is safe`).toBe(true);
  if (status !== 200 && status !== 503) expect(said(outcome)).toBe('refused webhook_signature_replayed 401');
}

/** As sellers do: again until an answer is final. */
async function retried(backend: Backend, key: string, send: () => Promise<Outcome>): Promise<Outcome> {
  let outcome = await send();
  await until('a final answer', async () => {
    await expectHonest(backend, key, outcome);
    if (outcome.response.status === 503) outcome = await send();
    return outcome.response.status !== 503;
  });
  await expectHonest(backend, key, outcome);
  return outcome;
}

/** A receiver on the backend, warm: its connections are there, its scripts loaded. */
async function warm(backend: Backend, mode: Mode): Promise<TestReceiver> {
  const at = await testReceiver({
    store: backend.store,
    durability: { require: 'disk' },
    mode,
    leaseMs: LEASE_MS,
    advanced: { waitMs: 300 },
    ...(mode === 'inbox' && { worker: { pollMs: 200 } }),
  });
  if (mode === 'inbox') await at.receiver.start();
  const first = payloads.tool('completed');
  await until('it answers', async () => (await at.deliver(first)).response.status === 200);
  await until('it handles', async () => at.seen.length > 0);
  at.seen.length = 0;
  return at;
}

interface Case {
  readonly name: string;
  readonly mishap: Mishap;
  readonly retry: Retry;
}

interface Group {
  readonly mode: Mode;
  readonly point: Point;
}

interface Seen {
  readonly first: string;
  /** The server came to the plan after more than a second, and so did nothing. */
  readonly undone: boolean;
  readonly last: string;
  readonly runs: number;
}

/** A server that comes to a plan which is older does nothing, and says so, which no torn answer tells. */
const OLD_PLAN_MS = 1000;

/** One event meets a mishap; everything that is answered is judged. */
async function meet(backend: Backend, { mode, point }: Group, { mishap, retry }: Case): Promise<Seen> {
  const { deliver, sign, send, seen, receiver } = await warm(backend, mode);
  const event = payloads.tool('completed');
  const key = event.idempotency_key;
  // The first request that names the event is its accept; what completes it says so of its record.
  const armed = backend.proxy.arm(mishap, point === 'accept' ? key : '"state":"applied"');
  const signed: Signed = await sign(event);
  const since = performance.now();
  const first = await send(signed);
  // Where the time-out was too short for the machine it may not have come so far.
  if (first.response.status !== 503) await armed.struck;
  await expectHonest(backend, key, first);
  const isKept = (await backend.judge.peek(AGENT, key)) !== 'absent';
  const undone = !isKept && performance.now() - since > OLD_PLAN_MS;
  // A reply that comes after its call was given up must be nobody else's.
  armed.release();
  backend.proxy.heal();
  // The lease of the one that won it and does not know runs out.
  if (mode === 'inline') backend.advance(LEASE_MS + 1);
  const last = await retried(backend, key, () =>
    retry === 'the same bytes' ? send(signed) : deliver(event),
  );
  await until('it is completed', async () => (await backend.judge.peek(AGENT, key)) === 'applied');
  expect(await backend.completions(key)).toBeOneOf([1, undefined]);
  await receiver.stop();
  return { first: said(first), undone, last: said(last), runs: seen.length };
}

/** The call reached the server, and was done there. */
const DONE: readonly Mishap[] = ['hold', 'swallow', 'drop', 'tear'];
/** No answer came, and no end either: it takes the time-out to know. */
const SILENT: readonly Mishap[] = ['hold', 'swallow', 'mute'];

const timeoutOf = ({ mishap }: Case): number => (SILENT.includes(mishap) ? 1000 : LONG_MS);

/**
 * A completion is sent again for about a second, as long as somebody waits for the answer, and longer by a worker: only
 * a link that stays dead is noticed. An accept whose connection ends is sent again by the Redis store, which knows its
 * scripts to be repeatable, and left to the seller by those on SQL.
 */
function noAnswerBy({ mode, point }: Group, { name, mishap }: Case): boolean {
  if (point === 'complete') return mode === 'inline' && mishap === 'mute';
  return ['Postgres', 'MySQL'].includes(name) || SILENT.includes(mishap);
}

/** @param undone as it was seen: that the machine stood still for so long is not for the test to say. */
function expected(group: Group, each: Case, undone: boolean): Seen {
  const answered = !noAnswerBy(group, each);
  const safe = answered || (group.mode === 'inbox' && DONE.includes(each.mishap) && !undone);
  const again = each.retry === 'the same bytes' ? 'refused webhook_signature_replayed 401' : 'duplicate 200';
  return {
    first: answered ? 'accepted 200' : 'unavailable store_unavailable 503',
    undone,
    last: safe ? again : 'accepted 200',
    runs: 1,
  };
}

const MISHAPS: readonly Mishap[] = ['hold', 'swallow', 'drop', 'tear', 'cut', 'mute'];
const RETRIES: readonly Retry[] = ['a fresh delivery', 'the same bytes'];
const CASES: readonly Case[] = NAMES.flatMap((name) =>
  MISHAPS.flatMap((mishap) => RETRIES.map((retry) => ({ name, mishap, retry }))),
);
const GROUPS: readonly Group[] = (['inline', 'inbox'] as const).flatMap((mode) =>
  (['accept', 'complete'] as const).map((point) => ({ mode, point })),
);

async function on<T>(name: string, timeoutMs: number, run: (backend: Backend) => Promise<T>): Promise<T> {
  const backend = await (BACKENDS[name] ?? postgresBackend)(timeoutMs);
  try {
    return await run(backend);
  } finally {
    await backend.end();
  }
}

/** Those of a mode at once: most of the time is spent waiting for what never comes. */
const running = new Map<Mode, ReadonlyMap<Group, ReadonlyMap<Case, Promise<Seen>>>>();

function begun(group: Group): ReadonlyMap<Case, Promise<Seen>> {
  const known = running.get(group.mode);
  if (known) return known.get(group) ?? new Map();
  const ofMode = GROUPS.filter(({ mode }) => mode === group.mode);
  running.set(group.mode, new Map(ofMode.map((each) => [each, begin(each)])));
  return begun(group);
}

function begin(group: Group): ReadonlyMap<Case, Promise<Seen>> {
  return new Map(
    CASES.map((each) => {
      const seen = on(each.name, timeoutOf(each), (backend) => meet(backend, group, each));
      seen.catch(() => undefined);
      return [each, seen];
    }),
  );
}

describe.each(GROUPS)('mode $mode, the link fails at $point', (group) => {
  it.each(CASES)('$name: $mishap; then $retry', async (each) => {
    // On a busy machine a short time-out strikes where nothing is wrong: then the rules in `meet` are all.
    const seen = await begun(group).get(each);
    if (!SILENT.includes(each.mishap)) expect(seen).toEqual(expected(group, each, seen?.undone === true));
    else if (noAnswerBy(group, each)) expect(seen?.first).toBe('unavailable store_unavailable 503');
    else expect(seen?.runs).toBeGreaterThan(0);
  });
});

describe.each(NAMES)('%s, a slow link', (name) => {
  it.each(['inline', 'inbox'] as const)('mode %s: slow answers, and all of them 200', (mode) =>
    on(name, LONG_MS, async (backend) => {
      const { deliver, receiver } = await warm(backend, mode);
      backend.proxy.delay(100);
      const events = Array.from({ length: 8 }, () => payloads.tool('completed'));
      const answers = await Promise.all(events.map((event) => deliver(event)));
      expect(answers.map(said)).toEqual(events.map(() => 'accepted 200'));
      for (const { idempotency_key: key } of events) {
        expect(await isSafe(backend, key)).toBe(true);
        await expect.poll(() => backend.judge.peek(AGENT, key)).toBe('applied');
      }
      await receiver.stop();
    }),
  );
});
