import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createServer } from 'node:http';
import { webhookHandler } from '../../src/adapters/node.ts';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { startNginx } from '../support/nginx.ts';
import { AUTHORITY, MAX_BODY_BYTES } from './contract/cases.ts';
import { givenFor, openSetup, type Setup } from './contract/setup.ts';
import { overHttp1 } from './contract/serving.ts';
import { firstAnswer, message, type WireAnswer, type WireRequest } from './contract/wire.ts';
import { rawClient } from './raw-client.ts';

let seller: FakeSeller;
beforeAll(async () => {
  seller = await createFakeSeller();
});
afterAll(() => seller.close());

interface Proxied extends AsyncDisposable {
  readonly setup: Setup;
  readonly ask: (request: WireRequest) => Promise<WireAnswer>;
}

/** A receiver on Node's http behind a real nginx. */
async function behind(
  location: (upstream: string) => string,
  options: Parameters<typeof openSetup>[1] = {},
): Promise<Proxied> {
  const setup = openSetup(seller, options);
  const door = await overHttp1(createServer(webhookHandler(setup.receiver)));
  const nginx = await startNginx(location(`http://127.0.0.1:${door.port}`));
  return {
    setup,
    ask: async (request) => {
      const client = await rawClient(nginx.port);
      client.socket.write(message({ ...request, headers: [...request.headers, ['Connection', 'close']] }));
      const answer = firstAnswer(await client.closed());
      // What nginx says of itself.
      return { ...answer, headers: answer.headers.filter(([name]) => name !== 'server') };
    },
    [Symbol.asyncDispose]: async () => {
      await nginx[Symbol.asyncDispose]();
      await door[Symbol.asyncDispose]();
      await setup.receiver.stop();
    },
  };
}

/** As every tutorial has it: Host becomes $proxy_host. */
const plain = (upstream: string): string => `location / { proxy_pass ${upstream}; }`;
const passingHost = (upstream: string): string =>
  `location / { proxy_pass ${upstream}; proxy_set_header Host $host; }`;

describe('behind nginx with its default proxy_pass, which rewrites Host', () => {
  test('a valid delivery: 503, not 401, with an alarm and a log line that name the option', async () => {
    await using proxied = await behind(plain);
    const { ask, setup } = proxied;
    const answer = await ask(await givenFor(seller).signed());
    expect(answer).toMatchObject({ status: 503, body: '' });
    expect(answer.headers).toContainEqual(['retry-after', '5']);
    expect(answer.headers.map(([name]) => name)).not.toContain('www-authenticate');
    expect(setup.outcomes.map(({ kind, code }) => [kind, code])).toEqual([
      ['unavailable', 'webhook_target_uri_malformed'],
    ]);
    expect(setup.alarms).toEqual(['host_rewritten']);
    expect(setup.warnings.join()).toMatch(/127\.0\.0\.1:\d+.*buyer\.example.*hostCheck: 'off'/);
    expect(setup.accepts()).toBe(0);
  });

  test('the log names the option once, not for every delivery', async () => {
    await using proxied = await behind(plain);
    const { ask, setup } = proxied;
    for (let delivery = 0; delivery < 3; delivery += 1) {
      expect((await ask(await givenFor(seller).signed())).status).toBe(503);
    }
    expect(setup.warnings.filter((line) => line.includes('hostCheck'))).toHaveLength(1);
    expect(setup.outcomes).toHaveLength(3);
  });

  test('a delivery that was signed for another URL stays 401 without an alarm', async () => {
    await using proxied = await behind(plain);
    const { ask, setup } = proxied;
    const answer = await ask(await givenFor(seller).signed({ url: 'https://other.example/webhooks/proto' }));
    expect(answer.status).toBe(401);
    expect(answer.headers).toContainEqual([
      'www-authenticate',
      'Signature error="webhook_target_uri_malformed"',
    ]);
    expect(setup.alarms).toEqual([]);
  });

  test("hostCheck: 'off': publicUrl alone decides", async () => {
    await using proxied = await behind(plain, { hostCheck: 'off' });
    const { ask, setup } = proxied;
    const event = seller.payloads.tool('completed');
    expect((await ask(await givenFor(seller).signed({ payload: event }))).status).toBe(200);
    const other = await ask(await givenFor(seller).signed({ url: 'https://other.example/webhooks/proto' }));
    expect(other.status).toBe(401);
    expect(setup.handled).toEqual([event.idempotency_key]);
  });

  test('X-Forwarded-Host is ignored', async () => {
    const upstreamHeaders = (upstream: string): string =>
      `location / { proxy_pass ${upstream}; proxy_set_header X-Forwarded-Host $host; proxy_set_header X-Forwarded-Proto https; }`;
    await using proxied = await behind(upstreamHeaders);
    expect((await proxied.ask(await givenFor(seller).signed())).status).toBe(503);
    expect(proxied.setup.alarms).toEqual(['host_rewritten']);
  });
});

