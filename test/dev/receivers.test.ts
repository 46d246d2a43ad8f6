import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { DeliveryRow } from '../../src/dev/for-tests.ts';
import { freePort } from '../support/free-port.ts';
import { ask, SCHEMES, startedDev, world } from './kit.ts';

const payload = { kind: 'task', transport: 'tool', status: 'completed' } as const;

describe('a receiver that answers badly', () => {
  const page = '<!doctype html><title>Welcome</title>';
  const answers: Readonly<Record<string, readonly [RequestListener, next: string]>> = {
    'nothing is mounted there': [
      (_, res) => void res.writeHead(404).end(),
      'Nothing is mounted at POST /webhooks/signature (404)',
    ],
    'a framework without that route, as Express says it': [
      (_, res) => void res.writeHead(404, { 'Content-Type': 'text/html; charset=utf-8' }).end(page),
      'Nothing is mounted at POST /webhooks/signature (404)',
    ],
    'a page of HTML': [
      (_, res) => void res.writeHead(500, { 'Content-Type': 'text/html' }).end(page),
      'A page of HTML came from POST /webhooks/signature',
    ],
    'GET alone': [(_, res) => void res.writeHead(405).end(), 'does not take POST'],
    'a redirect': [(_, res) => void res.writeHead(302, { Location: '/there' }).end(), 'redirects to /there'],
    'no seller of ours': [
      (_, res) =>
        void res
          .writeHead(401, { 'WWW-Authenticate': 'Signature error="webhook_signature_key_unknown"' })
          .end(),
      "Paste into its options: senders: { '/webhooks/signature': [{ agentUrl: 'http://127.0.0.1:",
    ],
    'another URL': [
      (_, res) =>
        void res.writeHead(401, { 'WWW-Authenticate': 'Signature error="webhook_signature_invalid"' }).end(),
      'publicUrl has to be exactly http://127.0.0.1:',
    ],
    'a fault': [(_, res) => void res.writeHead(503).end(), 'devHooks()'],
    'a fault, with what it may be': [
      (_, res) => void res.writeHead(503).end(),
      'a publicUrl that is not http://127.0.0.1:',
    ],
    'a fault, with the lines to paste': [
      (_, res) => void res.writeHead(503).end(),
      "import { devHooks } from 'proto-webhooks/testing';\n...devHooks(),",
    ],
    'another URL, with what was signed': [
      (_, res) =>
        void res
          .writeHead(401, { 'WWW-Authenticate': 'Signature error="webhook_target_uri_malformed"' })
          .end(),
      'This delivery was signed for http://127.0.0.1:',
    ],
    'an answer that is none': [(_, res) => void res.writeHead(299).destroy(), 'Nothing answers at'],
    'a teapot': [(_, res) => void res.writeHead(418).end(), 'answered 418'],
  };
  it.each(Object.keys(answers))('%s: one next step says what to do', async (name) => {
    const [listener, next] = answers[name] ?? [() => undefined, ''];
    const { send } = await world({ listener });
    const row = await send({ payload });
    expect(row.asExpected).toBe(false);
    expect(row.next).toContain(next);
  });

  it('accepts what it has to refuse', async () => {
    const { send } = await world({ listener: (_, res) => void res.writeHead(200).end() });
    const row = await send({ payload, mistake: 'tampered-body' });
    expect(row).toMatchObject({
      asExpected: false,
      next: expect.stringContaining('accepted what it has to refuse (401 webhook_signature_digest_mismatch)'),
    });
    const proof = await send({ payload: { kind: 'challenge' } });
    expect(proof).toMatchObject({
      status: 200,
      asExpected: false,
      next: expect.stringContaining('{"challenge": "<the same>"}'),
    });
  });

  it('refuses a proof of control: the option to paste', async () => {
    const { send } = await world({ onChallenge: async () => false });
    expect(await send({ payload: { kind: 'challenge' } })).toMatchObject({
      status: 403,
      next: expect.stringContaining('onChallenge: async ({ authMatches }) => authMatches,'),
    });
  });

  it('nobody listens, or nobody answers', async () => {
    const port = await freePort();
    const dev = await startedDev({ forward: `http://127.0.0.1:${port}/hook` });
    const { body } = await ask<DeliveryRow>(dev, 'send', { payload });
    expect(body).toMatchObject({
      state: 'unanswered',
      asExpected: false,
      next: expect.stringContaining('Start the receiver'),
    });
    const { send } = await world({ listener: () => undefined, dev: { timeoutMs: 50 } });
    expect(await send({ payload })).toMatchObject({
      state: 'unanswered',
      next: expect.stringContaining('No answer within 10 s'),
    });
  });

  it('an endless, a huge and a binary answer are kept in part, and a header that steers a terminal is text', async () => {
    const bytes = Buffer.alloc(100_000, 0xff);
    const listener: RequestListener = (req, res) => {
      res.writeHead(200, { 'X-Evil': '\u009b2J<script>' });
      if (req.url?.endsWith('hmac')) return void res.end(bytes);
      const fill = (): void => {
        while (!res.destroyed && res.write('<script>alert(1)</script>'));
      };
      res.on('drain', fill);
      return fill();
    };
    const { send, full } = await world({ listener });
    const endless = await full((await send({ payload })).id);
    expect(endless.answer?.body).toMatchObject({ cut: true, encoding: 'utf8' });
    expect(endless.answer?.body.bytes).toBeLessThanOrEqual(64 * 1024);
    const binary = await full((await send({ payload, scheme: 'hmac' })).id);
    expect(binary.answer?.body.cut).toBe(true);
    expect(binary.answer?.headers).toContainEqual(['x-evil', '\u009b2J<script>']);
  });
});

