import { createPool } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { signDelivery, type SignedDelivery } from '../../src/sender/sign.ts';
import { type MysqlConnection, type MysqlPool, mysqlStore } from '../../src/stores/mysql.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import { sellerKey, URL_GIVEN } from '../receiver/setup.ts';
import { type Process, type ProcessOptions, processOf, receiverOf, sweep } from './crash-points-kit.ts';
import { type Life, lifeUntil, mortal } from './crash-points-life.ts';
import { BACKENDS, type Backend } from './processes/backends.ts';
import { judge, KEPT, type Verdict } from './processes/judge.ts';
import type { Line } from './processes/ledger.ts';

/** The store's own clock runs on: this is added to it where a lease has to be over. Ms. */
const LEASE_PASSES_MS = 8_001;

let backend: Backend;
let offsetMs = 0;
const outside: Line[] = [];

beforeAll(async () => {
  backend = await BACKENDS.MySQL(inject('shared'));
});
afterAll(async () => {
  await backend.remove();
});

/** `webhook_commit` for a call of that procedure; else the statement's first word. */
const nameOf = (sql: string): string => /^(?:CALL .*?(?=webhook_))?(\w+)/.exec(sql)?.[1] ?? sql;

/**
 * A pool on which the process can die before a statement is sent, and when the server has run it and its answer has not
 * been read. The server then sees its connections close, and rolls back what is open.
 */
function mortalPool(
  url: string,
  life: Life,
): { readonly pool: MysqlPool; readonly end: () => Promise<void> } {
  const pool = createPool({ uri: url, connectionLimit: 3 });
  const open = new Set<MysqlConnection>();
  life.atDeath(() => {
    open.forEach((connection) => connection.destroy());
    pool.end().catch(() => undefined);
  });
  const around = async <T>(sql: unknown, send: () => Promise<T>): Promise<T> => {
    const name = nameOf(String(sql));
    await life.point(`before ${name}`);
    const answer = await send();
    await life.point(`after ${name}`);
    return answer;
  };
  const ofMortal = {
    pool: { config: { connectionLimit: 3 } },
    getConnection: async (): Promise<MysqlConnection> => {
      if (life.isOver()) return new Promise(() => {});
      const connection = (await pool.getConnection()) as MysqlConnection;
      open.add(connection);
      return {
        query: (sql, values) => around(sql, () => connection.query(sql, values)),
        execute: (sql, values) =>
          around((sql as unknown as { sql?: string }).sql ?? sql, () => connection.execute(sql, values)),
        release: () => {
          open.delete(connection);
          connection.release();
        },
        destroy: () => {
          open.delete(connection);
          connection.destroy();
        },
      };
    },
  } as MysqlPool;
  return {
    pool: ofMortal,
    end: async () => {
      // A connection that the store has closed cannot be closed again.
      if (!life.isOver()) await pool.end().catch(() => undefined);
    },
  };
}

async function start(options: ProcessOptions = {}): Promise<Process> {
  const life = lifeUntil(options.diesAt ?? Infinity);
  const { place } = backend;
  if (place.kind !== 'MySQL') throw new Error(place.kind);
  const { pool, end } = mortalPool(place.url, life);
  const store = mortal(mysqlStore({ pool, clockOffsetMs: () => offsetMs, random: () => 0 }), life);
  const receiver = await receiverOf(options, {
    life,
    store,
    outside,
    write: async (tx, key) => {
      await life.point('before the write');
      await (tx as MysqlConnection).query('INSERT INTO effect (event, copy) VALUES (?, ?)', [key, '']);
      await life.point('after the write');
    },
  });
  await receiver.ready();
  life.begin();
  const one = processOf(receiver, life);
  return {
    ...one,
    end: async () => {
      await one.end();
      await end();
    },
  };
}

let sweeps = 0;

async function sign(key: string): Promise<SignedDelivery> {
  const body = { ...samplePayloads().tool('completed'), task_id: key, idempotency_key: key };
  const { privateJwk } = await sellerKey();
  return signDelivery({ url: URL_GIVEN, key: privateJwk, body });
}

const completionsOf = async (key: string): Promise<number> =>
  (await backend.completions()).filter((one) => one.key === key).length;

async function verdict(key: string): Promise<Verdict> {
  const of = <T extends { readonly key: string }>(rows: readonly T[]): readonly T[] =>
    rows.filter((row) => row.key === key);
  return judge({
    owed: [{ name: key, keys: [key] }],
    completions: of(await backend.completions()),
    ledger: of(outside as readonly (Line & { readonly key: string })[]),
    effects: of(await backend.effects()),
  });
}

/** Plays a life that dies at each point in turn, with a key of its own for each. */
function swept(
  options: ProcessOptions,
  play: (mortalProcess: Process, key: string, where: string) => Promise<void>,
): Promise<readonly string[]> {
  sweeps += 1;
  const of = sweeps;
  return sweep({ start }, options, (one, key, where) => play(one, `${key}-${of}`, where));
}

