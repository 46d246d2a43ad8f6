import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  ConfigError,
  createReceiver,
  PermanentError,
  type Receiver,
  type ReceiverOptions,
} from '../../src/index.ts';
import { signHmac } from '../../src/sender/sign.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { tellDev } from '../../src/testing/for-tests.ts';
import { devHooks, samplePayloads } from '../../src/testing/index.ts';
import { listening, type Listening } from '../adapters/raw-client.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

const HOOKS = { url: 'http://127.0.0.1:3000/webhooks/dev', secret: 'a shared secret of 32 characters' };
const OTHERS = { url: 'http://127.0.0.1:3000/webhooks/other', secret: 'another secret of 32 characters!' };
const DEV = 'http://127.0.0.1:4646/proto-webhooks-dev/hmac';
type Told = Parameters<ReturnType<typeof tellDev>>[0];

const payloads = samplePayloads();
const LONG = 3_600_000;

/** What stands in for dev: it keeps what is told, and asks for its token. */
interface Recording extends Listening {
  readonly told: readonly Told[];
  readonly asked: { count: number };
}

async function recording(token: string): Promise<Recording> {
  const told: Told[] = [];
  const asked = { count: 0 };
  const server = await listening((req, res) => {
    asked.count += 1;
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const fits =
        req.method === 'POST' &&
        req.url === '/api/told' &&
        req.headers['content-type'] === 'application/json' &&
        req.headers.authorization === `Bearer ${token}`;
      if (fits) told.push(JSON.parse(Buffer.concat(chunks).toString()) as Told);
      res.writeHead(fits ? 200 : 401).end();
    });
  });
  return { ...server, told, asked };
}

let dir: string;
let receiver: Receiver;

const writePlace = async (port: number, token: string): Promise<void> => {
  await writeFile(join(dir, 'port'), `${port}\n`);
  await writeFile(join(dir, 'token'), `${token}\n`);
};

function receiving(more: Partial<ReceiverOptions> = {}): Receiver {
  receiver = createReceiver({
    publicUrl: 'http://127.0.0.1:3000/webhooks/*',
    senders: {
      '/webhooks/dev': [{ agentUrl: DEV, auth: { hmac: { secret: HOOKS.secret } } }],
      '/webhooks/other': [
        { agentUrl: 'https://seller.example/mcp', auth: { hmac: { secret: OTHERS.secret } } },
      ],
    },
    allowLoopback: true,
    store: memoryStore(),
    logger: SILENT_LOGGER,
    handlers: { other: async () => undefined },
    ...devHooks({ dir }),
    ...more,
  });
  return receiver;
}

async function deliver(body: object, { url, secret } = HOOKS): Promise<number> {
  const signed = signHmac({ url, body, secret });
  const { response } = await receiver.verifyAndDispatch(signed.body, signed.headers, { url });
  return response.status;
}

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dev-hooks-'));
});
afterEach(async () => {
  await receiver.stop();
  await rm(dir, { recursive: true });
});