describe('deliveries', () => {
  it('show what was sent, the base, the answer and the explanation', async () => {
    const { dev, send, full, receiver } = await world();
    for (const scheme of SCHEMES) {
      const shown = await full((await send({ payload, scheme, edition: '3.2' })).id);
      const url = `${receiver.url}/webhooks/${scheme}`;
      expect(shown).toMatchObject({
        scheme,
        edition: '3.2',
        what: 'completed (tool)',
        request: { method: 'POST', url, to: url },
        answer: { outcome: 'success', status: 200 },
        explanation: { ok: true, findings: [] },
        tellings: [],
      });
      expect(JSON.parse(shown.request.body.text)).toMatchObject({ status: 'completed' });
      expect(shown.request.headers).toContainEqual(['Host', new URL(url).host]);
      const base = { signature: `"@target-uri": ${url}`, hmac: '{"idempotency_key":', bearer: undefined }[
        scheme
      ];
      if (base === undefined) expect(shown.signatureBase).toBeUndefined();
      else expect(shown.signatureBase).toContain(base);
    }
    const { body } = await ask<{ rows: DeliveryRow[] }>(dev, 'deliveries');
    expect(body.rows.map(({ id }) => id)).toEqual([3, 2, 1]);
    const older = await ask<{ rows: DeliveryRow[] }>(dev, 'deliveries?before=3');
    expect(older.body.rows.map(({ id }) => id)).toEqual([2, 1]);
  });

  it('are kept up to 1,000 and 64 MiB, and a long body in part', async () => {
    const { dev, send, full } = await world({ listener: (_, res) => void res.writeHead(413).end() });
    const first = await send({ payload, mistake: 'oversize' });
    const shown = await full(first.id);
    expect(shown.request.body).toMatchObject({ bytes: 1_048_577, cut: true });
    expect(shown.request.body.text).toHaveLength(1_048_576);
    const again = await ask(dev, `deliveries/${first.id}/resend`, { how: 'same' });
    expect([again.status, again.body.error?.code]).toEqual([409, 'not_kept']);
  });

  it('the same bytes again are a replay, and a duplicate by another scheme; signed anew they are a duplicate', async () => {
    const { dev, send } = await world();
    const resend = async (id: number, how: string): Promise<DeliveryRow> =>
      (await ask<DeliveryRow>(dev, `deliveries/${id}/resend`, { how })).body;
    for (const scheme of SCHEMES) {
      const { id } = await send({ payload, scheme });
      const expected =
        scheme === 'signature'
          ? { status: 401, code: 'webhook_signature_replayed', cause: { cause: 'replay' } }
          : { status: 200 };
      expect(await resend(id, 'same')).toMatchObject({
        ...expected,
        asExpected: true,
        resent: { of: id, how: 'same' },
      });
      expect(await resend(id, 'anew')).toMatchObject({ status: 200, asExpected: true });
    }
    const { id } = await send({ payload: { kind: 'challenge' }, scheme: 'hmac' });
    expect(await resend(id, 'anew')).toMatchObject({ status: 200, asExpected: true });
  });

  it('are posted to --forward and signed for --public-url, whatever a capture says', async () => {
    const asked: (string | undefined)[] = [];
    const other = createServer((req, res) => {
      asked.push(req.url);
      res.end();
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const { port } = other.address() as { port: number };
    const { send, full, dev, receiver } = await world({
      dev: { publicUrl: 'https://buyer.example/webhooks/*' },
      listener: (_, res) => void res.end(),
    });
    const shown = await full((await send({ payload })).id);
    expect(shown.request).toMatchObject({
      url: 'https://buyer.example/webhooks/signature',
      to: `${receiver.url}/webhooks/signature`,
    });
    expect(shown.request.headers).toContainEqual(['Host', 'buyer.example']);
    const text = `POST http://127.0.0.1:${port}/there HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n{}`;
    const { body } = await ask<DeliveryRow>(dev, 'captures', { text });
    for (const how of ['same', 'anew'])
      expect((await ask<DeliveryRow>(dev, `deliveries/${body.id}/resend`, { how })).body.status).toBe(200);
    expect(asked).toEqual([]);
  });
});

describe('the watch of the receiver', () => {
  it('tells that it goes, and finds it again by itself', async () => {
    const port = await freePort();
    const told: string[] = [];
    const dev = await startedDev({
      forward: `http://127.0.0.1:${port}/hook`,
      receiver: ({ state }) => told.push(state),
    });
    const state = async (): Promise<unknown> =>
      (await ask<{ receiver: unknown }>(dev, 'state')).body.receiver;
    await expect.poll(state).toMatchObject({ state: 'down', error: 'ECONNREFUSED' });
    const server = createServer().listen(port, '127.0.0.1');
    await expect.poll(state, { timeout: 5_000 }).toMatchObject({ state: 'up' });
    server.close();
    server.closeAllConnections();
    await expect.poll(state, { timeout: 5_000 }).toMatchObject({ state: 'down' });
    expect(told).toEqual(['down', 'up', 'down']);
  });
});