/** The lease of the dead process has run out; another one is there, or a new one. */
async function heirOf({ mode, effect }: ProcessOptions): Promise<Process> {
  offsetMs += LEASE_PASSES_MS;
  return start({ ...(mode && { mode }), ...(effect && { effect }) });
}

async function tellHeir(options: ProcessOptions, delivery: SignedDelivery): Promise<number | undefined> {
  const heir = await heirOf(options);
  const status = await heir.tell(delivery);
  await heir.end();
  return status;
}

/** Works until the event is done; it may be already. */
async function workOff(worker: Process, key: string): Promise<void> {
  const done = worker.life.reached(/^after (?:complete|transaction)$/);
  if ((await completionsOf(key)) === 0) {
    await worker.receiver.start();
    await done;
  }
  await worker.end();
}

const EFFECTS = ['outside', 'transaction'] as const;

describe('MySQL, inline: the process dies at every point between arrival and reply, and the sender retries', () => {
  it.each(EFFECTS)('effect %s, a fresh delivery: completed once, 200', async (effect) => {
    const points = await swept({ effect }, async (one, key, where) => {
      const status = await one.tell(await sign(key));
      expect(status, where).toBe(one.life.isOver() ? undefined : 200);
      expect(await tellHeir({ effect }, await sign(key)), where).toBe(200);
      expect(await verdict(key), where).toEqual(KEPT);
    });
    if (effect === 'transaction')
      expect(points).toEqual(
        expect.arrayContaining(['after the write', 'after webhook_commit', 'before COMMIT', 'after COMMIT']),
      );
  });

  it('the handler fails: 503, then completed once, 200', async () => {
    const options = { effect: 'transaction', fails: true } as const;
    const points = await swept(options, async (one, key, where) => {
      const status = await one.tell(await sign(key));
      expect(status, where).toBe(one.life.isOver() ? undefined : 503);
      expect(await completionsOf(key), where).toBe(0);
      expect(await tellHeir({ effect: 'transaction' }, await sign(key)), where).toBe(200);
      expect(await verdict(key), where).toEqual(KEPT);
    });
    expect(points).toEqual(expect.arrayContaining(['after ROLLBACK', 'before fail', 'after fail']));
  });

  it('the same bytes: 200, or 401 replayed once the event is done', async () => {
    const commitsIn = (points: readonly string[]): number =>
      points.filter((point) => point === 'after COMMIT').length;
    const lives: { readonly status: number | undefined; readonly commits: number }[] = [];
    const points = await swept({ effect: 'transaction' }, async (one, key, where) => {
      const delivery = await sign(key);
      await one.tell(delivery);
      const wasDone = (await completionsOf(key)) === 1;
      const status = await tellHeir({ effect: 'transaction' }, delivery);
      expect(status, where).toBe(wasDone ? 401 : 200);
      lives.push({ status, commits: commitsIn(one.life.passed) });
      expect(await verdict(key), where).toEqual(KEPT);
    });
    // The line between the two is the last COMMIT, whose answer nobody needs to have read. Where it comes among the points differs from
    // life to life: other statements of the store come between them.
    const all = commitsIn(points);
    expect(new Set(lives.map(({ commits }) => commits === all))).toEqual(new Set([true, false]));
    for (const { status, commits } of lives) expect(status).toBe(commits === all ? 401 : 200);
  });
});

describe('MySQL, inbox', () => {
  it('the receiver dies at every point between arrival and reply: 200, completed once', async () => {
    const points = await swept({ mode: 'inbox' }, async (one, key, where) => {
      const status = await one.tell(await sign(key));
      expect(status, where).toBe(one.life.isOver() ? undefined : 200);
      const heir = await heirOf({ mode: 'inbox' });
      expect(await heir.tell(await sign(key)), where).toBe(200);
      await workOff(heir, key);
      expect(await verdict(key), where).toEqual(KEPT);
    });
    expect(points).toEqual(
      expect.arrayContaining(['before accept', 'after webhook_commit', 'before the reply']),
    );
  });

  it.each(EFFECTS)('effect %s, the worker dies at every point: completed once', async (effect) => {
    const options = { mode: 'inbox', effect } as const;
    const points = await swept(options, async (one, key, where) => {
      const door = await start({ mode: 'inbox' });
      expect(await door.tell(await sign(key))).toBe(200);
      await door.end();
      const done = one.life.reached(/^after (?:complete|transaction)$/);
      void one.receiver.start();
      await Promise.race([one.life.died, done]);
      await one.end();
      await workOff(await heirOf(options), key);
      expect(await verdict(key), where).toEqual(KEPT);
    });
    const end = effect === 'outside' ? 'complete' : 'transaction';
    expect(points).toEqual(
      expect.arrayContaining(['before lease', 'after lease', 'before the effect', `before ${end}`]),
    );
  });
});
