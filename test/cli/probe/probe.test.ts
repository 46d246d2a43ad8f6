import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import {
  awaitKeys,
  type Patience,
  PROBE_CASES,
  type ProbeKit,
  probeReceiver,
} from '../../../src/cli/for-tests.ts';
import type { Outcome, Receiver } from '../../../src/index.ts';
import { generateKey } from '../../../src/sender/sign.ts';
import { createFakeSeller, type FakeSeller } from '../../../src/testing/index.ts';
import { bench, failures, probed, probeKeys, probeKit } from './bench.ts';

describe('probe: our own receiver passes every case, through a real server', () => {
  it.each(['3.0', '3.1', '3.2'] as const)('edition %s', async (edition) => {
    await using setup = await bench({ edition, maxNoncesPerKey: 200 });
    const results = await probed(setup.url, { edition, rate: 300 });
    expect(results.filter(({ verdict }) => verdict !== 'pass')).toEqual([]);
    expect(results.map(({ name }) => name)).toEqual(PROBE_CASES.map(({ name }) => name));
  });

  it('with keys that it must fetch from a seller on loopback, including a revocation list', async () => {
    await using seller = await createFakeSeller();
    seller.documents.set('/.well-known/jwks.json', {
      keys: (await probeKeys()).map(({ publicJwk }) => publicJwk),
    });
    seller.revoke(['probe-revoked']);
    // Stands still: on a slow machine the probe takes longer than that refetch keeps others away.
    const at = Date.now();
    const now = (): number => at;
    await using setup = await bench({ senders: [{ agentUrl: seller.agentUrl }], now });
    const results = await probed(setup.url, { now });
    expect(results.filter(({ verdict }) => verdict !== 'pass').map(({ name }) => name)).toEqual(['rate']);
    // Within 30 s of that refetch nothing decides about a new key id: no fault of the receiver's.
    const again = await probed(setup.url, { now }, ['unknown-key', 'tool-completed']);
    expect(again.map(({ name, verdict }) => [name, verdict])).toEqual([
      ['unknown-key', 'undecided'],
      ['tool-completed', 'pass'],
    ]);
  });

  it('with a URL for each sender: path and query are those of the request', async () => {
    await using setup = await bench({ publicPath: '/webhooks/*' });
    expect(failures(await probed(setup.url))).toEqual([]);
  });

  it('without the comparison of Host with its URL', async () => {
    await using setup = await bench({ hostCheck: 'off' });
    expect(failures(await probed(setup.url, { hostCheck: 'off' }))).toEqual([]);
    // Told otherwise, it is what differs.
    expect(failures(await probed(setup.url))).toEqual(['host-differs']);
  });

  it('in mode inbox, and under another name of the protocol', async () => {
    await using setup = await bench({ mode: 'inbox' });
    expect(failures(await probed(setup.url))).toEqual([]);
    const key = await generateKey('ed25519', 'webhook-signing', { kid: 'theirs', protocol: 'theirs' });
    await using theirs = await bench({
      protocol: 'theirs',
      senders: [{ agentUrl: 'https://their.example/mcp', pins: [key.publicJwk] }],
    });
    const results = await probed(theirs.url, { protocol: 'theirs', keys: [key.privateJwk] });
    expect(failures(results)).toEqual([]);
    expect(results.filter(({ verdict }) => verdict === 'skipped').map(({ name }) => name)).toEqual([
      'p256',
      'request-key',
      'wrong-purpose',
      'key-revoked',
      'rate',
    ]);
  });
});

/** An endpoint of somebody's own making around `verifyAndDispatch`. */
const custom =
  (
    answer: (
      receiver: Receiver,
      req: IncomingMessage,
      body: Buffer,
    ) => Promise<{ status: number; headers?: Record<string, string>; body?: string }>,
  ) =>
  (_: RequestListener, receiver: Receiver): RequestListener =>
  (req, res) => {
    const respond = async (): Promise<void> => {
      const { status, headers = {}, body = '' } = await answer(receiver, req, await buffer(req));
      res.writeHead(status, headers).end(body);
    };
    respond().catch(() => res.destroy());
  };

/** As the cases are sent. */
const inOrder = (one: string, other: string): number =>
  PROBE_CASES.findIndex(({ name }) => name === one) - PROBE_CASES.findIndex(({ name }) => name === other);

const ask = (receiver: Receiver, req: IncomingMessage, body: Uint8Array): Promise<Outcome> =>
  receiver.verifyAndDispatch(body, req.rawHeaders, { method: req.method ?? 'POST' });