describe('what is told (dev.md §3.2)', () => {
  let dev: Recording;
  beforeEach(async () => {
    dev = await recording('the-token');
    await writePlace(dev.port, 'the-token');
  });
  afterEach(() => dev[Symbol.asyncDispose]());
  /** Those of deliveries, once there are so many. */
  const told = async (count: number, isMeant = ({ hook }: Told): boolean => hook !== 'alarm') => {
    const all = (): readonly Told[] => dev.told.filter(isMeant);
    await expect.poll(all).toHaveLength(count);
    return all();
  };

  it('an event as the handler got it, and the end of its run', async () => {
    const got: unknown[] = [];
    receiving({ handlers: { other: async (event) => void got.push(event) } });
    const body = payloads.tool('completed');
    expect(await deliver(body)).toBe(200);
    expect(await deliver(body)).toBe(200);
    const [handled, outcome, second] = await told(3);
    const key = body.idempotency_key;
    expect(handled).toMatchObject({
      hook: 'handled',
      sender: DEV,
      key,
      deliveryId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      taskId: body.task_id,
      status: 'completed',
      state: 'applied',
      run: 1,
    });
    const { deliveryId } = handled as Extract<Told, { hook: 'handled' }>;
    expect(outcome).toEqual({
      hook: 'outcome',
      sender: DEV,
      kind: 'accepted',
      state: 'applied',
      status: 200,
      key,
      deliveryId,
      event: JSON.parse(JSON.stringify(got[0])) as unknown,
    });
    expect(second).toMatchObject({ hook: 'outcome', kind: 'duplicate', key, deliveryId });
  });

  it.each([
    ['failed', 503, 'handler_failed', () => new Error('the table is away')],
    ['dead', 200, undefined, () => new PermanentError('the table is away')],
  ] as const)('a run that is %s, with the error', async (state, status, code, thrown) => {
    receiving({ handlers: { other: () => Promise.reject(thrown()) } });
    expect(await deliver(payloads.tool('completed'))).toBe(status);
    const [handled, outcome] = await told(2);
    expect(handled).toMatchObject({ state, error: expect.stringContaining('the table is away') as string });
    expect(outcome).toMatchObject({ status, ...(code !== undefined && { code }) });
  });

  it('a refusal that proves no sender, with its HMAC to find it by', async () => {
    receiving();
    const url = HOOKS.url;
    const signed = signHmac({ url, body: payloads.tool('completed'), secret: OTHERS.secret });
    const { response } = await receiver.verifyAndDispatch(signed.body, signed.headers, { url });
    expect(response.status).toBe(401);
    expect(await told(1)).toEqual([
      {
        hook: 'refused',
        status: 401,
        code: 'webhook_signature_invalid',
        detail: expect.any(String) as string,
        proof: signed.headers['x-proto-signature'],
      },
    ]);
  });

  it('a refusal of an event that is known: its outcome with its key', async () => {
    receiving({ edition: '3.2' });
    const body = payloads.tool('completed');
    expect(await deliver(body)).toBe(200);
    expect(await deliver({ ...body, message: 'changed' })).toBe(409);
    const all = await told(4);
    expect(all.slice(2).toSorted((a, b) => a.hook.localeCompare(b.hook))).toMatchObject([
      { hook: 'outcome', kind: 'refused', status: 409, key: body.idempotency_key },
      { hook: 'refused', sender: DEV, status: 409 },
    ]);
  });

  it('nothing of another seller, and what is about the receiver itself', async () => {
    const { onAlarm } = devHooks({ dir });
    receiving();
    expect(await deliver(payloads.tool('completed'), OTHERS)).toBe(200);
    const message = 'as an operator reads it';
    onAlarm({ code: 'clock_skew', message, sender: 'https://seller.example/mcp' });
    onAlarm({ code: 'clock_skew', message, sender: DEV, more: 'that is not told' });
    onAlarm({ code: 'durability_lowered', message });
    const isMeant = (one: Told): boolean => one.hook !== 'alarm' || one.message === message;
    expect(await told(2, isMeant)).toEqual([
      { hook: 'alarm', sender: DEV, code: 'clock_skew', message },
      { hook: 'alarm', code: 'durability_lowered', message },
    ]);
  });

  it('a proof of control, as the hook that decides it got it', async () => {
    const { onOutcome } = devHooks({ dir });
    receiving();
    const challenge = { kind: 'account', challenge: 'c'.repeat(32) };
    const response = { status: 200, headers: {}, body: '' };
    onOutcome({ kind: 'challenge', challenge, sender: DEV, response } as never);
    expect(await told(1)).toEqual([
      { hook: 'outcome', sender: DEV, kind: 'challenge', status: 200, event: challenge },
    ]);
  });

  it('of a large event, or one that a handler has made unfit, that it is left out', async () => {
    receiving({
      handlers: {
        other: async (event) => {
          const data = event.data as Record<string, unknown>;
          if (event.status === 'working') data['big'] = 5n;
          if (event.status === 'failed') data['self'] = data;
        },
      },
    });
    await deliver(payloads.tool('completed', { message: 'x'.repeat(300_000) }));
    await deliver(payloads.tool('working'));
    await deliver(payloads.tool('failed'));
    const outcomes = (await told(6)).filter(({ hook }) => hook === 'outcome');
    expect(outcomes).toMatchObject([
      { event: expect.stringMatching(/^Left out: 60\d{4} bytes of JSON\.$/) as string },
      { event: { data: { big: '5' } } },
      { event: expect.stringMatching(/^Has no JSON: /) as string },
    ]);
  });

  it('to the dev that is there now, at another port or with another token', async () => {
    receiving();
    await deliver(payloads.tool('completed'));
    await told(2);
    await writePlace(dev.port, 'a-former-token');
    await deliver(payloads.tool('completed'));
    await told(4);
    const next = await recording('its-token');
    await dev[Symbol.asyncDispose]();
    await writePlace(next.port, 'its-token');
    await deliver(payloads.tool('completed'));
    await expect.poll(() => next.told.length).toBe(2);
    dev = next;
  });

  it('never to a port that is none, and its process goes on', async () => {
    receiving();
    for (const port of ['99999', '0', '-1', '4646\n4647', 'x']) {
      await writeFile(join(dir, 'port'), `${port}\n`);
      await deliver(payloads.tool('completed'));
    }
    await writePlace(dev.port, 'the-token');
    await expect
      .poll(async () => {
        await deliver(payloads.tool('completed'));
        return dev.told.length;
      })
      .toBeGreaterThan(0);
  });

  it.each([404, 200])(
    'to another program at dev’s port, which answers %i without an end, no longer',
    async (status) => {
      await using stranger = await listening((_req, res: ServerResponse) => {
        res.writeHead(status).write('x');
        if (status === 404) res.end();
      });
      const tell = tellDev(dir, 200);
      await writePlace(stranger.port, 'the-token');
      const one: Told = { hook: 'alarm', code: 'a', message: 'b' };
      tell(one);
      await writePlace(dev.port, 'the-token');
      await expect
        .poll(() => {
          tell(one);
          return dev.told.length;
        })
        .toBeGreaterThan(0);
    },
  );

  it('with a token that is refused, nothing, and it is asked again only when there is more', async () => {
    await writePlace(dev.port, 'a-former-token');
    receiving();
    await deliver(payloads.tool('completed'));
    await expect.poll(() => dev.asked.count).toBe(1);
    await writePlace(dev.port, 'the-token');
    await expect
      .poll(async () => {
        await deliver(payloads.tool('completed'));
        return dev.told.length;
      })
      .toBeGreaterThan(0);
  });
});

