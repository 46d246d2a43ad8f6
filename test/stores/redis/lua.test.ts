import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';
import { LUA } from '../../../src/stores/redis/for-tests.ts';

const folder = join(import.meta.dirname, '../../../src/stores/redis/lua');

it('the package carries the current Lua scripts (if not: npm run lua)', () => {
  const files = readdirSync(folder).map((name) => [
    basename(name, '.lua'),
    readFileSync(join(folder, name), 'utf8'),
  ]);
  expect(LUA).toEqual(Object.fromEntries(files));
});
