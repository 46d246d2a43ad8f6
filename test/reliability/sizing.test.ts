import { describe, expect, inject, it } from 'vitest';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { inThisForm, LONG } from './form.ts';
import type { Measured } from './sizing.ts';
import { bytesOfOne, KINDS, mysqlTables, postgresSchema, redisMemory, sqliteFile } from './sizing.ts';

const STORES: Readonly<Record<string, () => Promise<Measured>>> = {
  SQLite: sqliteFile,
  Postgres: async () => postgresSchema(await sharedPostgres(inject('shared'))),
  MySQL: mysqlTables,
  Redis: redisMemory,
};

/** As docs/operations.md, "Room", has them: bytes of one, as measured over 20,000 to 50,000. */
const DOCUMENTED: Readonly<Record<string, Readonly<Record<keyof typeof KINDS, number>>>> = {
  SQLite: {
    'a nonce': 200,
    'an event that waits, 1 KB': 1804,
    'an event that waited, 1 KB, and is done': 564,
    'an event that is done': 540,
    'an event that is done, and its task': 833,
  },
  Postgres: {
    'a nonce': 231,
    'an event that waits, 1 KB': 1769,
    'an event that waited, 1 KB, and is done': 560,
    'an event that is done': 557,
    'an event that is done, and its task': 914,
  },
  MySQL: {
    'a nonce': 383,
    'an event that waits, 1 KB': 1790,
    'an event that waited, 1 KB, and is done': 802,
    'an event that is done': 772,
    'an event that is done, and its task': 1284,
  },
  Redis: {
    'a nonce': 451,
    'an event that waits, 1 KB': 2344,
    'an event that waited, 1 KB, and is done': 781,
    'an event that is done': 783,
    'an event that is done, and its task': 1398,
  },
};

/** Few events fill pages and hash tables less evenly than many. */
const TOLERANCE = 1.3;

/** `npm test` measures the one that needs no server. */
const NAMES = inThisForm(Object.keys(STORES), (name) => name === 'SQLite');

describe.each(NAMES)('%s takes no more space than the docs give for', (name) => {
  it.each(Object.keys(KINDS))(
    '%s',
    async (kind) => {
      const [open, make] = [STORES[name] ?? expect.fail(), KINDS[kind] ?? expect.fail()];
      const bytes = await bytesOfOne(open, make, LONG ? 20_000 : 2000);
      if (LONG) console.info(name, kind, bytes);
      const { packed } = bytes;
      expect(packed).toBeGreaterThan(0);
      expect(packed).toBeLessThan((DOCUMENTED[name]?.[kind] ?? 0) * TOLERANCE);
    },
    600_000,
  );
});
