import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

describe('npm run demo', () => {
  it('every line is as the contract says', async () => {
    const { stdout } = await run(process.execPath, [`${root}/examples/demo/run.ts`], { cwd: root });
    expect(stdout).toMatch(/^28 passed, 0 failed$/m);
  });
});
