import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { captureRefused } from '../../src/adapters/node.ts';
import type { CaptureList, DeliveryFull, DeliveryRow } from '../../src/dev/for-tests.ts';
import { generateKey, signDelivery } from '../../src/sender/sign.ts';
import { ask, folder, world } from './kit.ts';

const TASK = { kind: 'task', transport: 'tool', status: 'completed' } as const;

/** A delivery as a raw HTTP request. */
function rawOf({ request }: DeliveryFull): string {
  const { pathname } = new URL(request.url);
  const lines = request.headers.map(([name, value]) => `${name}: ${value}`);
  return [`${request.method} ${pathname} HTTP/1.1`, ...lines, '', request.body.text].join('\r\n');
}

describe('captures that are pasted', () => {
  it('a raw request, a HAR and a curl command are explained by the sellers, and sent again', async () => {
    const { dev, send, full } = await world();
    const sent = await full((await send({ payload: TASK, mistake: 'tampered-body' })).id);
    const { request } = sent;
    const har = {
      startedDateTime: new Date(sent.at).toISOString(),
      request: {
        method: 'POST',
        url: request.url,
        headers: request.headers.map(([name, value]) => ({ name, value })),
        postData: { text: request.body.text },
      },
    };
    const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
    const fields = request.headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
    const curl = `curl ${request.url} ${fields.join(' ')} --data-raw ${quoted(request.body.text)}`;
    for (const [form, text] of [
      ['raw HTTP', rawOf(sent)],
      ['HAR entry', JSON.stringify(har)],
      ['curl command', curl],
    ] as const) {
      const { status, body } = await ask<DeliveryFull>(dev, 'captures', { text });
      expect(status).toBe(200);
      expect(body).toMatchObject({ state: 'captured', what: form, scheme: 'signature', cause: sent.cause });
      expect(body.signatureBase).toBe(sent.signatureBase);
      expect(body.explanation?.findings).toEqual(sent.explanation?.findings);
      const again = await ask<DeliveryRow>(dev, `deliveries/${body.id}/resend`, { how: 'same' });
      expect(again.body).toMatchObject({
        status: 401,
        code: 'webhook_signature_digest_mismatch',
        asExpected: true,
        resent: { of: body.id, how: 'same' },
      });
      const anew = await ask<DeliveryRow>(dev, `deliveries/${body.id}/resend`, { how: 'anew' });
      expect(anew.body).toMatchObject({
        status: 200,
        asExpected: true,
        resent: { of: body.id, how: 'anew' },
      });
    }
  });

  it('another seller is explained by the keys that are pasted with it', async () => {
    const { dev } = await world();
    const { privateJwk, publicJwk } = await generateKey('ed25519');
    const url = 'https://buyer.example/hook';
    const body = JSON.stringify({ idempotency_key: crypto.randomUUID(), task_id: 't', status: 'working' });
    const { headers } = await signDelivery({ url, body, key: privateJwk });
    const lines = Object.entries({
      Host: 'buyer.example',
      ...headers,
      'Content-Length': String(body.length),
    }).map(([name, value]) => `${name}: ${value}`);
    const text = ['POST /hook HTTP/1.1', ...lines, '', body].join('\r\n');
    const known = await ask<DeliveryFull>(dev, 'captures', {
      text,
      keys: JSON.stringify({ keys: [publicJwk] }),
    });
    expect(known.body).toMatchObject({ explanation: { ok: true }, request: { url } });
    expect(known.body.scheme).toBeUndefined();
    const unknown = await ask<DeliveryFull>(dev, 'captures', { text });
    expect(unknown.body).toMatchObject({ cause: { cause: 'key-missing' } });
    for (const keys of ['', '{', '[]', '{"keys":[]}', '{"kty":"OKP"}']) {
      const wrong = await ask(dev, 'captures', { text, keys });
      expect([wrong.status, wrong.body.error?.code]).toEqual([400, 'unreadable_capture']);
    }
  });

  it('what cannot be read is one code, a file that a curl command names is not read, and nothing touches the disk', async () => {
    const cwd = folder();
    writeFileSync(join(cwd, 'secret.json'), '{"secret":"of-the-machine"}');
    const { dev } = await world({ dev: { cwd } });
    const before = readdirSync(cwd, { recursive: true });
    const texts = [
      '',
      'hello',
      '{}',
      'GET / HTTP/1.1',
      `curl http://127.0.0.1/ --data-binary @${join(cwd, 'secret.json')}`,
      'curl http://127.0.0.1/ --data @secret.json',
      'curl http://127.0.0.1/ -d @/etc/passwd',
    ];
    for (const text of texts) {
      const { status, body } = await ask(dev, 'captures', { text });
      expect([text, status, body.error?.code]).toEqual([text, 400, 'unreadable_capture']);
      expect(JSON.stringify(body)).not.toContain('of-the-machine');
    }
    for (const header of ['constructor: x', '__proto__: x', 'Signature: sig1=:a:']) {
      const odd = `POST /x HTTP/1.1\r\nHost: h\r\n${header}\r\nContent-Length: 2\r\n\r\n{}`;
      expect([header, (await ask(dev, 'captures', { text: odd })).status]).toEqual([header, 200]);
    }
    const long = await ask(dev, 'captures', { text: 'x'.repeat(4 * 1024 * 1024 + 1) });
    expect([long.status, long.body.error?.code]).toEqual([413, 'body_too_large']);
    expect(readdirSync(cwd, { recursive: true })).toEqual(before);
  });

  it('one with a header that no client sends is told so when it is to be sent', async () => {
    const { dev } = await world();
    const text = 'P{ST /hook HTTP/1.1\r\nHost: x\r\n\r\n{}';
    const { status } = await ask<DeliveryFull>(dev, 'captures', { text });
    expect(status).toBe(400);
    const odd = JSON.stringify({
      startedDateTime: '',
      request: {
        method: 'PO ST',
        url: 'http://x/',
        headers: [{ name: 'X-Ä', value: 'y' }],
        postData: { text: '{}' },
      },
    });
    const taken = await ask<DeliveryFull>(dev, 'captures', { text: odd });
    expect(taken.status).toBe(200);
    const again = await ask(dev, `deliveries/${taken.body.id}/resend`, { how: 'same' });
    expect([again.status, again.body.error?.code]).toEqual([400, 'bad_request']);
  });
});

