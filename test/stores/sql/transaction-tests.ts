import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError, type Store } from '../../../src/index.ts';
import type { CompleteRequest } from '../../../src/stores/index.ts';
import { acceptRequest, LEASE_MS, leaseOf, RETENTION_MS } from '../requests.ts';

/** What both clients of `ctx.transaction` have. */
interface SqlClient {
  query(text: string): Promise<unknown>;
  release(): void;
}

type SqlStore<Client> = Store<Client> & Required<Pick<Store<Client>, 'transaction'>>;

/** One SQL database, as the tests of `ctx.transaction` need it. */
export interface TransactionDatabase<Client extends SqlClient, Pool> {
  /** Its tables and pools: `TestSchema` or `TestDatabase`, filled before the first test. */
  readonly at: {
    readonly pools: readonly [Pool, Pool];
    readonly sql: (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;
    readonly store: (pool?: Pool, more?: { readonly idleInTransactionMs?: number }) => SqlStore<Client>;
    readonly clear: () => Promise<void>;
  };
  readonly newPool: (connections: number) => Pool & { end(): Promise<void> };
  /** A table of the test, as a statement in a transaction has to name it. */
  readonly table: (name: string) => string;
  /** Writes into the table `note`. */
  readonly write: (tx: Client, line?: string) => Promise<unknown>;
  /** Gives every record's lease to another owner. */
  readonly takeOver: string;
  /** Statements that end the transaction, and what a function that runs one is told. */
  readonly endings: readonly string[];
  readonly endingMessage: RegExp;
  /** Ends the connection of the transaction, as the server does. */
  readonly kill: (tx: Client) => Promise<void>;
  readonly brokenConnection: RegExp;
  /** Fails while a transaction of the pool is open. */
  readonly expectNoneOpen: (pool: Pool) => Promise<void>;
  /** Too long for `idleInTransactionMs`, and about the shortest that the server can keep. */
  readonly idleTooLongMs: number;
  readonly idleShortestMs: number;
}

export interface TransactionKit<Client> {
  /** Opened before the first test, closed after the last; every table is empty at the start of each. */
  readonly store: SqlStore<Client>;
  /** What transactions have written. */
  readonly notes: () => Promise<unknown[]>;
  /** The lease of an event that was just accepted. */
  readonly leased: (
    draft?: Parameters<typeof acceptRequest>[0],
    leaseMs?: number,
  ) => Promise<CompleteRequest>;
}

/** The tests of `ctx.transaction` that hold for each SQL database; what they use is given for tests of one of them. */
export function describeTransactions<Client extends SqlClient, Pool>(
  name: string,
  database: TransactionDatabase<Client, Pool>,
): TransactionKit<Client> {
  const { at, newPool, table, write, kill } = database;
  let store: SqlStore<Client>;
  beforeAll(async () => {
    store = at.store();
    await store.open();
  });
  beforeEach(() => at.clear());
  afterAll(() => store.close());

  const notes: TransactionKit<Client>['notes'] = async () =>
    (await at.sql('SELECT line FROM note ORDER BY line')).map(({ line }) => line);

  const leased: TransactionKit<Client>['leased'] = async (draft = {}, leaseMs = LEASE_MS) => {
    const request = { ...acceptRequest(draft), leaseMs };
    expect((await store.accept(request)).kind).toBe('won');
    return { ...leaseOf(request), retentionMs: RETENTION_MS };
  };

  describe(`ctx.transaction on ${name}`, () => {
    it('may run longer than its lease while the lease is renewed', async () => {
      const lease = await leased({}, 1000);
      await store.transaction(lease, async (tx) => {
        await write(tx);
        expect(await store.renew({ ...lease, leaseMs: 60_000 })).toBe('renewed');
        expect(await store.peek(lease.sender, lease.key)).toBe('busy');
        expect((await store.accept(acceptRequest())).kind).toBe('in-flight');
      });
      expect(await notes()).toEqual(['by the handler']);
      expect(await store.peek(lease.sender, lease.key)).toBe('applied');
    });

    it('fails with lease_lost and rolls back when another owner has taken the lease', async () => {
      const lease = await leased({}, 1);
      const other = { ...acceptRequest(), leaseMs: LEASE_MS };
      // A quick machine is there before the millisecond of the first lease is over.
      await expect.poll(async () => (await store.accept(other)).kind).toBe('won');
      const first = { ...leaseOf(other), retentionMs: RETENTION_MS };
      const running = store.transaction({ ...lease }, async (tx) => write(tx));
      await expect(running).rejects.toMatchObject({ code: 'lease_lost' });
      const late = store.transaction(first, async (tx) => {
        await write(tx);
        await at.sql(database.takeOver);
      });
      await expect(late).rejects.toMatchObject({ code: 'lease_lost' });
      expect(await notes()).toEqual([]);
    });

    it('fails with lease_lost and rolls back when the same owner has completed the event meanwhile', async () => {
      const lease = await leased();
      const twice = store.transaction(lease, async (tx) => {
        await write(tx);
        expect(await store.complete(lease)).toBe('done');
      });
      await expect(twice).rejects.toMatchObject({ code: 'lease_lost' });
      expect(await notes()).toEqual([]);
    });

    it.each(database.endings)(
      'fails with ConfigError and completes nothing when the function runs %s',
      async (statement) => {
        const lease = await leased();
        const running = store.transaction(lease, async (tx) => {
          await write(tx);
          await tx.query(statement);
        });
        await expect(running).rejects.toBeInstanceOf(ConfigError);
        await expect(running).rejects.toThrow(database.endingMessage);
        expect(await store.peek(lease.sender, lease.key)).toBe('busy');
      },
    );

    it('throws the function’s own error and writes nothing when the connection breaks in the function', async () => {
      const lease = await leased();
      const running = store.transaction(lease, async (tx) => {
        await write(tx);
        await kill(tx);
        await write(tx, 'second');
      });
      await expect(running).rejects.toThrow(database.brokenConnection);
      expect(await notes()).toEqual([]);
      await store.transaction(lease, (tx) => write(tx, 'again'));
      expect(await notes()).toEqual(['again']);
    });

    it('fails with store_unavailable and writes nothing when the connection breaks before COMMIT', async () => {
      const lease = await leased();
      const running = store.transaction(lease, async (tx) => {
        await write(tx);
        await kill(tx);
      });
      await expect(running).rejects.toMatchObject({ code: 'store_unavailable' });
      expect(await store.peek(lease.sender, lease.key)).toBe('busy');
      expect(await notes()).toEqual([]);
    });

    it('leaves one connection of the pool to the store’s own calls', async () => {
      const pool = newPool(3);
      const small = at.store(pool);
      await small.open();
      const leases = await Promise.all(
        [1, 2, 3, 4, 5].map((n) => leased({ key: `event-${n}-of-the-seller` })),
      );
      let running = 0;
      let most = 0;
      let meet = (): void => {};
      const met = new Promise<void>((resolve) => {
        meet = resolve;
      });
      const work = leases.map((lease) =>
        small.transaction(lease, async (tx) => {
          running += 1;
          most = Math.max(most, running);
          if (running === 2) meet();
          await met;
          expect(await small.renew({ ...lease, leaseMs: 60_000 })).toBe('renewed');
          await write(tx);
          running -= 1;
        }),
      );
      await Promise.all(work);
      expect(most).toBe(2);
      expect(await notes()).toHaveLength(5);
      await small.close();
      await pool.end();
    });

    it('is waited for by close()', async () => {
      const other = at.store(at.pools[1]);
      await other.open();
      const lease = await leased();
      const running = other.transaction(lease, (tx) => write(tx));
      await other.close();
      expect(await notes()).toEqual(['by the handler']);
      await running;
    });

    it('closes the connection of a function that never ends when its signal aborts, and serves the next one', async () => {
      const pool = newPool(2);
      const small = at.store(pool);
      await small.open();
      const [stuck, next] = [await leased(), await leased({ key: 'event-2-of-the-seller' })];
      const over = new AbortController();
      let kept: Client | undefined;
      const running = small.transaction(
        stuck,
        async (tx) => {
          kept = tx;
          await write(tx);
          await new Promise(() => {});
        },
        over.signal,
      );
      await expect.poll(() => kept).toBeDefined();
      const given = new AbortController();
      const waiting = small.transaction(next, (tx) => write(tx, 'given up'), given.signal);
      given.abort(new Error('waited too long'));
      await expect(waiting).rejects.toThrow('waited too long');
      const patient = small.transaction(next, (tx) => write(tx, 'the next one'));
      over.abort(new Error('the run is over'));
      await expect(running).rejects.toThrow('the run is over');
      await patient;
      // What it writes afterwards is in no other transaction.
      await expect(kept && write(kept, 'late')).rejects.toThrow();
      expect(await notes()).toEqual(['the next one']);
      await small.close();
      await database.expectNoneOpen(pool);
      await pool.end();
    });
  });

  describe('a client that is used after its transaction', () => {
    it.each([
      ['committed', undefined],
      ['was rolled back', 'the function failed'],
    ])(
      'is refused with transaction_over when it %s, and writes into no other transaction',
      async (_, fails) => {
        const pool = newPool(2);
        const small = at.store(pool);
        await small.open();
        const [first, second] = [await leased(), await leased({ key: 'event-2-of-the-seller' })];
        const told: Error[] = [];
        let kept: Client | undefined;
        const ending = small.transaction({ ...first, onLateUse: (error) => told.push(error) }, async (tx) => {
          kept = tx;
          await write(tx, 'the first');
          if (fails !== undefined) throw new Error(fails);
        });
        await (fails === undefined ? ending : expect(ending).rejects.toThrow(fails));
        // The pool gives the same connection again.
        await small.transaction(second, async (tx) => {
          await expect(kept && write(kept, 'late')).rejects.toMatchObject({ code: 'transaction_over' });
          await write(tx, 'the second');
        });
        expect(await notes()).toEqual(fails === undefined ? ['the first', 'the second'] : ['the second']);
        expect(told).toMatchObject([{ code: 'transaction_over' }]);
        const called = await new Promise((resolve) => {
          const calling = kept as unknown as { query(text: string, done: (error: unknown) => void): void };
          calling.query('SELECT 1', resolve);
        });
        expect(called).toMatchObject({ code: 'transaction_over' });
        expect(() => kept?.release()).toThrow(/after the transaction had ended/);
        await small.close();
        await pool.end();
      },
    );

    it('may not be released by the function: the transaction fails and writes nothing', async () => {
      const lease = await leased();
      const running = store.transaction(lease, async (tx) => {
        await write(tx);
        tx.release();
      });
      await expect(running).rejects.toThrow(/released its client/);
      expect(await notes()).toEqual([]);
    });
  });

  describe('idleInTransactionMs', () => {
    it.each([-1, 1.5, database.idleTooLongMs])('of %s is a ConfigError', (idleInTransactionMs) => {
      expect(() => at.store(at.pools[0], { idleInTransactionMs })).toThrow(ConfigError);
    });

    it('rolls the transaction back and frees its rows when it is over', async () => {
      await at.sql('CREATE TABLE held (n integer); INSERT INTO held VALUES (0)');
      const short = at.store(at.pools[1], { idleInTransactionMs: database.idleShortestMs });
      await short.open();
      const lease = await leased();
      // Again where the machine was so slow that the transaction had ended before it held the row.
      const held: string[] = [];
      while (held.length === 0) {
        const running = short.transaction(lease, async (tx) => {
          await tx.query(`UPDATE ${table('held')} SET n = n + 1`);
          held.push('the row');
          // Waits for the row until the server has ended the transaction that holds it.
          await at.sql('UPDATE held SET n = n + 10');
        });
        await expect(running).rejects.toMatchObject({ code: 'store_unavailable' });
      }
      expect(await at.sql('SELECT n FROM held')).toEqual([{ n: 10 }]);
      expect(await short.complete(lease)).toBe('done');
      await short.close();
    });
  });

  return {
    get store() {
      return store;
    },
    notes,
    leased,
  };
}
