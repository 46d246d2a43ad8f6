import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LONG } from '../reliability/form.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const here = fileURLToPath(new URL('.', import.meta.url));

/** Names of rows, e.g. `verification-5.15`: what its patch is called. */
const patches = readdirSync(here)
  .filter((name) => name.endsWith('.patch'))
  .map((name) => name.slice(0, -'.patch'.length));

/** What a row of rules.md names behind its rule: its tests. The store contract is run by a store. */
function testsByRow(): ReadonlyMap<string, readonly string[]> {
  const rows = new Map<string, readonly string[]>();
  let document = '';
  for (const line of readFileSync(join(root, 'docs/spec/rules.md'), 'utf8').split('\n')) {
    document = /^## \[(\w+)\.md\]/.exec(line)?.[1] ?? document;
    const [, rule, , tests = ''] = /^\| §(\S+) +\| (.*?) \| (.*) \|$/.exec(line) ?? [];
    if (rule === undefined) continue;
    const files = Array.from(tests.matchAll(/`([^`]+)`/g), ([, file = '']) => file);
    rows.set(
      `${document}-${rule}`,
      files.map((file) => (file.startsWith('src/') ? 'test/stores/memory.test.ts' : file)),
    );
  }
  return rows;
}

const rows = testsByRow();

describe('planted faults', () => {
  it('are of rows of rules.md, at least forty', () => {
    expect(patches.length).toBeGreaterThanOrEqual(40);
    expect(patches.filter((name) => !rows.has(name))).toEqual([]);
  });

  it('fit the source as it is', () => {
    const files = patches.map((name) => join(here, `${name}.patch`));
    const misfits = files.filter(
      (file) => spawnSync('git', ['apply', '--check', file], { cwd: root }).status !== 0,
    );
    expect(misfits).toEqual([]);
  });
});

if (LONG) {
  describe('a fault that is planted is found by a test that its row names', () => {
    let tree = '';
    /** Files that pass without a fault. */
    const sound = new Set<string>();

    beforeAll(() => {
      tree = mkdtempSync(join(tmpdir(), 'proto-webhooks-planted-'));
      for (const name of readdirSync(root)) {
        if (name === 'node_modules') symlinkSync(join(root, name), join(tree, name));
        else if (name !== '.git') cpSync(join(root, name), join(tree, name), { recursive: true });
      }
    });
    afterAll(() => rmSync(tree, { recursive: true, force: true }));

    const apply = (name: string, ...how: readonly string[]): void => {
      execFileSync('git', ['apply', ...how, join(here, `${name}.patch`)], { cwd: tree, stdio: 'pipe' });
    };

    const passes = (file: string): boolean => {
      const { VITEST: _is, VITEST_POOL_ID: _pool, VITEST_WORKER_ID: _worker, ...env } = process.env;
      const args = ['node_modules/vitest/vitest.mjs', 'run', file, '--bail', '1', '--passWithNoTests'];
      const { status } = spawnSync(process.execPath, args, {
        cwd: tree,
        env: { ...env, TEST_FORM: 'short', TEST_GROUP: '' },
        stdio: 'ignore',
      });
      return status === 0;
    };

    it.each(patches)('%s', { timeout: 3_600_000 }, (name) => {
      const files = rows.get(name) ?? [];
      apply(name);
      const found = files.find((file) => !passes(file));
      apply(name, '--reverse');
      expect(found, `none of ${files.join(', ')} fails with it`).toBeDefined();
      // Else it is no merit of the test that it fails.
      if (found !== undefined && !sound.has(found)) expect(passes(found), `${found} without it`).toBe(true);
      if (found !== undefined) sound.add(found);
    });
  });
}