describe('captures of the folder', () => {
  it('are listed, the newest first, and explained as the receiver wrote them', async () => {
    const cwd = folder();
    const path = join(cwd, 'refused');
    const { dev, send } = await world({ dev: { cwd }, onRefused: captureRefused(path) });
    expect((await ask<CaptureList>(dev, 'captures')).body).toEqual({ folder: 'refused', files: [] });
    const none = await world();
    expect((await ask<CaptureList>(none.dev, 'captures')).body).toEqual({ folder: 'refused' });
    const { status } = await send({ payload: TASK, mistake: 'tampered-body' });
    expect(status).toBe(401);
    const list = async (): Promise<CaptureList> => (await ask<CaptureList>(dev, 'captures')).body;
    await expect.poll(async () => (await list()).files?.length).toBe(1);
    const [file] = (await list()).files ?? [];
    await expect
      .poll(async () => (await ask<DeliveryFull>(dev, 'captures', { file: file?.file })).body)
      .toMatchObject({
        state: 'captured',
        scheme: 'signature',
        cause: { cause: 'body-trailing-newline' },
      });
  });

  it('are read by their names alone: no path, no link, no pipe, nothing long', async () => {
    const cwd = folder();
    const path = join(cwd, 'refused');
    mkdirSync(path);
    writeFileSync(join(cwd, 'outside.http'), 'POST / HTTP/1.1\r\nHost: outside\r\n\r\n{}');
    mkdirSync(join(path, 'folder.http'));
    symlinkSync(join(cwd, 'outside.http'), join(path, 'link.http'));
    execFileSync('mkfifo', [join(path, 'pipe.http')]);
    writeFileSync(join(path, 'long.http'), '');
    truncateSync(join(path, 'long.http'), 4 * 1024 * 1024 + 1);
    writeFileSync(join(path, 'note.txt'), 'POST / HTTP/1.1\r\nHost: x\r\n\r\n{}');
    const { dev } = await world({ dev: { cwd } });
    const { body } = await ask<CaptureList>(dev, 'captures');
    expect(body.files?.map(({ file }) => file)).toEqual(['long.http']);
    const names = [
      '../outside.http',
      '..%2foutside.http',
      join(cwd, 'outside.http'),
      'link.http',
      'pipe.http',
      'folder.http',
      'note.txt',
      '.http/../../outside.http',
      '..\\outside.http',
      'none.http',
      '\0.http',
      '',
    ];
    for (const file of names) {
      const answer = await ask(dev, 'captures', { file });
      expect([file, answer.status, answer.body.error?.code]).toEqual([file, 404, 'not_found']);
    }
    const long = await ask(dev, 'captures', { file: 'long.http' });
    expect([long.status, long.body.error?.code]).toEqual([400, 'unreadable_capture']);
  });
});

describe('a large capture', () => {
  it('is explained in part, so that dev goes on answering', async () => {
    const { dev, send, full } = await world({ listener: (_, res) => void res.end() });
    const rows = Array.from({ length: 8_000 }, (_, id) => ({
      id,
      value: id * 1.5,
      name: `Some name ${id}`,
      tags: ['a', 'b'],
    }));
    const text = JSON.stringify({
      idempotency_key: crypto.randomUUID(),
      task_id: 't',
      status: 'completed',
      result: { rows },
    });
    const { request } = await full((await send({ payload: { kind: 'body', text } })).id);
    const lines = request.headers.map(([name, value]) => `${name}: ${value}`);
    const body = text.replace('Some name 1"', 'Some name 2"');
    const capture = [`POST /hook HTTP/1.1`, ...lines, '', body].join('\r\n');
    const { body: taken } = await ask<DeliveryFull>(dev, 'captures', { text: capture });
    expect(taken.cause?.cause).toBe('body-other');
    expect(taken.explanation?.findings[0]?.says).toContain('Not searched further');
  });
});
