import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Scope } from '../../../src/stores/index.ts';
import {
  attemptOf,
  type Batch,
  countBook,
  createBatches,
  type Entry,
  nameOf,
  newEntry,
  type Queued,
  rememberedRows,
  scopeName,
  storeClock,
} from '../../../src/stores/for-tests.ts';

const SENDER = 'https://seller.example/mcp';

function entry(kind: 'record' | 'task' | 'nonce' | 'notification', id: string, state = 'leased'): Entry {
  const of = { scope: { sender: SENDER }, kind, id };
  return newEntry(of, nameOf(of), 1, { state } as unknown as Entry['stored'], true);
}

describe('rememberedRows', () => {
  it('keeps of events only tasks and live leases, which this process writes next', () => {
    const rows = rememberedRows();
    const [task, record, nonce] = [entry('task', 't'), entry('record', 'r'), entry('nonce', 'n')];
    for (const one of [task, record, nonce]) rows.put(one);
    expect([task, record, nonce].map(({ id }) => rows.get(nameOf(id)) !== undefined)).toEqual([
      true,
      true,
      false,
    ]);
    rows.put(entry('record', 'r', 'applied'));
    expect(rows.get(nameOf(record.id))).toBeUndefined();
    rows.forget(nameOf(task.id));
    expect(rows.get(nameOf(task.id))).toBeUndefined();
  });

  it('keeps rows of registrations whose value is short, and that a task is absent', () => {
    const rows = rememberedRows();
    const written = (id: string, value: string): Entry => {
      const of = { scope: { sender: SENDER }, kind: 'watch' as const, id };
      return newEntry(of, nameOf(of), 1, { value } as unknown as Entry['stored'], true);
    };
    const [short, long] = [written('short', 'x'.repeat(2048)), written('long', 'x'.repeat(2049))];
    const absent = newEntry(entry('task', 't').id, nameOf(entry('task', 't').id), undefined, undefined, true);
    for (const one of [short, long, absent]) rows.put(one);
    expect(rows.get(short.name)).toEqual({ version: 1, stored: short.stored });
    expect(rows.get(long.name)).toBeUndefined();
    expect(rows.get(absent.name)).toEqual({ version: undefined, stored: undefined });
  });

  it('forgets the rows that were written longest ago', () => {
    const rows = rememberedRows();
    for (let n = 0; n < 10_000; n += 1) {
      rows.put(entry('task', `${n}`));
      rows.put(entry('task', 'often'));
    }
    const isKnown = (id: string): boolean => rows.get(nameOf(entry('task', id).id)) !== undefined;
    expect(['0', '9999', 'often'].map(isKnown)).toEqual([false, true, true]);
  });
});

describe('countBook', () => {
  const scope = (n: number): Scope => ({ sender: `https://${n}.example/mcp` });
  const told = (from: number, many: number) => ({
    now: 0,
    rows: [],
    counts: Array.from({ length: many }, (_, n) => ({ scope: scope(from + n), rows: n, bytes: 0 })),
    nonces: 7,
  });

  it('keeps a bounded number of counts', () => {
    const book = countBook();
    for (let n = 0; n < 20_000; n += 128) book.put(told(n, 128));
    const known = Array.from({ length: 20_200 }, (_, n) => book.get(scopeName(scope(n)))).filter(Boolean);
    expect(known).toHaveLength(8192);
    expect(book.get(scopeName(scope(20_000)))).toBeDefined();
    expect(book.nonces()).toBe(7);
  });

  it('asks for a count with the next commit when it is over a second old', () => {
    const clock = vi.spyOn(performance, 'now');
    const at = (ms: number): readonly Scope[] => {
      clock.mockReturnValue(ms);
      const batch: Batch = {
        entries: new Map(),
        remembered: () => undefined,
        counts: () => ({ scope: scope(1), rows: 0, bytes: 0, seenAt: 5000 }),
        nonces: () => 0,
        fresh: new Set(),
        old: new Map(),
        swept: new Set(),
        sweptAt: () => undefined,
        processes: new Map(),
      };
      const job = { plan: () => 0, isBarrier: () => false, guessesAbsent: true, tries: 0 };
      attemptOf(batch, job).rows.usage(scope(1).sender, undefined);
      return [...batch.old.values()];
    };
    expect(at(6000)).toEqual([]);
    expect(at(6001)).toEqual([scope(1)]);
    clock.mockRestore();
  });
});

describe('storeClock', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('continues from the store’s last time with the current offset', () => {
    let offset = 500;
    const own = vi.spyOn(performance, 'now').mockReturnValue(10);
    const clock = storeClock(() => offset);
    clock.seen(1_000_500, 10);
    own.mockReturnValue(1510.9);
    expect(clock.now()).toBe(1_002_000);
    offset = 9500;
    expect(clock.now()).toBe(1_011_000);
    // A store whose clock was set back is followed.
    clock.seen(900_000, 1510);
    expect(clock.now()).toBe(900_000);
  });
});