describe('where nobody listens', () => {
  it('answers are as ever, and what was told before dev came is dropped', async () => {
    receiving();
    for (let at = 0; at < 3; at += 1) expect(await deliver(payloads.tool('completed'))).toBe(200);
    await using dev = await recording('the-token');
    await writePlace(dev.port, 'the-token');
    await expect
      .poll(async () => {
        expect(await deliver(payloads.tool('completed'))).toBe(200);
        return dev.told.length;
      })
      .toBeGreaterThan(0);
  });

  it.each([
    ['a port that is none', '0', 'token'],
    ['a port that is none', '46466', ''],
    ['a token that is none', '4646', 'a\ntoken'],
  ])('%s: %j %j', async (_name, port, token) => {
    await writePlace(port as never, token);
    receiving();
    expect(await deliver(payloads.tool('completed'))).toBe(200);
  });

  it('at most 256 wait behind the one that is posted, the first ones', async () => {
    receiving();
    const held: ServerResponse[] = [];
    let answering = false;
    let count = 0;
    await using slow = await listening((_req, res) => {
      count += 1;
      if (answering) res.end();
      else held.push(res);
    });
    await writePlace(slow.port, 'the-token');
    const tell = tellDev(dir, LONG);
    const alarm = { hook: 'alarm', code: 'clock_skew', message: 'as an operator reads it' } as const;
    for (let at = 0; at < 1000; at += 1) tell(alarm);
    await expect.poll(() => held.length).toBe(1);
    answering = true;
    held[0]?.end();
    await expect.poll(() => count).toBe(257);
    // What is told next comes next: nothing else waited.
    tell(alarm);
    await expect.poll(() => count).toBe(258);
  });

  it('the process ends while a dev hangs', async () => {
    receiving();
    await using hanging = await listening(() => undefined);
    await writePlace(hanging.port, 'the-token');
    const program = fileURLToPath(new URL('fixtures/tells-and-ends.ts', import.meta.url));
    const ended = promisify(execFile)(process.execPath, [program, dir]);
    await once(hanging.server, 'connection');
    expect((await ended).stdout).toBe('told\n');
  });
});

describe('options', () => {
  beforeEach(() => void receiving());

  it('are refused if unknown or no folder', () => {
    expect(() => devHooks({ folder: dir } as object)).toThrow('folder is not known');
    expect(() => devHooks({ dir: 5 } as object)).toThrow(ConfigError);
  });

  it('are refused in production, with the line to write', () => {
    vi.stubEnv('NODE_ENV', 'production');
    try {
      expect(() => devHooks()).toThrow(
        new ConfigError(
          "devHooks: is for development and refused under NODE_ENV=production. Write: ...(process.env.NODE_ENV !== 'production' && devHooks()).",
        ),
      );
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
