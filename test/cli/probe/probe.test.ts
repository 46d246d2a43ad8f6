import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../../src/outcome.ts';
import type { Receiver } from '../../../src/options.ts';
import { generateKey } from '../../../src/sender/sign.ts';
import { createFakeSeller } from '../../../src/testing/fake-seller.ts';
import { PROBE_CASES } from '../../../src/cli/probe/probe.ts';
import { bench, failures, probed, probeKeys } from './bench.ts';

describe('probe: our own receiver passes every case, through a real server', () => {
  it.each(['3.0', '3.1', '3.2'] as const)('edition %s', async (edition) => {
    await using house = await bench({ edition, maxNoncesPerKey: 200 });
    const results = await probed(house.url, { edition, rate: 300 });
    expect(results.filter(({ verdict }) => verdict !== 'pass')).toEqual([]);
    expect(results.map(({ name }) => name)).toEqual(PROBE_CASES.map(({ name }) => name));
  });

  it('with keys that it has to fetch from a seller on loopback, a revocation list included', async () => {
    await using seller = await createFakeSeller();
    seller.documents.set('/.well-known/jwks.json', {
      keys: (await probeKeys()).map(({ publicJwk }) => publicJwk),
    });
    seller.revoke(['probe-revoked']);
    await using house = await bench({ senders: [{ agentUrl: seller.agentUrl }] });
    const results = await probed(house.url);
    expect(results.filter(({ verdict }) => verdict !== 'pass').map(({ name }) => name)).toEqual(['rate']);
    // Within 30 s of that refetch nothing decides about a new key id: no fault of the receiver's.
    const again = await probed(house.url, {}, ['unknown-key', 'tool-completed']);
    expect(again.map(({ name, verdict }) => [name, verdict])).toEqual([
      ['unknown-key', 'undecided'],
      ['tool-completed', 'pass'],
    ]);
  });

  it('in mode inbox, and under another name of the protocol', async () => {
    await using house = await bench({ mode: 'inbox' });
    expect(failures(await probed(house.url))).toEqual([]);
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
      'revoked',
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

const ask = (receiver: Receiver, req: IncomingMessage, body: Uint8Array): Promise<Outcome> =>
  receiver.verifyAndDispatch(body, req.rawHeaders, { method: req.method ?? 'POST' });

describe('probe finds what is wrong with', () => {
  it('an endpoint that always answers 200', async () => {
    await using house = await bench({}, () => (req, res) => void req.resume().on('end', () => res.end()));
    const results = await probed(house.url, { rate: 2 });
    const good = results.filter(({ expected }) => expected === '2xx');
    expect(good.every(({ verdict }) => verdict === 'pass')).toBe(true);
    expect(failures(results)).toEqual(
      results.filter(({ expected }) => expected !== '2xx').map(({ name }) => name),
    );
  });

  it('one that parses and serialises the body before it verifies', async () => {
    await using house = await bench(
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
    const failed = failures(await probed(house.url));
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
    await using house = await bench(
      {},
      custom(async (receiver, req, body) => {
        const { kind, response } = await ask(receiver, req, body);
        return kind === 'duplicate' ? { status: 409 } : response;
      }),
    );
    expect(failures(await probed(house.url))).toEqual(['duplicate', 'changed-payload']);
  });

  it('one that does not look at the digest', async () => {
    await using house = await bench(
      {},
      custom(async (receiver, req, body) => {
        const { code, response } = await ask(receiver, req, body);
        return code === 'webhook_signature_digest_mismatch' ? { status: 200 } : response;
      }),
    );
    expect(failures(await probed(house.url))).toEqual(['tampered-body', 'tampered-not-json', 'no-sha-256']);
  });

  it('one that answers 401 without WWW-Authenticate, or with more in it', async () => {
    const refused = PROBE_CASES.filter(
      ({ expect: given }) => (typeof given === 'function' ? given('3.0') : given).status === 401,
    );
    for (const header of [undefined, 'Signature realm="x", error="webhook_signature_invalid"']) {
      await using house = await bench(
        {},
        custom(async (receiver, req, body) => {
          const { response } = await ask(receiver, req, body);
          if (response.status !== 401) return response;
          return { status: 401, headers: header === undefined ? {} : { 'WWW-Authenticate': header } };
        }),
      );
      const results = await probed(house.url);
      expect(failures(results)).toEqual(refused.map(({ name }) => name));
      expect(results.find(({ name }) => name === 'unsigned')?.why).toContain('WWW-Authenticate');
    }
  });

  it('one that tells the key id in its answer', async () => {
    await using house = await bench(
      {},
      custom(async (receiver, req, body) => {
        const { response } = await ask(receiver, req, body);
        return response.status === 401
          ? { ...response, body: String(req.headers['signature-input']) }
          : response;
      }),
    );
    const told = (await probed(house.url, {}, ['tampered-signature'])).map(({ why }) => why);
    expect(told).toEqual(['the body tells a key id or a digest']);
  });

  it('one that forgets nonces, and one that lets a forgery burn them', async () => {
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
