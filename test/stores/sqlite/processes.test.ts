import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { acceptRequest } from '../requests.ts';
import type { TempFile } from '../sqlite-files.ts';
import { tempFile } from '../sqlite-files.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
const CHILD = fixture('accept-and-wait.ts');
const MANY = fixture('accept-many.ts');

let temp: TempFile;

beforeEach(() => {
  temp = tempFile();
});

afterEach(() => {
  temp.remove();
});

describe('a process that is killed', () => {
  it('keeps what it answered', async () => {
    const child = spawn(process.execPath, [CHILD, temp.file], { stdio: ['ignore', 'pipe', 'inherit'] });
    const gone = once(child, 'exit');
    const [said] = await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await gone;
    expect(String(said)).toBe('won\n');
    const store = sqliteStore(temp.file);
    await store.open();
    expect((await store.accept(acceptRequest())).kind).toBe('in-flight');
    await store.close();
  });
});

describe('processes on one file', () => {
  it('win each event once, and no call fails with store_unavailable', async () => {
    const children = [1, 2].map(() =>
      spawn(process.execPath, [MANY, temp.file, '400'], { stdio: ['ignore', 'pipe', 'inherit'] }),
    );
    const outputs = await Promise.all(children.map(({ stdout }) => text(stdout)));
    const won = outputs.flatMap((output) => JSON.parse(output) as string[]);
    expect(won.length).toBe(400);
    expect(new Set(won).size).toBe(400);
  });
});
