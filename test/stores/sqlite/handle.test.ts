import { describe, expect, it } from 'vitest';
import { ConfigError, Fault } from '../../../src/index.ts';
import { asFault, fileOpener, isBusy, isConstraint } from '../../../src/stores/sqlite/for-tests.ts';

const driverError = (fields: object, message = 'refused'): Error => Object.assign(new Error(message), fields);

describe('fileOpener', () => {
  it('opens with node:sqlite when the runtime has it', () => {
    const db = fileOpener()(':memory:');
    expect(db.prepare('SELECT 1 AS one').get()).toMatchObject({ one: 1 });
    db.close();
  });

  it('names the needed Node version and the alternative when it has none', () => {
    const without = (): unknown => fileOpener(() => undefined);
    expect(without).toThrow(ConfigError);
    expect(without).toThrow(/Node >= 22\.13.*libsql/);
  });
});

describe('isBusy', () => {
  it.each([
    ['node:sqlite', { code: 'ERR_SQLITE_ERROR', errcode: 5 }],
    ['node:sqlite, extended (BUSY_SNAPSHOT)', { code: 'ERR_SQLITE_ERROR', errcode: 517 }],
    ['node:sqlite, LOCKED', { code: 'ERR_SQLITE_ERROR', errcode: 6 }],
    ['libsql', { code: 'SQLITE_BUSY', rawCode: 5 }],
    ['better-sqlite3', { code: 'SQLITE_BUSY' }],
    ['better-sqlite3, extended', { code: 'SQLITE_BUSY_RECOVERY' }],
    ['better-sqlite3, LOCKED', { code: 'SQLITE_LOCKED_SHAREDCACHE' }],
  ])('is true for %s', (_driver, fields) => {
    expect(isBusy(driverError(fields))).toBe(true);
  });

  it.each([
    'cannot start a transaction within a transaction',
    'Safety level may not be changed inside a transaction',
  ])('is true for an open transaction of other code: %s', (message) => {
    expect(isBusy(driverError({ code: 'SQLITE_ERROR', rawCode: 1 }, message))).toBe(true);
  });

  it.each([
    ['FULL', { errcode: 13 }],
    ['IOERR', { rawCode: 10 }],
    ['IOERR, extended', { code: 'SQLITE_IOERR_FSYNC' }],
    ['CONSTRAINT', { code: 'SQLITE_CONSTRAINT_UNIQUE' }],
    ['another kind', { code: 'ENOENT' }],
  ])('is false for %s', (_name, fields) => {
    expect(isBusy(driverError(fields))).toBe(false);
  });

  it.each([undefined, null, 'SQLITE_BUSY', 5])('is false for the thrown value %s', (thrown) => {
    expect(isBusy(thrown)).toBe(false);
  });
});

describe('isConstraint', () => {
  it('is true by number or name, extended or not', () => {
    expect(isConstraint(driverError({ errcode: 787 }))).toBe(true);
    expect(isConstraint(driverError({ code: 'SQLITE_CONSTRAINT_FOREIGNKEY' }))).toBe(true);
    expect(isConstraint(driverError({ errcode: 5 }))).toBe(false);
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
