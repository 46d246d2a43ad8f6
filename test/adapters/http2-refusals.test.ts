import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { fixture, NODE } from './child.ts';

test('HTTP/2: refusing bodies that were not read leaves the process alive', async () => {
  const { stdout } = await promisify(execFile)(NODE, [fixture('http2-refusals.js')]);
  expect(JSON.parse(stdout)).toMatchObject({ statuses: [415, 405, 413, 413, 503, 401] });
});
