import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runVectors } from '../../src/vectors/index.ts';
import { folderOf } from './folder.ts';

const URLS = { cases: [{ name: 'n', input_url: 'x', reject: true }] };

const makePipe = (file: string): unknown => execFileSync('sh', ['-c', 'mkfifo "$0"', file]);

const told = async (dir: string): Promise<unknown[]> =>
  (await runVectors({ dir })).map(({ name, passed, file, actual }) => [
    name,
    passed,
    file.slice(dir.length + 1),
    ...(passed ? [] : [actual]),
  ]);

describe('a folder of vectors', () => {
  test('loads each file once, and follows no links to folders, also in circles', async () => {
    const dir = folderOf({ 'urls.json': URLS, 'sub/urls.json': URLS });
    symlinkSync('.', join(dir, 'self'));
    symlinkSync('..', join(dir, 'sub/up'));
    symlinkSync('..', join(dir, 'sub/up.json'));
    expect(await told(dir)).toEqual([
      ['up.json', false, 'sub/up.json', expect.stringContaining('not a regular file')],
      ['n', true, 'sub/urls.json'],
      ['n', true, 'urls.json'],
    ]);
  });

  test('loads a linked file', async () => {
    const dir = folderOf({ 'urls.txt': URLS });
    symlinkSync('urls.txt', join(dir, 'urls.json'));
    expect(await told(dir)).toEqual([['n', true, 'urls.json']]);
  });

  test('fails a pipe, a device and a dangling link as cases; the others run', async () => {
    const dir = folderOf({ 'urls.json': URLS });
    makePipe(join(dir, 'pipe.json'));
    symlinkSync('/dev/zero', join(dir, 'device.json'));
    symlinkSync('nowhere', join(dir, 'lost.json'));
    expect(await told(dir)).toEqual([
      ['device.json', false, 'device.json', expect.stringContaining('not a regular file')],
      ['lost.json', false, 'lost.json', expect.stringContaining('ENOENT')],
      ['pipe.json', false, 'pipe.json', expect.stringContaining('not a regular file')],
      ['n', true, 'urls.json'],
    ]);
  });

  test('does not wait for a keys.json that is a pipe', async () => {
    const vector = {
      request: { url: 'https://buyer.example/', headers: {}, body: '' },
      reference_now: 1,
      expected_outcome: { success: true },
    };
    const dir = folderOf({ 'sub/a.json': vector });
    makePipe(join(dir, 'keys.json'));
    const [, second] = await told(dir);
    expect(second).toEqual([
      'a.json',
      false,
      'sub/a.json',
      expect.stringMatching(/keys\.json: cannot be read \(not a regular file\)/),
    ]);
  });
});

test('reports an endless named file in one line, within bounded memory', async () => {
  await expect(runVectors({ files: ['/dev/zero'] })).rejects.toThrow(
    '/dev/zero: cannot be read (more than 67108864 bytes): expected a JSON file',
  );
});
