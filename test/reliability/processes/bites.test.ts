import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import { Client } from 'pg';
import { expect, inject, it } from 'vitest';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../../stores/requests.ts';
import { inThisForm } from '../form.ts';
import { BACKENDS } from './backends.ts';
import { judge, KEPT } from './judge.ts';
import { openStore, type Kind, type StoreLocation } from './stores.ts';

/** Writes what the driver says of a record once more, without the library. */
type Rewrite<K extends Kind> = (
  place: Extract<StoreLocation, { kind: K }>,
  event: string,
  change: (data: string) => string,
) => Promise<void>;

/** As a store would that does not compare the owner: it writes the row of an event that is applied already. */
const REWRITE: { readonly [K in Kind]: Rewrite<K> } = {
  SQLite: async ({ file }, event, change) => {
    const db = new DatabaseSync(file);
    const where = `kind = 'record' AND name = ?`;
    const row = db.prepare(`SELECT data FROM webhook_row WHERE ${where}`).get(event);
    db.prepare(`UPDATE webhook_row SET data = ? WHERE ${where}`).run(change(String(row?.['data'])), event);
    db.close();
  },
  Postgres: async ({ url, schema }, event, change) => {
    const client = new Client({ connectionString: url, options: `-c search_path=${schema}` });
    await client.connect();
    const where = `kind = 'r' AND id = $1`;
    const { rows } = await client.query(`SELECT data FROM webhook_row WHERE ${where}`, [event]);
    await client.query(`UPDATE webhook_row SET data = $2 WHERE ${where}`, [event, change(rows[0].data)]);
    await client.end();
  },
  MySQL: async ({ url }, event, change) => {
    const connection = await createConnection(url);
    const where = `kind = 'r' AND id = ?`;
    const [rows] = await connection.query(`SELECT data FROM webhook_row WHERE ${where}`, [event]);
    const [{ data }] = rows as [{ readonly data: Buffer }];
    await connection.query(`UPDATE webhook_row SET data = ? WHERE ${where}`, [
      change(data.toString()),
      event,
    ]);
    await connection.end();
  },
  Redis: async ({ port }, event, change) => {
    const client = new Redis({ host: '127.0.0.1', port });
    const [name = ''] = await client.keys(`*:r:${event}`);
    const [head = '', data = ''] = ((await client.get(name)) ?? '').split('\n');
    await client.set(name, `${head}\n${change(data)}`);
    await client.quit();
  },
};

const rewrite = (place: StoreLocation, ...more: [string, (data: string) => string]): Promise<void> =>
  (REWRITE[place.kind] as Rewrite<Kind>)(place, ...more);

const ofAnother = (data: string): string => JSON.stringify({ ...JSON.parse(data), owner: 'another' });

/** `npm test` has the one without a server. */
const KINDS = inThisForm(Object.keys(BACKENDS) as Kind[], (kind) => kind === 'SQLite');

it.each(KINDS)(
  'what the database notes of completions, %s: one where an applied record is written again, two where another owner completes it again',
  async (kind) => {
    const backend = await BACKENDS[kind](inject('shared'));
    const { store, end } = openStore(backend.place);
    try {
      await store.open();
      const names = [key(1), key(2), key(3)];
      for (const name of names) {
        const request = acceptRequest({ key: name });
        expect((await store.accept(request)).kind).toBe('won');
        expect(await store.complete({ ...leaseOf(request), retentionMs: RETENTION_MS })).toBe('done');
      }
      const verdict = async (): Promise<object> =>
        judge({
          owed: names.map((name) => ({ name, keys: [name] })),
          completions: await backend.completions(),
          ledger: names.map((name) => ({ what: 'effect', key: name, copy: '', pid: 1 })),
          effects: await backend.effects(),
        });
      await rewrite(backend.place, key(1), (data) => data);
      expect(await verdict()).toEqual(KEPT);
      await rewrite(backend.place, key(2), ofAnother);
      const noted = await backend.completions();
      expect(noted.map((one) => one.key)).toEqual([...names, key(2)]);
      expect(noted.at(-1)?.owner).toBe('another');
      expect(await verdict()).toEqual({ ...KEPT, completedTwice: [key(2)] });
    } finally {
      await store.close();
      await end();
      await backend.remove();
    }
  },
  120_000,
);
