import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileOf, placeOf } from '../../../src/stores/sqlite/place.ts';
import type { TempFile } from '../sqlite-files.ts';
import { tempFile } from '../sqlite-files.ts';

let temp: TempFile;
let db: DatabaseSync;

beforeEach(() => {
  temp = tempFile();
  db = new DatabaseSync(temp.file);
});

afterEach(() => {
  if (db.isOpen) db.close();
  temp.remove();
});

const GONE = { name: 'Fault', code: 'store_unavailable' };

describe('the place of a database', () => {
  it('is its file, and nowhere in memory', () => {
    expect(fileOf(db)).toBe(temp.file);
    const memory = new DatabaseSync(':memory:');
    expect(fileOf(memory)).toBe('');
    expect(() => placeOf(memory).check()).not.toThrow();
    memory.close();
  });

  it('is lost while the file is away, and found when it is back', () => {
    const place = placeOf(db);
    expect(() => place.check()).not.toThrow();
    renameSync(temp.file, `${temp.file}.away`);
    expect(() => place.check()).toThrow(expect.objectContaining(GONE) as Error);
    renameSync(`${temp.file}.away`, temp.file);
    expect(() => place.check()).not.toThrow();
  });

  it('is lost where another file has its name', () => {
    const place = placeOf(db);
    writeFileSync(`${temp.file}.new`, '');
    renameSync(`${temp.file}.new`, temp.file);
    expect(() => place.check()).toThrow(expect.objectContaining(GONE) as Error);
    rmSync(temp.file);
    expect(() => place.check()).toThrow(/was deleted, moved or replaced/);
  });
});
