import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { rawClient } from '../adapters/raw-client.ts';
import { ask, folder, startedDev } from './kit.ts';

interface Raw {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** A request with header lines as they are given, `Host` among them. */
async function raw(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  { method = 'GET', body }: { readonly method?: string; readonly body?: string } = {},
): Promise<Raw> {
  const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) };
}

const codeIn = ({ body }: Raw): string => (JSON.parse(body) as { error: { code: string } }).error.code;

describe('who may ask', () => {
  it('needs a Host of this machine with its port', async () => {
    const { port, token } = await startedDev();
    const authorization = `Bearer ${token}`;
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`]) {
      expect((await raw(port, '/api/state', { host, authorization })).status).toBe(200);
    }
    const others = [
      '127.0.0.1',
      `evil.example:${port}`,
      `127.0.0.1:${port}.evil.example`,
      `127.0.0.1:${port + 1}`,
      `0.0.0.0:${port}`,
      `localhost.:${port}`,
    ];
    for (const host of others) {
      for (const path of ['/api/state', '/', '/.well-known/brand.json', '/proto-webhooks-dev/signature']) {
        const answer = await raw(port, path, { host, authorization });
        expect([host, path, answer.status, codeIn(answer)]).toEqual([host, path, 403, 'forbidden_host']);
      }
    }
  });

  it('two Hosts are none, and none is none', async () => {
    const { port, token } = await startedDev();
    const client = await rawClient(port);
    const host = `Host: 127.0.0.1:${port}`;
    client.send(
      'GET /api/state HTTP/1.1',
      host,
      'Host: evil.example',
      `Authorization: Bearer ${token}`,
      'Connection: close',
      '',
      '',
    );
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 (?:400|403) /);
    const without = await rawClient(port);
    without.send('GET /api/state HTTP/1.0', `Authorization: Bearer ${token}`, '', '');
    expect(await without.closed()).toContain('forbidden_host');
  });

  it('takes its own Origin alone, and never sends CORS headers', async () => {
    const { port, token } = await startedDev();
    const headers = { host: `127.0.0.1:${port}`, authorization: `Bearer ${token}` };
    for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`, `http://[::1]:${port}`]) {
      const answer = await raw(port, '/api/state', { ...headers, origin });
      expect(answer.status).toBe(200);
      expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
    for (const origin of [
      'http://evil.example',
      `https://127.0.0.1:${port}`,
      'null',
      `http://127.0.0.1:${port + 1}`,
      '',
    ]) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const answer = await raw(port, '/api/state', { ...headers, origin }, { method });
        expect([origin, method, answer.status, codeIn(answer)]).toEqual([
          origin,
          method,
          403,
          'forbidden_origin',
        ]);
      }
    }
  });

  it('needs the token, whole, for everything below /api/', async () => {
    const { port, token } = await startedDev();
    const host = `127.0.0.1:${port}`;
    const wrong = [
      undefined,
      '',
      'Bearer',
      `Bearer ${token.slice(1)}`,
      `Bearer ${token}x`,
      `Basic ${token}`,
      `Bearer  ${token}`,
      `Bearer ${token.toLowerCase()}x`,
    ];
    for (const authorization of wrong) {
      for (const path of ['/api/state', '/api/events', '/api/nothing', '/api/']) {
        const answer = await raw(port, path, { host, ...(authorization !== undefined && { authorization }) });
        expect([authorization, path, answer.status, codeIn(answer)]).toEqual([
          authorization,
          path,
          401,
          'unauthorized',
        ]);
      }
    }
    expect((await raw(port, `/api/state?token=${token}`, { host })).status).toBe(401);
  });
});

