import { DatabaseSync } from 'node:sqlite';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Store } from '../../../src/index.ts';
import type {
  AcceptRequest,
  RegistrationKind,
  RegistrationRow,
  StoreInbox,
  StoreRegistrations,
} from '../../../src/stores/index.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { acceptRequest } from '../requests.ts';
import { countsOf } from '../sqlite-files.ts';

type Both = Store & { readonly inbox: StoreInbox; readonly registrations: StoreRegistrations };

beforeAll(() => {
  // One instant for all: answers and rows have instants in them.
  vi.useFakeTimers({ toFake: ['Date'], now: 1_767_225_600_000 });
});
afterAll(() => {
  vi.useRealTimers();
});

/** A comparison in a statement: what it compares with is bound, or in a row. */
const COMPARISON = /\+?[\w.]+ (?:<=|=|>) (?:\?|webhook_scope\.id|0)|[\w.]+ IS (?:NOT )?NULL/g;

/** Taken out, these change how long a statement takes, or what is looked at for nothing. */
const FOR_SPEED: readonly (readonly [of: RegExp, condition: RegExp, why: string])[] = [
  [
    /./,
    /due_at IS NOT NULL$/,
    'the partial index: a comparison with null is never true, and null comes last',
  ],
  [/^SELECT 1 FROM webhook_row WHERE kind/, /./, 'whether there is anything to purge'],
  [
    /^SELECT min\(\(/,
    /scope = webhook_scope.id/,
    'the earliest of each sender: the earliest of all is the same',
  ],
  [/^SELECT min\(due_at\)/, /./, 'asked for beside the earliest of all others'],
  [/^SELECT id FROM webhook_scope WHERE within = 0/, /./, 'key ids: no row of theirs is on a list'],
  [
    /FROM webhook_scope s WHERE s\.within = 0/,
    /s\.within = 0/,
    'key ids: no row of theirs waits for its turn',
  ],
];

interface Mutant {
  readonly sql: string;
  readonly condition: string;
  readonly without: string;
}

function mutantsOf(sql: string): readonly Mutant[] {
  const from = sql.indexOf('WHERE');
  if (from < 0) return [];
  return [...sql.slice(from).matchAll(COMPARISON)].flatMap(({ 0: condition, index }) => {
    if (FOR_SPEED.some(([of, which]) => of.test(sql) && which.test(condition))) return [];
    const at = from + index;
    const without = `${sql.slice(0, at)}(${condition} OR 1)${sql.slice(at + condition.length)}`;
    return [{ sql, condition, without }];
  });
}

/** What the store prepares. */
async function statements(): Promise<readonly string[]> {
  const db = new DatabaseSync(':memory:');
  const found = new Set<string>();
  const prepare = (sql: string): ReturnType<DatabaseSync['prepare']> => {
    found.add(sql);
    return db.prepare(sql);
  };
  await sqliteStore({ exec: (sql) => db.exec(sql), prepare, close: () => db.close() }).open();
  db.close();
  return [...found].filter((sql) => /webhook_(?:row|scope|copy)/.test(sql));
}

const [ONE, OTHER] = ['https://one.example/mcp', 'https://other.example/mcp'];
const RETRY = { attempts: 12, crashes: 5 };
const RETENTION_MS = 61_000;
const LIFE_MS = 33_000;

/** Names are alike, whatever they name and of whichever sender. */
const named = (n: number): string => `name-${n}-of-the-seller`;

interface Draft {
  readonly sender?: string;
  readonly mode?: AcceptRequest['mode'];
  readonly task?: number;
  readonly nonce?: number;
  /** Which copy of the event. */
  readonly copy?: number;
  readonly limits?: Partial<AcceptRequest['limits']>;
}

function event(n: number, draft: Draft = {}): AcceptRequest {
  const { sender = ONE, mode = 'inbox', task, nonce = n, copy = 1 } = draft;
  const made = acceptRequest({ sender, key: named(n), body: `${sender} ${n}` });
  return {
    ...made,
    acceptId: `accept-${sender}-${n}-${copy}`,
    mode,
    nonce: { keyid: 'seller-2026', nonce: `name-${nonce}-of-the-seller`, nowMs: 0, expiresAtMs: LIFE_MS },
    ...(made.event && {
      event: {
        ...made.event,
        notificationId: named(n),
        ...(task !== undefined && { task: { id: named(task), terminal: false } }),
      },
    }),
    limits: { ...made.limits, ...draft.limits },
    leaseMs: 8000,
    retry: RETRY,
    retentionMs: RETENTION_MS,
  };
}

/** Calls whose answers rest on each condition. @param pass lets time pass. */
async function* live(store: Both, pass: (ms: number) => void): AsyncGenerator {
  const { inbox } = store;
  const lease = (owner: string, more: object = {}): Promise<unknown> =>
    inbox.lease({
      owner,
      max: 1,
      leaseMs: 8000,
      retry: RETRY,
      retentionMs: RETENTION_MS,
      senders: [],
      ...more,
    });
  const held = (sender: string, n: number, owner: string) => ({ sender, key: named(n), owner });
  const complete = (sender: string, n: number, owner: string): Promise<unknown> =>
    store.complete({ ...held(sender, n, owner), retentionMs: RETENTION_MS });
  const fail = (sender: string, n: number, owner: string, backoffMs: number): Promise<unknown> =>
    store.fail({
      ...held(sender, n, owner),
      permanent: backoffMs === 0,
      retry: RETRY,
      backoffMs,
      retentionMs: RETENTION_MS,
    });

  // Two senders, and one's names are the other's too.
  for (const n of [1, 2, 3]) yield await store.accept(event(n, { task: n }));
  for (const n of [1, 2]) yield await store.accept(event(n, { sender: OTHER, task: n }));
  yield await store.accept(event(1, { sender: OTHER, copy: 2, nonce: 1 }));
  yield (await inbox.list({ state: 'queued', limit: 2 })).records;
  // They take turns.
  for (const n of [1, 2, 3, 4]) yield await lease(`worker-${n}`);
  yield await complete(ONE, 1, 'worker-1');
  for (const sender of [ONE, OTHER]) for (const n of [1, 2, 3]) yield await inbox.inspect(sender, named(n));
  // One is left to one, who fails with a back-off; the other's comes meanwhile.
  yield await lease('worker-5');
  yield await fail(ONE, 3, 'worker-5', 4000);
  yield await store.accept(event(4, { sender: OTHER }));
  yield await lease('worker-6');
  yield await lease('worker-7');
  yield await fail(OTHER, 4, 'worker-6', 0);
  for (const state of ['queued', 'leased', 'dead'] as const) {
    for (const of of [{}, { sender: ONE }, { sender: OTHER }]) {
      const page = await inbox.list({ state, limit: 1, ...of });
      yield page.records;
      if (page.next !== undefined)
        yield (await inbox.list({ state, limit: 9, ...of, after: page.next })).records;
    }
  }
  // Their processes die: suspects, who are only for those that ask alone.
  pass(20_000);
  for (const n of [8, 9]) yield await lease(`worker-${n}`, { max: 9 });
  yield await store.accept(event(5, { sender: OTHER }));
  yield await lease('worker-10');
  yield await inbox.overdueMs?.();
  yield await lease('worker-11', { alone: true, leaseMs: 1000 });
  pass(500);
  yield await lease('worker-12', { alone: true });
  yield await lease('worker-13', { alone: true });
  yield await lease('worker-14', { alone: true });
  pass(5000);
  yield await lease('worker-15', { alone: true });
  yield await lease('worker-16', { alone: true });
  // Both wait for a task of the same name, the other's longer.
  for (const sender of [OTHER, ONE]) {
    yield await store.accept(event(20, { sender, mode: 'inline', task: 20 }));
    yield await store.accept(event(21, { sender, task: 20 }));
    yield await store.accept(event(22, { sender, task: 22 }));
  }
  yield await lease('worker-17', { max: 9 });
  yield await complete(ONE, 20, event(20).acceptId);
  yield await lease('worker-18', { max: 9 });
  yield await complete(OTHER, 22, 'worker-17');
  // What was never acknowledged is forgotten; its sender brings it again, under the names of others.
  for (const sender of [ONE, OTHER]) yield await store.accept(event(30, { sender, mode: 'inline' }));
  pass(8001);
  yield await inbox.list({ state: 'leased', limit: 9, sender: ONE });
  pass(RETENTION_MS);
  yield await inbox.list({ state: 'leased', limit: 9, sender: ONE });
  yield await store.accept(event(30, { mode: 'inline', copy: 2, nonce: 31 }));
  yield await store.accept(event(1, { copy: 3, nonce: 32 }));
  // Caps: room is made of what has expired, of the one whose cap it is.
  const many = Array.from({ length: 40 }, (_, n) => n + 100);
  for (const n of many) {
    for (const sender of [OTHER, ONE])
      yield await store.accept(event(n, { sender, mode: 'inline', task: n }));
  }
  pass(8001);
  for (const n of many.slice(0, 30)) {
    yield await store.accept(event(n, { mode: 'inline', copy: 2, nonce: n + 100 }));
    yield await complete(ONE, n, event(n, { copy: 2 }).acceptId);
  }
  pass(RETENTION_MS);
  // Of those that have expired and are there, none is counted.
  yield await counted(store);
  yield await store.accept(event(300, { limits: { maxNoncesPerSender: 50 } }));
  yield await store.accept(event(301, { limits: { maxRecordsPerSender: 110 } }));
  pass(31 * 86_400_000);
  // As many of each kind as are too many, and then none of the caps is near.
  yield await store.accept(event(302, { limits: { maxRecordsPerSender: 80 } }));
  yield await store.accept(event(303, { limits: { maxNonces: 3 } }));
  // The clock is set back: what has come due is first, then what is too far ahead; what comes within an hour waits.
  yield await lease('worker-20', { max: 50 });
  for (const n of [600, 601, 602]) yield await store.accept(event(n));
  yield await store.accept(event(600, { sender: OTHER }));
  pass(-7_200_000);
  yield await store.accept(event(603, { sender: OTHER }));
  for (const n of [1, 2, 3]) yield await lease(`back-${n}`);
  for (const sender of [ONE, OTHER]) {
    for (const n of [1, 2, 3])
      for (const k of [600, 601, 602, 603]) yield await fail(sender, k, `back-${n}`, 1_800_000);
  }
  // One becomes a suspect, and is too far ahead in its own lane; the other sender's is in that of all.
  yield await store.accept(event(610));
  yield await lease('back-4', { max: 50, leaseMs: 1000 });
  pass(2000);
  yield await lease('back-5', { max: 50, leaseMs: 1000 });
  for (const n of many.slice(0, 8)) yield await store.accept(event(n + 511, { sender: OTHER }));
  pass(-7_200_000);
  for (const n of many.slice(0, 12)) yield await lease(`back-${n}`);
  yield await lease('back-9', { alone: true });
  pass(14_400_000);
  for (const n of many) yield await store.accept(event(n + 400, { sender: OTHER }));
  yield* registered(store, pass);
}

/** In an order that says nothing of the store's. */
async function counted({ inbox }: Both): Promise<unknown> {
  const counts = (await inbox.counts?.()) ?? [];
  return counts.toSorted((a, b) => (`${a.sender} ${a.state}` < `${b.sender} ${b.state}` ? -1 : 1));
}

/** The same for registrations. */
async function* registered({ registrations }: Both, pass: (ms: number) => void): AsyncGenerator {
  const save = (row: Partial<RegistrationRow>, dueIn?: number): Promise<void> =>
    registrations.run(row.sender ?? ONE, (rows, now) => {
      const { kind = 'watch', sender = ONE, id = named(1), list = null } = row;
      const dueAt = dueIn === undefined ? null : now + dueIn;
      rows.save({ kind, sender, id, value: `${kind} ${sender} ${id}`, dueAt, list, expiresAt: null });
    });
  const due = (kind: RegistrationKind, max = 9): Promise<unknown> =>
    registrations.due({ kind, max, holdMs: 4000, senders: [] });
  // Names are alike, whatever is named and of whichever sender.
  for (const kind of ['watch', 'operation'] as const) {
    for (const sender of [ONE, OTHER]) {
      for (const n of sender === ONE ? [1, 2, 3, 4] : [1, 2, 3])
        yield await save({ kind, sender, id: named(n), list: `list ${n % 2}` }, n * 1000);
    }
  }
  for (const kind of ['watch', 'operation'] as const) {
    for (const of of [{}, { sender: ONE }, { sender: OTHER }, { list: 'list 1' }, { sender: '' }]) {
      for (let after: string | undefined; ;) {
        const page = await registrations.page({
          kind,
          limit: 2,
          ...of,
          ...(after !== undefined && { after }),
        });
        yield page;
        if (page.next === undefined) break;
        after = page.next;
      }
    }
    yield await due(kind);
  }
  pass(2500);
  for (const max of [1, 1, 9]) yield await due('watch', max);
  for (const of of [ONE, OTHER]) {
    yield await registrations.run(of, (rows) => [rows.get('watch', named(1)), rows.get('route', named(1))]);
  }
  yield await due('operation');
  pass(10_000);
  yield await due('operation');
  // The first sender has none that is due, of this kind or of one behind it: it takes nobody's place.
  yield await save({ kind: 'stream', sender: ONE, id: named(1) }, 5_000_000);
  yield await save({ kind: 'subscription', sender: ONE, id: named(1) }, 0);
  yield await save({ kind: 'stream', sender: OTHER, id: named(2) }, 0);
  pass(1);
  for (let asked = 0; asked < 3; asked += 1) yield await due('stream', 1);
  // Nothing of this kind is due at any time.
  yield await due('route');
}

/** An answer, and what was kept after it. */
interface Lived {
  readonly answer: unknown;
  readonly kept: unknown;
}

async function* livedOnSqlite(mutant?: Mutant): AsyncGenerator<Lived> {
  let offsetMs = 0;
  const db = new DatabaseSync(':memory:');
  const prepare = (sql: string): ReturnType<DatabaseSync['prepare']> =>
    db.prepare(sql === mutant?.sql ? mutant.without : sql);
  const store = sqliteStore(
    { exec: (sql) => db.exec(sql), prepare, close: () => db.close() },
    { clockOffsetMs: () => offsetMs },
  );
  const kept = `SELECT (SELECT group_concat(id || kind || scope || name || data) FROM webhook_row) AS rows,
    (SELECT group_concat(id || ' ' || rows || ' ' || bytes || ' ' || nonces) FROM webhook_scope) AS counts`;
  await store.open();
  try {
    for await (const answer of live(store, (ms) => (offsetMs += ms))) {
      yield { answer, kept: db.prepare(kept).get() };
      if (mutant) continue;
      const { noted, counted } = countsOf(db);
      expect(noted).toEqual(counted);
    }
  } finally {
    db.close();
  }
}

async function answersOfMemory(): Promise<readonly unknown[]> {
  let offsetMs = 0;
  const store = memoryStore({ clockOffsetMs: () => offsetMs }) as Both;
  const answers: unknown[] = [];
  for await (const answer of live(store, (ms) => (offsetMs += ms))) answers.push(answer);
  return answers;
}

/** Whether it is noticed: at the latest by the last answer. */
async function isMissed(mutant: Mutant, whole: readonly Lived[]): Promise<boolean> {
  let at = 0;
  try {
    for await (const lived of livedOnSqlite(mutant)) {
      if (!isDeepStrictEqual(lived, whole[at])) return true;
      at += 1;
    }
  } catch {
    return true;
  }
  return at !== whole.length;
}

describe('SQL statements of the store', async () => {
  const mutants = (await statements()).flatMap(mutantsOf);
  const whole: Lived[] = [];
  beforeAll(async () => {
    for await (const lived of livedOnSqlite()) whole.push(lived);
  });

  it('give the answers of the memory store', async () => {
    expect(whole.map(({ answer }) => answer)).toEqual(await answersOfMemory());
    expect(mutants.length).toBeGreaterThan(30);
  });

  it('give the same answers and rows when run again', async () => {
    expect(await isMissed({ sql: '', condition: '', without: '' }, whole)).toBe(false);
  });

  it.each(mutants)('give other answers without $condition: $sql', async (mutant) => {
    expect(await isMissed(mutant, whole)).toBe(true);
  });
});
