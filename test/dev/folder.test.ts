import {
  existsSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { folder, startedDev } from './kit.ts';

const mode = (path: string): number => statSync(path).mode & 0o777;

describe('the folder', () => {
  it('is made for its owner alone, ignored by git, and keeps keys, secrets, token and port', async () => {
    const cwd = folder();
    const first = await startedDev({ cwd });
    const dir = join(cwd, '.proto-webhooks');
    expect(mode(dir)).toBe(0o700);
    expect(readdirSync(dir).sort()).toEqual(['.gitignore', 'keys.json', 'port', 'token']);
    for (const name of ['keys.json', 'token', 'port']) expect(mode(join(dir, name))).toBe(0o600);
    expect(readFileSync(join(dir, '.gitignore'), 'utf8')).toBe('*\n');
    expect(readFileSync(join(dir, 'port'), 'utf8')).toBe(`${first.port}\n`);
    expect(readFileSync(join(dir, 'token'), 'utf8').trim()).toBe(first.token);
    await first.close();
    const again = await startedDev({ cwd, port: first.port });
    expect(again.token).toBe(first.token);
    expect(again.sellers).toEqual(first.sellers);
    expect(again.url).toBe(`http://127.0.0.1:${first.port}/#${first.token}`);
  });

  it('has the same keys for two devs that start at once', async () => {
    const cwd = folder();
    const devs = await Promise.all([1, 2, 3].map(() => startedDev({ cwd })));
    const kids = await Promise.all(
      devs.map(async ({ sellers }) => (await fetch(`${sellers[0]?.agentUrl}/jwks.json`)).text()),
    );
    expect(new Set(kids).size).toBe(1);
    expect(new Set(devs.map(({ token }) => token)).size).toBe(1);
    expect(readdirSync(join(cwd, '.proto-webhooks'))).toHaveLength(4);
  });

  const made = async (): Promise<string> => {
    const cwd = folder();
    await (await startedDev({ cwd })).close();
    return cwd;
  };
  const changes: Readonly<Record<string, readonly [file: string, change: (path: string) => void]>> = {
    'keys that are no JSON': ['keys.json', (path) => writeFileSync(path, '{')],
    'keys of another version': ['keys.json', (path) => writeFileSync(path, '{"version":2}')],
    'keys that cannot sign': [
      'keys.json',
      (path) => writeFileSync(path, readFileSync(path, 'utf8').replace('"d"', '"D"')),
    ],
    'a secret that is none': [
      'keys.json',
      (path) =>
        writeFileSync(path, readFileSync(path, 'utf8').replace(/"hmacSecret": "./, '"hmacSecret": "')),
    ],
    'a token that is none': ['token', (path) => writeFileSync(path, 'short\n')],
    'a port that is none': ['port', (path) => writeFileSync(path, '../../x\n')],
  };
  it.each(Object.keys(changes))('%s: a mistake that names the file, which stays as it is', async (name) => {
    const cwd = await made();
    const [file, change] = changes[name] ?? ['', () => undefined];
    const path = join(cwd, '.proto-webhooks', file);
    change(path);
    const text = readFileSync(path, 'utf8');
    await expect(startedDev({ cwd })).rejects.toThrow(`${path}: `);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('a link, a file, a folder in place of a file: mistakes that name it', async () => {
    const cwd = folder();
    const dir = join(cwd, '.proto-webhooks');
    symlinkSync(folder(), dir);
    await expect(startedDev({ cwd })).rejects.toThrow(`${dir}: it is not a directory`);
    const other = folder();
    writeFileSync(join(other, '.proto-webhooks'), '');
    await expect(startedDev({ cwd: other })).rejects.toThrow('it is not a directory');
    const third = await made();
    const token = join(third, '.proto-webhooks', 'token');
    symlinkSync(token, join(third, 'elsewhere'));
    await expect(startedDev({ cwd: third, dir: 'elsewhere' })).rejects.toThrow('it is not a directory');
    const fourth = folder();
    mkdirSync(join(fourth, '.proto-webhooks', 'keys.json'), { recursive: true });
    await expect(startedDev({ cwd: fourth })).rejects.toThrow('keys.json: it is not a regular file');
  });

  it('one that others may read is closed to them', async () => {
    const cwd = folder();
    const dir = join(cwd, '.proto-webhooks');
    mkdirSync(dir);
    chmodSync(dir, 0o755);
    await startedDev({ cwd });
    expect(mode(dir)).toBe(0o700);
  });
});

describe('the port', () => {
  it('of the dev that started last is in the folder until that one ends', async () => {
    const cwd = folder();
    const file = join(cwd, '.proto-webhooks', 'port');
    const first = await startedDev({ cwd });
    const second = await startedDev({ cwd });
    await first.close();
    expect(readFileSync(file, 'utf8')).toBe(`${second.port}\n`);
    await second.close();
    expect(existsSync(file)).toBe(false);
  });

  it('that is taken is a mistake that names it, and what to do', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    await expect(startedDev({ port })).rejects.toThrow(
      `--port: ${port}: another process listens there, perhaps another dev. End it, or name another port by --port`,
    );
  });
});