describe('requests', () => {
  it('a wrong one has a code that stays', async () => {
    const dev = await startedDev();
    const codes = async (path: string, body?: object, init?: RequestInit): Promise<readonly unknown[]> => {
      const { status, body: answer } = await ask(dev, path, body, init);
      return [status, answer.error?.code];
    };
    expect(await codes('nothing')).toEqual([404, 'not_found']);
    expect(await codes('constructor')).toEqual([404, 'not_found']);
    expect(await codes('deliveries/1')).toEqual([404, 'not_found']);
    expect(await codes('deliveries/1/resend', { how: 'same' })).toEqual([404, 'not_found']);
    expect(await codes('deliveries?before=x')).toEqual([400, 'bad_request']);
    expect(await codes('send')).toEqual([405, 'method_not_allowed']);
    expect(await codes('state', {})).toEqual([405, 'method_not_allowed']);
    expect((await ask(dev, 'send')).headers.get('allow')).toBe('POST');
    expect(
      await codes(
        'send',
        {},
        { headers: { Authorization: `Bearer ${dev.token}`, 'Content-Type': 'text/plain' } },
      ),
    ).toEqual([415, 'unsupported_media_type']);
    expect(await codes('send', {})).toEqual([400, 'bad_request']);
    expect(await codes('send', {}, { body: '{' })).toEqual([400, 'bad_request']);
    expect(await codes('send', {}, { body: '{"a":1,"a":2}' })).toEqual([400, 'bad_request']);
    expect(await codes('scenarios/nothing', {})).toEqual([404, 'unknown_scenario']);
    expect(await codes('scenarios/__proto__', {})).toEqual([404, 'unknown_scenario']);
    expect(await codes('scenarios/replay', { scheme: 'hmac' })).toEqual([400, 'bad_request']);
    const payload = { kind: 'challenge' };
    for (const more of [
      { scheme: 'none' },
      { edition: '2.0' },
      { key: 'rsa' },
      { to: 'http://10.0.0.1/' },
      { url: 'http://10.0.0.1/' },
    ]) {
      expect(await codes('send', { payload, ...more })).toEqual([400, 'bad_request']);
    }
    const task = { kind: 'task', transport: 'tool', status: 'completed' };
    expect(await codes('send', { payload: { ...task, status: 'done' } })).toEqual([400, 'bad_request']);
    expect(await codes('send', { payload: { ...task, url: 'x' } })).toEqual([400, 'bad_request']);
    expect(await codes('send', { payload: task, mistake: 'none' })).toEqual([400, 'unknown_mistake']);
    expect(await codes('send', { payload: task, mistake: 'constructor' })).toEqual([400, 'unknown_mistake']);
    for (const scheme of ['hmac', 'bearer']) {
      expect(await codes('send', { payload: task, scheme, mistake: 'unknown-key' })).toEqual([
        400,
        'mistake_needs_signature',
      ]);
    }
    expect(await codes('told', { hook: 'none' })).toEqual([400, 'bad_request']);
    expect((await ask<{ rows: unknown[] }>(dev, 'deliveries')).body.rows).toEqual([]);
  });

  it('a body is bounded, also one that does not say how long it is', async () => {
    const { port, token } = await startedDev();
    const head = [
      'POST /api/send HTTP/1.1',
      `Host: 127.0.0.1:${port}`,
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
    ];
    const told = await rawClient(port);
    told.send(...head, 'Content-Length: 99999999999', '', '{');
    expect(await told.closed()).toMatch(/^HTTP\/1\.1 413 .*"body_too_large"/s);
    const endless = await rawClient(port);
    endless.send(...head, 'Transfer-Encoding: chunked', '', '');
    const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`;
    const timer = setInterval(() => endless.socket.writable && endless.socket.write(chunk), 1);
    expect(await endless.closed()).toMatch(/^HTTP\/1\.1 413 /);
    clearInterval(timer);
  });
});

describe('what needs no token', () => {
  it('brand.json and a JWKS for each seller, of public keys', async () => {
    const { port, sellers } = await startedDev();
    const got = async (path: string): Promise<unknown> =>
      (await fetch(`http://127.0.0.1:${port}${path}`)).json();
    const { agents } = (await got('/.well-known/brand.json')) as {
      agents: { url: string; jwks_uri: string }[];
    };
    expect(agents.map(({ url }) => url)).toEqual(sellers.map(({ agentUrl }) => agentUrl));
    const kids = new Set<unknown>();
    for (const { jwks_uri } of agents) {
      const { keys } = (await (await fetch(jwks_uri)).json()) as { keys: Record<string, unknown>[] };
      expect(keys.map(({ crv }) => crv)).toEqual(['Ed25519', 'P-256']);
      for (const key of keys) {
        expect(key).not.toHaveProperty('d');
        kids.add(key['kid']);
      }
    }
    expect(kids.size).toBe(6);
  });

  it('the page, with a policy that lets nothing else in, and no other file', async () => {
    const cwd = folder();
    mkdirSync(join(cwd, 'page'));
    for (const name of ['index.html', 'page.js', 'page.css']) writeFileSync(join(cwd, 'page', name), name);
    writeFileSync(join(cwd, 'page', 'other.js'), 'secret');
    writeFileSync(join(cwd, 'secret.js'), 'secret');
    const { port } = await startedDev({ cwd });
    const host = `127.0.0.1:${port}`;
    for (const [path, name] of [
      ['/', 'index.html'],
      ['/page.js', 'page.js'],
      ['/page.css', 'page.css'],
    ] as const) {
      const { status, body, headers } = await raw(port, path, { host });
      expect([status, body]).toEqual([200, name]);
      expect(headers).toMatchObject({
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
      });
    }
    const others = [
      '/other.js',
      '/../secret.js',
      '/%2e%2e/secret.js',
      '/page.js/../other.js',
      '//etc/passwd',
      '/.proto-webhooks/keys.json',
      '/api',
      'http://evil.example/',
      '*',
    ];
    for (const path of others) expect((await raw(port, path, { host })).status).toBe(404);
    expect((await raw(port, '/page.js', { host }, { method: 'POST' })).status).toBe(405);
  });
});