describe('createBatches', () => {
  beforeEach(() => {
    vi.spyOn(performance, 'now').mockImplementation(() => at);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
  let at = 0;

  const job = (sender: string, of: Partial<Queued> = {}): Queued => ({
    plan: () => undefined,
    isBarrier: () => false,
    guessesAbsent: false,
    tries: 0,
    resolve: () => {},
    reject: () => {},
    sender,
    bytes: 0,
    since: 0,
    ...of,
  });
  /** Batches that were begun, each held until it is let go. */
  function held(of: { readonly lanes: number; readonly bySender?: boolean }) {
    const batches: { readonly jobs: readonly Queued[]; readonly end: () => void }[] = [];
    const run = (jobs: readonly Queued[]): Promise<void> =>
      new Promise((resolve) => {
        batches.push({ jobs, end: resolve });
      });
    return { batches, turns: createBatches({ run, bySender: false, timeoutMs: 3000, ...of }) };
  }
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it('puts calls of one event-loop turn into one batch, and those that come while all lanes are busy', async () => {
    const { batches, turns } = held({ lanes: 1 });
    for (let n = 0; n < 3; n += 1) turns.add(job('a'));
    await turn();
    for (let n = 0; n < 70; n += 1) turns.add(job('a'));
    await turn();
    expect(batches.map(({ jobs }) => jobs.length)).toEqual([3]);
    for (const n of [0, 1, 2]) {
      batches[n]?.end();
      await turn();
      await turn();
    }
    expect(batches.map(({ jobs }) => jobs.length)).toEqual([3, 64, 6]);
    await turns.idle();
  });

  it('divides many waiting calls among the lanes, but not a few', async () => {
    const { batches, turns } = held({ lanes: 4 });
    for (let n = 0; n < 100; n += 1) turns.add(job('a'));
    await turn();
    expect(batches.map(({ jobs }) => jobs.length)).toEqual([25, 25, 25, 25]);
    const few = held({ lanes: 4 });
    for (let n = 0; n < 20; n += 1) few.turns.add(job('a'));
    await turn();
    expect(few.batches.map(({ jobs }) => jobs.length)).toEqual([16, 4]);
  });

  it('bounds a batch by its bodies and sends a larger one alone', async () => {
    const { batches, turns } = held({ lanes: 9 });
    for (const megabytes of [3, 1, 1, 9, 1]) turns.add(job('a', { bytes: megabytes * 1_048_576 }));
    await turn();
    expect(batches.map(({ jobs }) => jobs.length)).toEqual([2, 1, 1, 1]);
  });

  it('has one large call under way at a time, and those that wait behind the next one pass it', async () => {
    const { batches, turns } = held({ lanes: 2 });
    for (const megabytes of [9, 8, 0, 0]) turns.add(job('a', { bytes: megabytes * 1_048_576 }));
    await turn();
    const begun = (): number[][] => batches.map(({ jobs }) => jobs.map(({ bytes }) => bytes / 1_048_576));
    expect(begun()).toEqual([[9], [0, 0]]);
    batches[1]?.end();
    turns.add(job('a'));
    await turn();
    await turn();
    expect(begun()).toEqual([[9], [0, 0], [0]]);
    batches[0]?.end();
    await turn();
    await turn();
    expect(begun()).toEqual([[9], [0, 0], [0], [8]]);
    for (const { end } of batches.slice(2)) end();
    await turns.idle();
  });

  it('lets other senders pass one that waits when each has its own lanes', async () => {
    const { batches, turns } = held({ lanes: 1, bySender: true });
    turns.add(job('a'));
    await turn();
    turns.add(job('a'));
    turns.add(job('b'));
    await turn();
    expect(batches.map(({ jobs }) => jobs.map(({ sender }) => sender).join())).toEqual(['a', 'b']);
  });

  it('fails the call that has waited too long and serves the others', async () => {
    const { batches, turns } = held({ lanes: 1 });
    const said: string[] = [];
    const reject = (error: unknown): void => void said.push(String(error));
    turns.add(job('a'));
    await turn();
    turns.add(job('a', { since: 0, reject }));
    turns.add(job('a', { since: 2000, reject }));
    at = 3001;
    batches[0]?.end();
    await turn();
    await turn();
    expect(said).toEqual([expect.stringContaining('did not begin the call within 3000 ms')]);
    expect(batches[1]?.jobs.map(({ since }) => since)).toEqual([2000]);
    batches[1]?.end();
    await turns.idle();
    at = 0;
  });

  it('refuses to queue more than 10,000 calls', async () => {
    const { turns } = held({ lanes: 1 });
    let refused = 0;
    const reject = (): void => void (refused += 1);
    for (let n = 0; n < 10_001; n += 1) turns.add(job('a', { reject }));
    expect(refused).toBe(1);
  });
});
