import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { inThisForm } from '../reliability/form.ts';
import type { BetterSqlite3 } from '../support/better-sqlite3.ts';
import { betterSqlite3 } from '../support/better-sqlite3.ts';
import { DATA_FOLDER } from '../support/data-folder.ts';
import { canDiffer, suitesOfContract, SQLITE_CAN_DIFFER } from './contract-suites.ts';

const run = promisify(execFile);
const CHILD = fileURLToPath(new URL('fixtures/better-sqlite3.js', import.meta.url));

const SUITES = suitesOfContract({ transactions: true, persistent: true, inbox: true, registrations: true });

/** What this driver can do otherwise than node:sqlite, which passes the whole contract (`sqlite.test.ts`). */
const CAN_DIFFER = canDiffer(SUITES, SQLITE_CAN_DIFFER);
const HERE = inThisForm([...SUITES.keys()], CAN_DIFFER);
const CASES = HERE.reduce((sum, suite) => sum + (SUITES.get(suite) ?? 0), 0);

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

  it('passes the contract; sets what the driver resets; waits for BUSY; has ctx.transaction', async () => {
    const { node, folder } = installed;
    // The environment of this run (vitest's, npm's) is not the child's: NODE_OPTIONS of another Node may not fit.
    const { NODE_OPTIONS: _options, ...env } = process.env;
    const options = { env, maxBuffer: 64 * 1024 * 1024 };
    const args = ['--test-reporter=tap', CHILD, folder, JSON.stringify(HERE), DATA_FOLDER];
    const tap = await run(node, args, options).catch((error: unknown) => error);
    const { stdout, stderr } = tap as { readonly stdout: string; readonly stderr: string };
    const failures = stdout.split('\n').filter((line) => line.trimStart().startsWith('not ok'));
    expect(failures, `${stdout}\n${stderr}`).toEqual([]);
    expect(counted(stdout, 'pass'), stderr).toBe(CASES + OWN_CASES);
    expect(counted(stdout, 'tests')).toBe(counted(stdout, 'pass'));
  }, 300_000);
});
