import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const PROGRAM = fileURLToPath(new URL('exit-program.ts', import.meta.url));

it('a handler that never settles does not keep the process alive after stop()', async () => {
  // Its deadline is ten minutes away.
  const ended = await promisify(execFile)(process.execPath, [PROGRAM], { timeout: 60_000 });
  expect(ended.stdout).toBe('stopped');
});
