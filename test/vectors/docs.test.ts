import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { asWritten } from '../support/samples.ts';
import { folderOf } from './folder.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

/** Runs a program of the docs in a project that has the built package installed. */
async function output(program: string, ...flags: readonly string[]): Promise<string> {
  const dir = folderOf({ 'package.json': { type: 'module' } });
  mkdirSync(join(dir, 'node_modules'));
  symlinkSync(root, join(dir, 'node_modules/proto-webhooks'));
  writeFileSync(join(dir, 'program.js'), program);
  // A runner of tests inside a runner of tests reports to the outer one.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await run(process.execPath, [...flags, 'program.js'], { cwd: dir, env });
  return stdout;
}

describe('docs/conformance.md: its programs run as written, on the built package', () => {
  test('three lines are a test suite', async () => {
    const stdout = await output(
      asWritten('docs/conformance.md', "from 'node:test'"),
      '--test',
      '--test-reporter=tap',
    );
    expect(stdout).toMatch(/^# fail 0$/m);
    expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(400);
  });

  test('results and a report are printed', async () => {
    expect(await output(asWritten('docs/conformance.md', 'process.exitCode'))).toMatch(
      /^\d+ passed, 0 failed\n$/,
    );
  });

  test('a custom receiver is tested', async () => {
    const stdout = await output(asWritten('docs/conformance.md', 'const subject'));
    expect(stdout).toMatch(/FAIL signature basic-ed25519\n +file .*\n +expected authentic\n/);
    expect(stdout).toMatch(/FAIL canonicalization /);
  });
});
