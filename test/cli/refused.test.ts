import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { captureRefused } from '../../src/adapters/node.ts';
import { ConfigError, type RefusedDelivery } from '../../src/index.ts';
import { generateKey } from '../../src/sender/sign.ts';
import { testReceiver, payloads, said, sellerKey, URL_GIVEN } from '../receiver/setup.ts';
import { cli } from './run-cli.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refused-'));
});
afterAll(() => rm(folder, { recursive: true }));

const until = (holds: () => unknown): Promise<unknown> => vi.waitFor(holds, { timeout: 20_000, interval: 5 });

const captures = async (dir: string): Promise<string[]> =>
  (await readdir(dir)).filter((name) => name.endsWith('.http')).sort();

describe('onRefused', () => {
  it('gets each refused delivery, with the body if it was read', async () => {
    const told: RefusedDelivery[] = [];
    const at = await testReceiver({ onRefused: (delivery) => void told.push(delivery) });
    const good = await at.sign(payloads.tool('completed'));
    expect(said(await at.send(good))).toBe('accepted 200');
    const altered = { ...good, body: new TextEncoder().encode('{}') };
    await at.send(altered);
    await at.receiver.open({ 'content-type': 'text/plain' }, { method: 'POST', url: '/x' });
    await until(() => expect(told).toHaveLength(2));
    expect(told).toMatchObject([
      {
        method: 'POST',
        sender: 'https://seller.example/mcp',
        outcome: { code: 'webhook_signature_digest_mismatch' },
      },
      { method: 'POST', url: '/x', sender: undefined, outcome: { code: 'unsupported_media_type' } },
    ]);
    expect(told.map(({ rawBytes }) => rawBytes)).toEqual([altered.body, undefined]);
    expect(told[0]?.headers.get('content-digest')).toEqual([good.headers['Content-Digest']]);
  });

  it('that throws changes nothing', async () => {
    const at = await testReceiver({
      onRefused: () => {
        throw new Error('a bug');
      },
    });
    expect(
      said(await at.receiver.verifyAndDispatch(new Uint8Array(2), { 'content-type': 'text/plain' })),
    ).toBe('refused unsupported_media_type 415');
  });

  it('with bodies gets one a second of those that their headers refused, for known key ids only', async () => {
    let now = Date.now();
    const told: RefusedDelivery[] = [];
    const onRefused = {
      handle: (delivery: RefusedDelivery) => void told.push(delivery),
      maxBodyBytes: 8,
    };
    const at = await testReceiver({ onRefused, now: () => now });
    const forged = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
    const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'nobody' });
    const kinds: string[] = [];
    for (const [key, later] of [
      [stranger, 0],
      [forged, 0],
      [forged, 500],
      [forged, 1_000],
    ] as const) {
      now += later;
      const { headers } = await at.sign('{}', { key: key.privateJwk, now: () => now });
      const opened = await at.receiver.open(headers);
      kinds.push(opened.kind);
      if (opened.kind === 'ticket') {
        expect(opened.add(new Uint8Array(told.length > 2 ? 9 : 8))).toBe(told.length <= 2);
        expect(said(await opened.end())).toBe('refused webhook_signature_invalid 401');
      }
      await until(() => expect(told).toHaveLength(kinds.length));
    }
    expect(kinds).toEqual(['refused', 'ticket', 'refused', 'ticket']);
    expect(told.map(({ rawBytes }) => rawBytes?.byteLength)).toEqual([undefined, 8, undefined, undefined]);
  });
});

