import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
/** Node 24, which has the fault, whatever runs the tests. */
const NODE = path('../../node_modules/.bin/node');

it('member names with escapes are read as they are, whatever the process has parsed before', async () => {
  const { stdout } = await promisify(execFile)(NODE, ['--no-warnings', path('fixtures/primed.ts')]);
  expect(JSON.parse(stdout)).toEqual({
    primed: 25,
    // Otherwise the rest shows nothing.
    faulty: true,
    flat: [
      ['a', 1],
      ['bc', 2],
    ],
    first: [['abc', 2]],
    nested: [
      ['x', { a: 1, bc: 2 }],
      ['y', [{ a: 1, bc: 2 }]],
    ],
    quoted: [
      ['a', 1],
      ['b"c', 2],
    ],
    twice: 'an object in the body has a name twice: "status"',
    once: [
      ['status', 'completed'],
      ['statuS', 'failed'],
    ],
    canonical: '{"a":1,"bc":2}',
    keys: ['k'],
    storable: ['a', 'b"'],
  });
});