describe('probe finds the fault of', () => {
  it('an endpoint that always answers 200', async () => {
    await using setup = await bench({}, () => (req, res) => void req.resume().on('end', () => res.end()));
    const results = await probed(setup.url, { rate: 2 });
    const good = results.filter(({ expected }) => expected === '2xx');
    expect(good.every(({ verdict }) => verdict === 'pass')).toBe(true);
    expect(failures(results)).toEqual(
      results.filter(({ expected }) => expected !== '2xx').map(({ name }) => name),
    );
  });

  it('one that parses and serialises the body before it verifies', async () => {
    await using setup = await bench(
      {},
      custom(async (receiver, req, body) => {
        try {
          const parsed: unknown = JSON.parse(body.toString());
          return (await ask(receiver, req, Buffer.from(JSON.stringify(parsed)))).response;
        } catch {
          return { status: 400 };
        }
      }),
    );
    const failed = failures(await probed(setup.url));
    // Its bytes are lost, and it speaks of JSON before it knows who sent it.
    expect(failed).toEqual(
      expect.arrayContaining([
        'exact-bytes',
        'tampered-body',
        'unsigned-not-json',
        'tampered-not-json',
        'not-json',
      ]),
    );
    expect(failed).not.toContain('tool-completed');
  });

  it('one that answers 409 to a duplicate', async () => {
    await using setup = await bench(
      {},
      custom(async (receiver, req, body) => {
        const { kind, response } = await ask(receiver, req, body);
        return kind === 'duplicate' ? { status: 409 } : response;
      }),
    );
    expect(failures(await probed(setup.url))).toEqual(['duplicate', 'changed-payload']);
  });

  it('one of edition 3.2 that takes a second outcome of a task', async () => {
    await using setup = await bench(
      { edition: '3.2' },
      custom(async (receiver, req, body) => {
        const { code, response } = await ask(receiver, req, body);
        return code === 'task_already_final' ? { status: 200 } : response;
      }),
    );
    expect(failures(await probed(setup.url, { edition: '3.2' }))).toEqual(['second-outcome']);
  });

  it('one that does not check the digest', async () => {
    await using setup = await bench(
      {},
      custom(async (receiver, req, body) => {
        const { code, response } = await ask(receiver, req, body);
        return code === 'webhook_signature_digest_mismatch' ? { status: 200 } : response;
      }),
    );
    expect(failures(await probed(setup.url))).toEqual([
      'tampered-body',
      'digest-sha-512-only',
      'tampered-not-json',
    ]);
  });

  it('one that answers 401 without WWW-Authenticate, or with more in it', async () => {
    const refused = PROBE_CASES.filter(
      ({ expect: given }) =>
        (typeof given === 'function'
          ? given({ edition: '3.0', hostCheck: 'strict', protocol: 'proto' })
          : given
        ).status === 401,
    );
    for (const header of [undefined, 'Signature realm="x", error="webhook_signature_invalid"']) {
      await using setup = await bench(
        {},
        custom(async (receiver, req, body) => {
          const { response } = await ask(receiver, req, body);
          if (response.status !== 401) return response;
          return { status: 401, headers: header === undefined ? {} : { 'WWW-Authenticate': header } };
        }),
      );
      const results = await probed(setup.url);
      expect(failures(results)).toEqual(refused.map(({ name }) => name));
      expect(results.find(({ name }) => name === 'unsigned')?.why).toContain('WWW-Authenticate');
    }
  });

  it('one that repeats the key id in its answer', async () => {
    await using setup = await bench(
      {},
      custom(async (receiver, req, body) => {
        const { response } = await ask(receiver, req, body);
        return response.status === 401
          ? { ...response, body: String(req.headers['signature-input']) }
          : response;
      }),
    );
    const told = (await probed(setup.url, {}, ['tampered-signature'])).map(({ why }) => why);
    expect(told).toEqual(['the body discloses a key id or a digest']);
  });

  it('one that repeats the key id in a header, or a digest in any form', async () => {
    const digest = (body: Buffer, form: 'hex' | 'base64' | 'base64url'): string =>
      createHash('sha256').update(body).digest(form);
    const header = 'the header x-debug discloses a key id or a digest';
    const message = 'the body discloses a key id or a digest';
    const told: readonly (readonly [string, (body: Buffer) => Partial<Outcome['response']>, string])[] = [
      ['tampered-signature', () => ({ headers: { 'X-Debug': 'no luck with probe-ed25519' } }), header],
      ['tampered-body', (body) => ({ headers: { 'X-Debug': digest(body, 'hex') } }), header],
      ['tampered-body', (body) => ({ body: `has ${digest(body, 'base64')}` }), message],
      ['tampered-body', (body) => ({ body: `has ${digest(body, 'base64url')}` }), message],
      // What the header claimed: the digest before the space was added.
      ['tampered-body', (body) => ({ body: `said ${digest(body.subarray(0, -1), 'hex')}` }), message],
    ];
    for (const [name, more, why] of told) {
      await using setup = await bench(
        {},
        custom(async (receiver, req, body) => {
          const { response } = await ask(receiver, req, body);
          const { headers = {}, body: text = response.body } = more(body);
          return { ...response, headers: { ...response.headers, ...headers }, body: text };
        }),
      );
      expect((await probed(setup.url, {}, [name])).map((result) => result.why)).toEqual([why]);
    }
  });

  it('one that sends a challenge with an answer other than 401', async () => {
    await using setup = await bench(
      {},
      custom(async (receiver, req, body) => {
        const { response } = await ask(receiver, req, body);
        const headers = { 'WWW-Authenticate': 'Signature error="webhook_body_malformed"' };
        return { ...response, headers: { ...headers, ...response.headers } };
      }),
    );
    const results = await probed(setup.url, {}, [
      'tampered-body',
      'text-plain',
      'method-put',
      'oversize',
      'no-task-id',
    ]);
    expect(failures(results)).toEqual(['no-task-id', 'text-plain', 'method-put', 'oversize'].sort(inOrder));
    expect(results.find(({ name }) => name === 'text-plain')?.why).toContain('which only a 401 may have');
  });

  it('one that forgets nonces, and one where a forgery uses them up', async () => {
    const seen = new Set<string>();
    const nonceOf = (req: IncomingMessage): string =>
      /nonce="([^"]*)"/.exec(String(req.headers['signature-input']))?.[1] ?? '';
    await using forgetful = await bench(
      {},
      custom(async (receiver, req, body) => {
        const { code, response } = await ask(receiver, req, body);
        return code === 'webhook_signature_replayed' ? { status: 200 } : response;
      }),
    );
    expect(failures(await probed(forgetful.url))).toEqual([
      'replay',
      'nonce-reused',
      'malformed-burns-nonce',
    ]);
    await using hasty = await bench(
      {},
      custom(async (receiver, req, body) => {
        if (seen.has(nonceOf(req)))
          return {
            status: 401,
            headers: { 'WWW-Authenticate': 'Signature error="webhook_signature_replayed"' },
          };
        seen.add(nonceOf(req));
        return (await ask(receiver, req, body)).response;
      }),
    );
    expect(failures(await probed(hasty.url, {}, ['forgery-burns-nothing', 'replay']))).toEqual([
      'forgery-burns-nothing',
    ]);
  });

  it('one that breaks connections', async () => {
    const server = createServer((req) => void req.socket.destroy());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const [result] = await probed(url, {}, ['tool-completed']);
    expect(result).toMatchObject({
      verdict: 'fail',
      answered: 'connection_error',
      why: 'the connection broke',
    });
    server.close();
  });
});