describe('captureRefused', () => {
  it('writes what explain reads: mode 0600, credentials masked, with a body and without', async () => {
    const dir = join(folder, 'explained');
    const at = await testReceiver({ onRefused: captureRefused(dir) });
    const good = await at.sign(payloads.tool('completed'), {
      headers: {
        Authorization: 'Bearer secret-1',
        Cookie: 'secret-2',
        'X-A2A-Notification-Token': 'secret-3',
      },
    });
    const info = { url: '/webhooks/other', method: 'POST' };
    const headers = { Host: 'buyer.example', ...good.headers };
    await at.receiver.verifyAndDispatch(new TextEncoder().encode('{"a":1}'), headers, info);
    await until(async () => expect(await captures(dir)).toHaveLength(1));
    const forged = await generateKey('ed25519', 'webhook-signing', { kid: 'nobody' });
    const strange = await at.sign(payloads.tool('completed'), { key: forged.privateJwk });
    await at.receiver.open({ Host: 'buyer.example', ...strange.headers }, info);
    await until(async () => expect(await captures(dir)).toHaveLength(2));
    const names = await captures(dir);
    for (const name of names) expect((await stat(join(dir, name))).mode & 0o777).toBe(0o600);
    const texts = await Promise.all(names.map((name) => readFile(join(dir, name), 'latin1')));
    expect(texts.join('\n')).not.toMatch(/secret-\d/);
    expect(texts.join('\n')).toContain('POST /webhooks/other HTTP/1.1');

    const keys = join(folder, 'jwks.json');
    const { publicJwk } = await sellerKey();
    await writeFile(keys, JSON.stringify({ keys: [publicJwk] }));
    const flags = ['--keys', keys, '--url', URL_GIVEN, '--json'];
    const { stdout } = await cli(['explain', '--dir', dir, ...flags]);
    const summed = JSON.parse(stdout) as { captures: number; causes: { cause: string; files: string[] }[] };
    expect(summed.captures).toBe(2);
    expect(Object.fromEntries(summed.causes.map(({ cause, files }) => [cause, files.length]))).toEqual({
      'body-other': 1,
      'key-missing': 1,
    });
  });

  it('records the URL that the receiver judged by: on a loopback address the cause is not the scheme', async () => {
    const dir = join(folder, 'loopback');
    const publicUrl = 'http://127.0.0.1:3000/webhooks/*';
    const at = await testReceiver({ publicUrl, allowLoopback: true, onRefused: captureRefused(dir) });
    const url = 'http://127.0.0.1:3000/webhooks/a;b';
    const { headers } = await at.sign(payloads.tool('completed'), { url });
    const info = { url: '/webhooks/a;b', method: 'POST' };
    const other = new TextEncoder().encode('{"a":1}');
    await at.receiver.verifyAndDispatch(other, { Host: '127.0.0.1:3000', ...headers }, info);
    await until(async () => expect(await captures(dir)).toHaveLength(1));
    const keys = join(folder, 'loopback.json');
    await writeFile(keys, JSON.stringify({ keys: [(await sellerKey()).publicJwk] }));
    const { stdout } = await cli(['explain', '--dir', dir, '--keys', keys, '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ causes: [{ cause: 'body-other' }] });
  });

  it('writes no line that was sent in characters which are no bytes', async () => {
    const dir = join(folder, 'wide');
    const { receiver } = await testReceiver({ onRefused: captureRefused(dir) });
    // The low byte of each is one of CR LF.
    const wide = 'a\u010d\u010aX-Forged: yes\u{1f60d}\u{1f60a}\u010d\u010aforged';
    await receiver.verifyAndDispatch(
      new TextEncoder().encode('{}'),
      { 'user-agent': wide },
      { url: `/${wide}` },
    );
    await until(async () => expect(await captures(dir)).toHaveLength(1));
    const [name = ''] = await captures(dir);
    const text = await readFile(join(dir, name), 'latin1');
    const lines = text.split('\r\n');
    expect(lines.map((line) => line.split(/[ :]/, 1)[0])).toEqual([
      'POST',
      'Proto-Webhooks-Capture',
      'user-agent',
      'Content-Length',
      '',
      '{}',
    ]);
    expect(lines[2]).toBe('user-agent: a??X-Forged: yes????forged');
  });

  it('keeps the latest of each sender and code, and no more bytes than it may', async () => {
    const dir = join(folder, 'bounded');
    const { handle: hook } = captureRefused(dir, { perSenderAndCode: 2, maxTotalBytes: 1_000 });
    const refusal = (code: string, body: string): RefusedDelivery => ({
      method: 'POST',
      url: '/x\r\nInjected: 1',
      targetUri: 'https://buyer.example/x\r\nInjected: 3',
      headers: new Map([['x-a', ['1\r\nInjected: 2']]]),
      sender: undefined,
      rawBytes: new TextEncoder().encode(body),
      outcome: { kind: 'refused', code } as never,
    });
    let written = 0;
    const write = async (code: string, wanted: number): Promise<void> => {
      const body = `body ${(written += 1)}`;
      hook(refusal(code, body));
      await until(async () => {
        const texts = await Promise.all(
          (await captures(dir)).map((name) => readFile(join(dir, name), 'latin1')),
        );
        expect(texts.filter((text) => text.endsWith(body))).toHaveLength(1);
        expect(texts).toHaveLength(wanted);
        expect(texts.join('').length).toBeLessThanOrEqual(1_000);
      });
    };
    await write('a', 1);
    await write('a', 2);
    await write('a', 2);
    await write('b', 3);
    await write('b', 4);
    // One is written at a time: what comes after it is there when it is not under way.
    hook(refusal('c', 'x'.repeat(900)));
    await write('a', 4);
    expect((await captures(dir)).filter((name) => name.includes('.c.'))).toEqual([]);
    for (const name of await captures(dir)) {
      expect(await readFile(join(dir, name), 'latin1')).not.toMatch(/^Injected/m);
    }
  });

  it('keeps five of each sender and code, and 16 MiB in all, where nothing is said', async () => {
    const dir = join(folder, 'by-default');
    await mkdir(dir);
    const { handle: hook } = captureRefused(dir);
    const refusal = (body: string): RefusedDelivery => ({
      method: 'POST',
      url: '/x',
      targetUri: undefined,
      headers: new Map(),
      sender: undefined,
      rawBytes: new TextEncoder().encode(body),
      outcome: { kind: 'refused', code: 'a' } as never,
    });
    const bodies = async (): Promise<string[]> => {
      const texts = await Promise.all(
        (await captures(dir)).map((name) => readFile(join(dir, name), 'latin1')),
      );
      return texts.map((text) => text.slice(text.indexOf('\r\n\r\n') + 4)).sort();
    };
    for (let nth = 1; nth <= 7; nth += 1) {
      hook(refusal(`body ${nth}`));
      await until(async () => expect(await bodies()).toContain(`body ${nth}`));
    }
    expect(await bodies()).toEqual(['body 3', 'body 4', 'body 5', 'body 6', 'body 7']);

    const full = join(folder, 'full');
    await mkdir(full);
    await writeFile(join(full, 'other.http'), '');
    await truncate(join(full, 'other.http'), 16 * 1_048_576 - 1_000);
    const { handle: atCap } = captureRefused(full);
    atCap(refusal('x'.repeat(1_000)));
    atCap(refusal('small'));
    await until(async () => expect(await captures(full)).toHaveLength(2));
    const [name = ''] = (await captures(full)).filter((one) => one !== 'other.http');
    expect(await readFile(join(full, name), 'latin1')).toMatch(/small$/);
  });

  it('refuses options that are no numbers', () => {
    expect(() => captureRefused(folder, { perSenderAndCode: 0 })).toThrow(ConfigError);
    expect(() => captureRefused(folder, { perSender: 5 } as object)).toThrow(/perSender is not known/);
    expect(() => captureRefused(undefined as never)).toThrow(/captureRefused: dir: undefined/);
  });
});
