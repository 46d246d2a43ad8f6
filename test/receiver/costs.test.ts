import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Made } from './costs-child.ts';

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** The pinned one, whichever runs the tests: another Node makes other promises and objects. */
const NODE = path('../../node_modules/.bin/node');

/**
 * Counted, not derived: promises, objects and bytes of one delivery of a tool event, accepted unless a row names the
 * code that refuses it, from the request to its answer, on the memory store and with the verification on the main
 * thread. What Node, the framework, the test's client
 * and the handler make is among them; `none` is a bare server of `node:http`. A smaller count is to be written here.
 */
const COUNTED: Readonly<Record<string, Made>> = {
  'in process': { promises: 23, objects: 767, bytes: 42_700 },
  node: { promises: 33, objects: 1_211, bytes: 61_900 },
  express: { promises: 33, objects: 1_276, bytes: 62_400 },
  fastify: { promises: 33, objects: 1_230, bytes: 59_600 },
  hono: { promises: 41, objects: 1_351, bytes: 66_400 },
  none: { promises: 2, objects: 374, bytes: 16_400 },
  'in process, SQLite': { promises: 33, objects: 1_096, bytes: 58_600 },
  'refused: unsupported_media_type': { promises: 9, objects: 256, bytes: 12_500 },
  'refused: webhook_signature_key_unknown': { promises: 27, objects: 415, bytes: 22_800 },
  'refused: webhook_signature_invalid': { promises: 81, objects: 753, bytes: 46_500 },
};

/** Counts differ by less than one in a hundred from run to run. */
const ROOM = 1.1;

describe('what one delivery makes', async () => {
  const flags = ['--no-opt', '--no-maglev', '--disable-warning=ExperimentalWarning'];
  const { stdout } = await promisify(execFile)(NODE, [...flags, path('costs-child.ts')]);
  const made = JSON.parse(stdout) as Record<string, Made>;

  it.each(Object.entries(COUNTED))('%s: no more than was counted', (door, most) => {
    const { promises = NaN, objects = NaN, bytes = NaN } = made[door] ?? {};
    expect(promises, 'promises').toBeLessThanOrEqual(most.promises * ROOM);
    expect(objects, 'objects').toBeLessThanOrEqual(most.objects * ROOM);
    expect(bytes, 'bytes').toBeLessThanOrEqual(most.bytes * ROOM);
    // None at all would say that nothing was seen.
    expect(promises * objects * bytes).toBeGreaterThan(0);
  });
});
