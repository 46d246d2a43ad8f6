import { describe, expect, it } from 'vitest';
import { ConfigError, Fault } from '../../../src/index.ts';
import { asFault, isBusy, isConstraint, nodeSqlite, openFile } from '../../../src/stores/sqlite/for-tests.ts';

const driverError = (fields: object, message = 'refused'): Error => Object.assign(new Error(message), fields);

describe('node:sqlite', () => {
  it('opens a file where the runtime has it', () => {
    const db = openFile(':memory:');
    expect(db.prepare('SELECT 1 AS one').get()).toMatchObject({ one: 1 });
    db.close();
  });

  it('is a ConfigError with the Node to use where the runtime has none', () => {
    const without = (): unknown => nodeSqlite(() => undefined);
    expect(without).toThrow(ConfigError);
    expect(without).toThrow(/Node >= 22\.13.*proto-webhooks\/postgres/);
  });
});

describe('isBusy', () => {
  it.each([
    ['BUSY', { code: 'ERR_SQLITE_ERROR', errcode: 5 }],
    ['BUSY_SNAPSHOT, an extended code', { code: 'ERR_SQLITE_ERROR', errcode: 517 }],
    ['LOCKED', { code: 'ERR_SQLITE_ERROR', errcode: 6 }],
  ])('is true for %s', (_name, fields) => {
    expect(isBusy(driverError(fields))).toBe(true);
  });

  it.each(['database is locked', 'database table is locked: t', 'database schema is locked: main'])(
    'is true for an error without a number, as Deno’s exec throws it: %s',
    (message) => {
      expect(isBusy(driverError({ code: 'ERR_SQLITE_ERROR' }, message))).toBe(true);
    },
  );

  it.each([
    'cannot start a transaction within a transaction',
    'Safety level may not be changed inside a transaction',
  ])('is true for an open transaction of other code: %s', (message) => {
    expect(isBusy(driverError({ code: 'ERR_SQLITE_ERROR', errcode: 1 }, message))).toBe(true);
  });

  it.each([
    ['FULL', { errcode: 13 }],
    ['IOERR', { errcode: 10 }],
    ['IOERR_FSYNC, an extended code', { errcode: 1034 }],
    ['CONSTRAINT_UNIQUE', { errcode: 2067 }],
    ['another kind', { code: 'ENOENT' }],
  ])('is false for %s', (_name, fields) => {
    expect(isBusy(driverError(fields))).toBe(false);
  });

  it.each([undefined, null, 'SQLITE_BUSY', 5])('is false for the thrown value %s', (thrown) => {
    expect(isBusy(thrown)).toBe(false);
  });
});

describe('isConstraint', () => {
  it('is true by number, extended or not, and by message where there is none', () => {
    expect(isConstraint(driverError({ errcode: 19 }))).toBe(true);
    expect(isConstraint(driverError({ errcode: 787 }))).toBe(true);
    expect(isConstraint(driverError({}, 'FOREIGN KEY constraint failed'))).toBe(true);
    expect(isConstraint(driverError({ errcode: 5 }))).toBe(false);
    expect(isConstraint(driverError({}, 'database is locked'))).toBe(false);
  });
});

describe('asFault', () => {
  it('turns a driver’s error into a Fault with its cause', () => {
    const cause = driverError({ errcode: 10 }, 'disk I/O error');
    const fault = asFault(cause);
    expect(fault).toBeInstanceOf(Fault);
    expect(fault).toMatchObject({ code: 'store_unavailable', message: 'SQLite: disk I/O error', cause });
  });

  it('passes Fault and ConfigError through', () => {
    const fault = new Fault('not_durable', 'lowered');
    const config = new ConfigError('newer');
    expect(asFault(fault)).toBe(fault);
    expect(asFault(config)).toBe(config);
  });
});
