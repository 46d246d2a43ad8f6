import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { describeStoreContract } from '../../src/testing/store-contract.ts';
import type { BetterSqlite3 } from '../support/better-sqlite3.ts';
import { betterSqlite3 } from '../support/better-sqlite3.ts';

const run = promisify(execFile);
const CHILD = fileURLToPath(new URL('fixtures/better-sqlite3.js', import.meta.url));

/** Tests of the suite with all that SQLite claims. */
function casesOfContract(): number {
  let count = 0;
  const harness = (): never => {
    throw new Error('these are only counted');
  };
  describeStoreContract(harness, {
    describe: (_name, body) => body(),
    it: () => (count += 1),
    transactions: true,
    persistent: true,
    inbox: true,
    registrations: true,
  });
  return count;
}

/** The child's own: settings, BUSY, ctx.transaction. */
const OWN_CASES = 7;

/** `# pass 150` and the like, at the end of TAP. */
function counted(tap: string, what: string): number {
  return Number(new RegExp(`^# ${what} ([0-9]+)$`, 'm').exec(tap)?.[1]);
}

describe('sqliteStore on a handle of better-sqlite3, under the system’s Node', () => {
  let installed: BetterSqlite3;
  beforeAll(async () => {
    installed = await betterSqlite3();
  }, 600_000);

  it('passes the whole contract; sets what the driver resets; waits for BUSY; has ctx.transaction', async () => {
    const { node, folder } = installed;
    // The environment of this run (vitest's, npm's) is not the child's: NODE_OPTIONS of another Node may not fit.
    const { NODE_OPTIONS: _options, ...env } = process.env;
    const options = { env, maxBuffer: 64 * 1024 * 1024 };
    const tap = await run(node, ['--test-reporter=tap', CHILD, folder], options).catch(
      (error: unknown) => error,
    );
    const { stdout, stderr } = tap as { readonly stdout: string; readonly stderr: string };
    const failures = stdout.split('\n').filter((line) => line.trimStart().startsWith('not ok'));
    expect(failures, `${stdout}\n${stderr}`).toEqual([]);
    expect(counted(stdout, 'pass'), stderr).toBe(casesOfContract() + OWN_CASES);
    expect(counted(stdout, 'tests')).toBe(counted(stdout, 'pass'));
  }, 300_000);
});
