import { DatabaseSync } from 'node:sqlite';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HandlerContext } from '../../src/index.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { acceptRequest } from '../stores/requests.ts';
import { gate, testReceiver, payloads, said } from './setup.ts';

let folder = '';
let file = '';
let db: DatabaseSync;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proto-webhooks-transaction-'));
  file = join(folder, 'buyer.db');
  db = new DatabaseSync(file);
  db.exec('CREATE TABLE effects (id TEXT)');
});

afterEach(async () => {
  db.close();
  await rm(folder, { recursive: true, force: true });
});

const effects = (): number => Number(db.prepare('SELECT count(*) AS n FROM effects').get()?.['n']);
const write =
  (id: string) =>
  (tx: unknown): void => {
    (tx as DatabaseSync).prepare('INSERT INTO effects VALUES (?)').run(id);
  };
const open = (handler: (ctx: HandlerContext) => unknown, more = {}) =>
  testReceiver({ store: sqliteStore(db), handler: (_, ctx) => handler(ctx), ...more });

describe('ctx.transaction on SQLite: the writes and the completion commit together or not at all', () => {
  it('commits once, and the event is done', async () => {
    const { deliver, receiver } = await open(async (ctx) => {
      expect(await ctx.transaction((tx) => (write('a')(tx), 7))).toBe(7);
    });
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('accepted 200');
    expect(said(await deliver(payload))).toBe('duplicate 200');
    expect(effects()).toBe(1);
    await receiver.stop();
  });

  it('completes the event when the handler throws after its transaction committed: 200, and the error is logged', async () => {
    const afterthought = new Error('afterthought');
    const errors: unknown[] = [];
    const error = (...line: readonly unknown[]): void => void errors.push(line);
    const { deliver, seen } = await open(
      async (ctx) => {
        await ctx.transaction(write('a'));
        throw afterthought;
      },
      { logger: { ...SILENT_LOGGER, error } },
    );
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('accepted 200');
    expect(said(await deliver(payload))).toBe('duplicate 200');
    expect(seen).toHaveLength(1);
    expect(effects()).toBe(1);
    expect(errors).toEqual([
      [
        expect.objectContaining({ err: afterthought }),
        'a handler threw after its transaction committed: the event is done',
      ],
    ]);
  });

  it('rolls back when the function throws, and the event runs again', async () => {
    let broken = true;
    const { deliver } = await open((ctx) =>
      ctx.transaction((tx) => {
        write('a')(tx);
        if (broken) throw new Error('constraint');
      }),
    );
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('unavailable handler_failed 503');
    expect(effects()).toBe(0);
    broken = false;
    expect(said(await deliver(payload))).toBe('accepted 200');
    expect(effects()).toBe(1);
  });

  it.each(['BEGIN', 'COMMIT'])(
    'charges no event for a %s that fails: 503 of the store, as often as it does',
    async (statement) => {
      let isBroken = false;
      const exec = db.exec.bind(db);
      const handle = new Proxy(db, {
        get: (target, name) => {
          const member: unknown = Reflect.get(target, name, target);
          if (name !== 'exec') return typeof member === 'function' ? member.bind(target) : member;
          return (sql: string): void => {
            if (isBroken && sql.startsWith(statement)) throw new Error('disk I/O error');
            exec(sql);
          };
        },
      });
      const seen: number[] = [];
      const { deliver, receiver } = await testReceiver({
        store: sqliteStore(handle),
        retry: { attempts: 2, baseMs: 500, maxMs: 500 },
        handler: async (_, ctx) => {
          seen.push(ctx.chargedAttempts);
          isBroken = seen.length < 4;
          try {
            await ctx.transaction(write('a'));
          } catch (error) {
            throw new Error('not written', { cause: error });
          } finally {
            isBroken = false;
          }
        },
      });
      const payload = payloads.tool('completed');
      const said503: string[] = [];
      for (let n = 0; n < 3; n += 1) {
        said503.push(said(await deliver(payload)));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      expect(said503).toEqual(Array.from({ length: 3 }, () => 'unavailable store_unavailable 503'));
      expect(said(await deliver(payload))).toBe('accepted 200');
      expect(seen).toEqual([1, 1, 1, 1]);
      await receiver.stop();
    },
  );

  it('charges the event whose writes the database refuses at COMMIT', async () => {
    db.exec('PRAGMA foreign_keys = ON');
    db.exec('CREATE TABLE orders (id INTEGER PRIMARY KEY)');
    db.exec('CREATE TABLE lines (of_order REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)');
    const { deliver, alarms } = await open(
      (ctx) => ctx.transaction((tx) => (tx as DatabaseSync).exec('INSERT INTO lines VALUES (7)')),
      { retry: { attempts: 1 } },
    );
    expect(await deliver(payloads.tool('completed'))).toMatchObject({ kind: 'accepted', state: 'dead' });
    expect(alarms.map(({ code }) => code)).toContain('dead');
  });

  it('rolls back a function that returns a promise, with a ConfigError', async () => {
    let message = '';
    const { deliver } = await open((ctx) =>
      ctx
        .transaction(async (tx) => write('a')(tx))
        .catch((error: unknown) => {
          message = String(error);
          throw error;
        }),
    );
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
    expect(message).toMatch(/ConfigError.*synchronous/);
    expect(effects()).toBe(0);
  });

  it('waits for a transaction that was not awaited', async () => {
    const { deliver } = await open((ctx) => {
      void ctx.transaction(write('a'));
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
    expect(effects()).toBe(1);
  });

  it('fails the run when a transaction that was not awaited failed', async () => {
    let broken = true;
    const { deliver } = await open((ctx) => {
      void ctx.transaction((tx) => {
        write('a')(tx);
        if (broken) throw new Error('constraint');
      });
    });
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('unavailable handler_failed 503');
    expect(effects()).toBe(0);
    broken = false;
    expect(said(await deliver(payload))).toBe('accepted 200');
    expect(effects()).toBe(1);
  });

  it('lets the handler catch the failure of an awaited transaction', async () => {
    const { deliver } = await open(async (ctx) => {
      await ctx
        .transaction(() => {
          throw new Error('constraint');
        })
        .catch(() => {});
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
  });

  it('rejects a second transaction after the first committed with a ConfigError', async () => {
    const { deliver } = await open(async (ctx) => {
      await ctx.transaction(write('a'));
      await ctx.transaction(write('b'));
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
    expect(effects()).toBe(1);
  });

  it('rejects one that begins while another runs, as it would wait for itself', async () => {
    const ends: unknown[] = [];
    const { deliver } = await open(async (ctx) => {
      ends.push(...(await Promise.allSettled([ctx.transaction(write('a')), ctx.transaction(write('b'))])));
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
    expect(ends).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: { code: 'config_error', message: expect.stringContaining('is open') } },
    ]);
    expect(effects()).toBe(1);
  });

  it('commits one after another that was rolled back', async () => {
    const { deliver } = await open(async (ctx) => {
      await expect(ctx.transaction(() => Promise.reject(new Error('mine')))).rejects.toThrow(/promise/);
      await ctx.transaction(write('b'));
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
    expect(effects()).toBe(1);
  });

  it('rejects one that begins after the handler settled: the event is settled without it', async () => {
    let ctx: HandlerContext | undefined;
    const { deliver } = await open((given) => {
      ctx = given;
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
    await expect(ctx?.transaction(write('late'))).rejects.toThrow(/has returned or thrown/);
    expect(effects()).toBe(0);
  });

  it('answers 200 to a handler past its deadline that has committed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    try {
      const { opened, open: release } = gate();
      const committed = gate();
      const { deliver } = await open(async (ctx) => {
        await ctx.transaction(write('a'));
        committed.open();
        await opened;
      });
      const outcome = deliver(payloads.tool('completed'));
      await committed.opened;
      await vi.advanceTimersByTimeAsync(8_000);
      expect(said(await outcome)).toBe('accepted 200');
      release();
    } finally {
      vi.useRealTimers();
    }
  });

  it('writes nothing for an owner that lost its lease', async () => {
    let offset = 0;
    const other = sqliteStore(file, { clockOffsetMs: () => offset });
    await other.open();
    const { deliver } = await testReceiver({
      store: sqliteStore(file, { clockOffsetMs: () => offset }),
      advanced: { renewMs: 7_999 },
      handler: async ({ idempotencyKey: key }, ctx) => {
        offset = 8_001;
        const again = acceptRequest({ key });
        const taken = await other.accept({ ...again, sender: ctx.sender });
        expect(taken.kind).toBe('won');
        await other.close();
        await ctx.transaction(write('a'));
      },
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable lease_lost 503');
    expect(effects()).toBe(0);
  });

  it('is a ConfigError on the memory store, which names the alternatives', async () => {
    let message = '';
    const { deliver } = await testReceiver({
      handler: (_, ctx) =>
        ctx
          .transaction(() => {})
          .catch((error: unknown) => {
            message = String(error);
            throw error;
          }),
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
    expect(message).toMatch(/^ConfigError.*SQLite, Postgres or MySQL/);
  });
});