describe('two bases behind nginx (verification.md §4.16)', () => {
  const publicUrl = ['https://new.example/webhooks/*', 'https://old.example/webhooks/*'];
  const [fresh, old] = ['https://new.example/webhooks/proto', 'https://old.example/webhooks/proto'] as const;
  /** A valid delivery for each, at its own Host. */
  const deliveries = (): Promise<WireRequest[]> =>
    Promise.all(
      [fresh, old].map(async (url) => {
        const signed = await givenFor(seller).signed({ url });
        const headers = signed.headers.filter(([name]) => name !== 'Host');
        return { ...signed, headers: [['Host', new URL(url).host], ...headers] as WireRequest['headers'] };
      }),
    );
  const askBoth = async ({ ask }: Proxied): Promise<number[]> => {
    const statuses: number[] = [];
    for (const request of await deliveries()) statuses.push((await ask(request)).status);
    return statuses;
  };
  const fixed = (host: string) => (upstream: string) =>
    `location / { proxy_pass ${upstream}; proxy_set_header Host ${host}; }`;

  test.each([
    ['that passes Host on', passingHost, 'strict', [200, 200]],
    ['that rewrites Host', plain, 'strict', [503, 503]],
    ['that rewrites Host', plain, 'off', [200, 200]],
    ['that makes one Host of both', fixed('new.example'), 'strict', [200, 503]],
    ['that makes one Host of both', fixed('new.example'), 'off', [200, 200]],
  ] as const)("%s: hostCheck '%3$s'", async (_, location, hostCheck, statuses) => {
    await using proxied = await behind(location, { publicUrl, hostCheck });
    expect(await askBoth(proxied)).toEqual(statuses);
    const { outcomes, alarms, handled } = proxied.setup;
    const accepted = [fresh, old].filter((_url, i) => statuses[i] === 200);
    expect(outcomes.filter(({ kind }) => kind === 'accepted').map(({ url }) => url)).toEqual(accepted);
    expect(new Set(alarms)).toEqual(new Set(accepted.length === 2 ? [] : ['host_rewritten']));
    expect(handled).toHaveLength(accepted.length);
  });
});

describe('behind nginx that passes Host on', () => {
  test('answers are the receiver’s, byte for byte', async () => {
    await using proxied = await behind(passingHost);
    const { ask, setup } = proxied;
    const first = await givenFor(seller).signed();
    expect(await ask(first)).toEqual({ status: 200, headers: [['content-length', '0']], body: '' });
    expect(await ask(first)).toEqual({
      status: 401,
      headers: [
        ['content-length', '0'],
        ['www-authenticate', 'Signature error="webhook_signature_replayed"'],
      ],
      body: '',
    });
    expect(await ask({ ...first, method: 'PUT' })).toEqual({
      status: 405,
      headers: [
        ['allow', 'POST'],
        ['content-length', '0'],
      ],
      body: '',
    });
    const envelope = await ask(await givenFor(seller).signed({ payload: { task_id: 't' } }));
    expect(envelope.status).toBe(400);
    expect(JSON.parse(envelope.body)).toMatchObject({ error: { code: 'missing_idempotency_key' } });
    expect(setup.handled).toHaveLength(1);
  });

  test('forged X-Forwarded-* headers are ignored', async () => {
    await using proxied = await behind(passingHost);
    const request = await givenFor(seller).signed();
    const forged = [
      ['X-Forwarded-Host', 'other.example'],
      ['X-Forwarded-Proto', 'http'],
    ] as const;
    expect((await proxied.ask({ ...request, headers: [...request.headers, ...forged] })).status).toBe(200);
  });

  test('a body over the cap, chunked or not, is 413', async () => {
    await using proxied = await behind(passingHost);
    const { ask, setup } = proxied;
    const request = await givenFor(seller).signed({ payload: ' '.repeat(MAX_BODY_BYTES + 1) });
    expect((await ask(request)).status).toBe(413);
    expect((await ask({ ...request, chunked: true })).status).toBe(413);
    expect(setup.accepts()).toBe(0);
  });

  test('under a publicUrl that ends in /*, targets pass through unchanged', async () => {
    await using proxied = await behind(passingHost, { publicUrl: `https://${AUTHORITY}/webhooks/*` });
    for (const target of ['/webhooks/a%2fb/?z=1&a=2', '/webhooks//a', "/webhooks/a?q='x'&e="]) {
      const request = await givenFor(seller).signed({ url: `https://${AUTHORITY}${target}` });
      expect([target, (await proxied.ask(request)).status]).toEqual([target, 200]);
    }
  });

  test('a proxy_pass that cuts the path works with an exact publicUrl', async () => {
    const cutting = (upstream: string): string =>
      `location /webhooks/ { proxy_pass ${upstream}/; proxy_set_header Host $host; }`;
    await using proxied = await behind(cutting);
    expect((await proxied.ask(await givenFor(seller).signed())).status).toBe(200);
  });

  test('and with one that ends in /* the log says what to change, and the seller gets 503', async () => {
    const cutting = (upstream: string): string =>
      `location /webhooks/ { proxy_pass ${upstream}/; proxy_set_header Host $host; }`;
    await using proxied = await behind(cutting, { publicUrl: `https://${AUTHORITY}/webhooks/*` });
    expect((await proxied.ask(await givenFor(seller).signed())).status).toBe(503);
    expect(proxied.setup.outcomes.map((outcome) => outcome.code)).toEqual(['misconfigured']);
    expect(proxied.setup.alarms).toEqual(['misconfigured']);
  });
});