describe('probe waits for a receiver that has cached its seller’s failed fetch', () => {
  /** One clock for receiver and probe, which only the pauses of the probe move. */
  async function remembering(): Promise<
    AsyncDisposable & {
      readonly kit: ProbeKit;
      readonly seller: FakeSeller;
      readonly wait: Patience;
      readonly waited: () => number;
    }
  > {
    const start = Date.now();
    let passed = 0;
    const now = (): number => start + passed;
    const seller = await createFakeSeller({ now });
    seller.documents.set('/.well-known/jwks.json', {
      keys: (await probeKeys()).map(({ publicJwk }) => publicJwk),
    });
    seller.revoke(['probe-revoked']);
    seller.faults.set('*', 'unavailable');
    const setup = await bench({ senders: [{ agentUrl: seller.agentUrl }], now });
    const kit = await probeKit(setup.url, { now });
    const put = await kit.send(await kit.sign(kit.payloads.tool('completed')));
    expect(put.status).toBe(503);
    const wait: Patience = {
      ms: 65_000,
      now,
      pause: async (ms) => void (passed += ms),
      begins: () => undefined,
      complete: () => seller.fetches('/.well-known/proto-revocations.json') > 0,
    };
    return {
      kit,
      seller,
      wait,
      waited: () => passed,
      [Symbol.asyncDispose]: async () => {
        await setup[Symbol.asyncDispose]();
        await seller.close();
      },
    };
  }

  it('then passes it, including the unknown keyid, which is sent again', async () => {
    await using scene = await remembering();
    const { kit, seller, wait } = scene;
    seller.faults.clear();
    expect(failures(await probeReceiver(kit, ['tool-completed', 'key-revoked']))).toEqual([
      'tool-completed',
      'key-revoked',
    ]);
    const results = await probeReceiver(kit, [], { awaitKeys: (own) => awaitKeys(own, wait) });
    expect(results.filter(({ verdict }) => verdict !== 'pass').map(({ name }) => name)).toEqual(['rate']);
    expect(scene.waited()).toBeGreaterThan(0);
    expect(scene.waited()).toBeLessThanOrEqual(65_000);
    // Asked again within the 30 s, it is put off for its cooldown alone: nothing is waited for.
    const before = scene.waited();
    const [again] = await probeReceiver(kit, ['unknown-key'], { awaitKeys: (own) => awaitKeys(own, wait) });
    expect(again?.verdict).toBe('undecided');
    expect(scene.waited()).toBe(before);
  });

  it('but no longer than the failure may be cached', async () => {
    await using scene = await remembering();
    const { kit, wait } = scene;
    let notices = 0;
    expect(await awaitKeys(kit, { ...wait, begins: () => void (notices += 1) })).toBe(false);
    expect(notices).toBe(1);
    expect(scene.waited()).toBeGreaterThan(50_000);
    expect(scene.waited()).toBeLessThanOrEqual(65_000);
    expect(await awaitKeys(kit, { ...wait, ms: 0, begins: () => void (notices += 1) })).toBe(false);
    expect(notices).toBe(1);
  });
});
