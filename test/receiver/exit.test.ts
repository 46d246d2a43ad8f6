import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const PROGRAM = fileURLToPath(new URL('exit-program.ts', import.meta.url));

/** What the program has printed when it ended by itself. */
async function ended(name: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, name], { timeout: 60_000 });
  return stdout;
}

it('a handler that never settles does not keep the process alive after stop()', async () => {
  // Its deadline is ten minutes away.
  expect(await ended('stopped')).toBe('stopped');
});

it('what was not started, and a fake seller, keep no process alive: a test that fails ends', async () => {
  expect(await ended('failed')).toBe('failed accepted');
});

it.each(['worker', 'poller'])('a started %s keeps its process alive', async (name) => {
  expect(await ended(name)).toBe(`${name} true`);
});
