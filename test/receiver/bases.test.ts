import crypto from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createVerifier, type Sender } from '../../src/index.ts';
import { generateKey, signDelivery, type SignDeliveryOptions, signHmac } from '../../src/sender/sign.ts';
import { sampleChallenge } from '../../src/testing/for-tests.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import {
  AGENT,
  payloads,
  said,
  sellerKey,
  type TestReceiverOptions,
  testReceiver,
  type TestReceiver,
} from './setup.ts';

const OLD = 'https://old.example/webhooks/*';
const NEW = 'https://new.example/hooks/*';
/** Apart from the host the same. */
const NEXT = 'https://new.example/webhooks/*';

/** A request as it comes to a door. */
interface Sent {
  /** The URL that is signed. */
  readonly signed: string;
  readonly host?: string | readonly string[] | undefined;
  /** The request target; absent: path and query of `signed`. */
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly key?: SignDeliveryOptions['key'] | undefined;
  /** Unix ms. */
  readonly now?: number;
}

const pathOf = (url: string): string => url.slice(url.indexOf('/', 'https://'.length));

interface Made extends TestReceiver {
  readonly ask: (sent: Sent) => Promise<string>;
  /** URLs of the events that were handled. */
  readonly urls: () => readonly (string | undefined)[];
}

async function made(publicUrl: readonly string[], options: TestReceiverOptions = {}): Promise<Made> {
  const test = await testReceiver({ publicUrl, ...options });
  const ask: Made['ask'] = async ({ signed, host = new URL(signed).host, target, headers, key, now }) => {
    const { body, headers: own } = await test.sign(payloads.tool('completed'), {
      url: signed,
      ...(key && { key }),
      ...(now !== undefined && { now: () => now }),
    });
    const hosts = host === '' ? [] : [host].flat().map((value) => ['host', value] as const);
    const lines = [...hosts, ...Object.entries({ ...own, ...headers })] as [string, string][];
    return said(await test.receiver.verifyAndDispatch(body, lines, { url: target ?? pathOf(signed) }));
  };
  return { ...test, ask, urls: () => test.seen.map(({ event }) => event.url) };
}

const APPLIED = 'accepted 200';
const REWRITTEN = 'unavailable webhook_target_uri_malformed 503';
const INVALID = 'refused webhook_signature_invalid 401';
const ELSEWHERE = 'refused webhook_target_uri_malformed 401';
const STRAY = 'unavailable misconfigured 503';

const a = 'https://old.example/webhooks/s?x=1';
const b = 'https://new.example/hooks/s?x=1';

describe('Host chooses among the bases (verification.md §4.16)', () => {
  it('each is accepted at its own Host, and the event says by which URL it came', async () => {
    const { ask, urls, alarms } = await made([NEW, OLD]);
    expect([await ask({ signed: a }), await ask({ signed: b })]).toEqual([APPLIED, APPLIED]);
    expect(urls()).toEqual([a, b]);
    expect(alarms).toEqual([]);
  });

  it.each([
    ['another base’s Host', { signed: a, host: 'new.example' }],
    ['another base’s Host and path', { signed: a, host: 'new.example', target: '/hooks/s?x=1' }],
    ['a path of this base at the Host of another', { signed: 'https://new.example/webhooks/s?x=1' }],
    ['a path of that base at this Host', { signed: 'https://old.example/hooks/s?x=1' }],
  ] as const)('what is signed for one is never accepted: %s', async (_, sent) => {
    for (const bases of [
      [NEW, OLD],
      [OLD, NEW],
    ]) {
      const { ask, seen } = await made(bases);
      expect(await ask(sent)).toMatch(/ (?:401|503)$/);
      expect(seen).toEqual([]);
    }
  });

  it('a Host that a proxy of ours has made another base’s is 503 with the alarm, also once others have verified', async () => {
    const { ask, alarms, seen } = await made([NEXT, OLD]);
    expect(await ask({ signed: 'https://new.example/webhooks/s' })).toBe(APPLIED);
    expect(await ask({ signed: a, host: 'new.example' })).toBe(REWRITTEN);
    expect(alarms).toMatchObject([{ code: 'host_rewritten', sender: AGENT }]);
    expect(alarms[0]?.message).toMatch(/^Host is "new\.example" but publicUrl names old\.example,/);
    expect(seen).toHaveLength(1);
  });

  it('a forged one is 401 at each Host, and at none that is listed', async () => {
    const { ask, alarms } = await made([NEXT, OLD]);
    const forger = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
    const key = forger.privateJwk;
    expect(await ask({ signed: a, key })).toBe(INVALID);
    expect(await ask({ signed: 'https://new.example/webhooks/s', key })).toBe(INVALID);
    expect(await ask({ signed: a, key, host: 'third.example' })).toBe(ELSEWHERE);
    expect(alarms.filter(({ code }) => code === 'host_rewritten')).toEqual([]);
  });

  it.each([
    ['in upper case', 'OLD.Example'],
    ['with the default port', 'old.example:443'],
    ['with a root dot', 'old.example.'],
    ['none at all', ''],
  ])('a Host %s is the one', async (_, host) => {
    const { ask, urls } = await made([NEW, OLD]);
    expect(await ask({ signed: a, host })).toBe(APPLIED);
    expect(urls()).toEqual([a]);
  });

  it.each([
    ['an unlisted one', 'third.example'],
    ['with another port', 'old.example:8443'],
    ['with two root dots', 'old.example..'],
    ['with user information', 'x@old.example'],
    ['a suffix', 'example'],
    ['a longer one', 'old.example.third.example'],
  ])('a Host that is none of them is 503 where the signature is right: %s', async (_, host) => {
    const { ask, alarms, seen } = await made([NEW, OLD]);
    expect(await ask({ signed: a, host })).toBe(REWRITTEN);
    expect(alarms).toMatchObject([{ code: 'host_rewritten' }]);
    expect(seen).toEqual([]);
  });

  it.each([
    ['two lines of Host', { signed: a, host: ['old.example', 'new.example'] }],
    ['two lines that are equal', { signed: a, host: ['old.example', 'old.example'] }],
    ['lines that were joined', { signed: a, host: 'old.example, old.example' }],
    ['an absolute target of another base', { signed: a, target: `https://new.example${pathOf(a)}` }],
    [':authority of another base', { signed: a, headers: { ':authority': 'new.example' } }],
  ] as const)('contradicting authorities are 401: %s', async (_, sent) => {
    const { ask, alarms, seen } = await made([NEXT, OLD]);
    expect(await ask(sent)).toBe(ELSEWHERE);
    expect(alarms).toEqual([]);
    expect(seen).toEqual([]);
  });

  it('an absolute target names it, as Host does; X-Forwarded-Host and Forwarded do not', async () => {
    const { ask, urls } = await made([NEW, OLD]);
    expect(await ask({ signed: a, host: '', target: a })).toBe(APPLIED);
    expect(urls()).toEqual([a]);
    const forwarded = { 'x-forwarded-host': 'old.example', forwarded: 'host=old.example' };
    expect(await ask({ signed: a, host: 'third.example', headers: forwarded })).toBe(REWRITTEN);
    expect(await ask({ signed: b, headers: forwarded })).toBe(APPLIED);
  });

  it('internationalized names and IPv6 addresses are compared in canonical form', async () => {
    const bases = [
      'https://bücher.example/hook',
      'https://[2001:DB8::1]/hook',
      'https://[2001:db8::1]:8443/hook',
    ];
    const { ask, urls } = await made(bases);
    expect(await ask({ signed: 'https://xn--bcher-kva.example/hook' })).toBe(APPLIED);
    expect(await ask({ signed: 'https://[2001:db8::1]/hook' })).toBe(APPLIED);
    expect(await ask({ signed: 'https://[2001:db8::1]:8443/hook', host: '[2001:DB8::1]:8443' })).toBe(
      APPLIED,
    );
    expect(await ask({ signed: 'https://[2001:db8::1]/hook', host: '[2001:db8::1]:8443' })).toBe(REWRITTEN);
    expect(urls()).toHaveLength(3);
  });

  it('bases that differ by port alone are two, and a proxy that drops the port is heard', async () => {
    const { ask, urls } = await made(['https://old.example/hook', 'https://old.example:8443/hook']);
    expect(await ask({ signed: 'https://old.example:8443/hook' })).toBe(APPLIED);
    expect(await ask({ signed: 'https://old.example/hook' })).toBe(APPLIED);
    expect(await ask({ signed: 'https://old.example:8443/hook', host: 'old.example' })).toBe(REWRITTEN);
    expect(urls()).toEqual(['https://old.example:8443/hook', 'https://old.example/hook']);
  });

  it('bases that differ by path alone are both tried, whatever path a proxy leaves', async () => {
    const { ask, urls } = await made(['https://old.example/a', 'https://old.example/b']);
    const signed = 'https://old.example/b';
    for (const target of ['/b', '/a', '/elsewhere']) expect(await ask({ signed, target })).toBe(APPLIED);
    expect(urls()).toEqual([signed, signed, signed]);
    expect(await ask({ signed: 'https://old.example/c' })).toBe(STRAY);
  });

  it('http beside https, for development', async () => {
    const bases = ['https://127.0.0.1/hook', 'http://127.0.0.1/hook'];
    const { ask, urls } = await made(bases, { allowLoopback: true });
    for (const signed of bases) expect(await ask({ signed, host: '127.0.0.1' })).toBe(APPLIED);
    expect(urls()).toEqual(bases);
    // Only https has this as its default port.
    expect(await ask({ signed: bases[1] ?? '', host: '127.0.0.1:443' })).toBe(REWRITTEN);
  });

  it('one may be under another: they have their URLs in common', async () => {
    const { ask, urls } = await made(['https://old.example/*', OLD]);
    expect(await ask({ signed: a })).toBe(APPLIED);
    expect(await ask({ signed: 'https://old.example/x' })).toBe(APPLIED);
    expect(urls()).toEqual([a, 'https://old.example/x']);
  });

  it('a path under no base of its Host is 503, though it is under one of another', async () => {
    const { ask, alarms } = await made([NEW, OLD]);
    const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'nobody-s' });
    const lost = { signed: b, target: '/webhooks/s?x=1' };
    expect(await ask({ ...lost, key: stranger.privateJwk })).toBe(STRAY);
    expect(alarms).toEqual([]);
    expect(await ask(lost)).toBe(STRAY);
    const message = expect.stringContaining(`is not under publicUrl ${NEW}: pass the whole path`);
    expect(alarms).toMatchObject([{ code: 'misconfigured', message }]);
  });

  it('a path under no base at all is 503, and a target without a canonical form 401', async () => {
    const { ask, alarms } = await made([NEW, OLD]);
    expect(await ask({ signed: a, target: '/elsewhere' })).toBe(STRAY);
    expect(alarms[0]?.message).toContain(`publicUrl ${OLD}: pass`);
    expect(await ask({ signed: a, host: 'third.example', target: '/elsewhere' })).toBe(STRAY);
    expect(alarms[1]?.message).toContain(`publicUrl ${NEW} or ${OLD}: pass`);
    expect(await ask({ signed: a, target: '/webhooks/%%34%31' })).toBe(ELSEWHERE);
  });
});

describe("hostCheck: 'off'", () => {
  it.each(['third.example', 'new.example', '127.0.0.1:3000'])(
    'verifies for each base in turn, whatever Host says: %s',
    async (host) => {
      const { ask, urls, alarms } = await made([NEXT, OLD], { hostCheck: 'off' });
      expect(await ask({ signed: a, host })).toBe(APPLIED);
      expect(await ask({ signed: 'https://new.example/webhooks/s', host })).toBe(APPLIED);
      expect(await ask({ signed: 'https://third.example/webhooks/s', host })).toMatch(/ (401|503)$/);
      expect(urls()).toEqual([a, 'https://new.example/webhooks/s']);
      expect(alarms.filter(({ code }) => code === 'host_rewritten')).toEqual([]);
    },
  );

  it('one delivery is one, whichever base it is repeated at, and its nonce is used up at each', async () => {
    const { receiver, sign, seen } = await testReceiver({ publicUrl: [NEXT, OLD], hostCheck: 'off' });
    const event = payloads.tool('completed');
    const send = async (signed: Awaited<ReturnType<typeof sign>>, host: string) =>
      said(
        await receiver.verifyAndDispatch(signed.body, { ...signed.headers, host }, { url: '/webhooks/s' }),
      );
    const first = await sign(event, { url: 'https://old.example/webhooks/s' });
    expect(await send(first, 'old.example')).toBe(APPLIED);
    expect(await send(first, 'new.example')).toBe('refused webhook_signature_replayed 401');
    const again = await sign(event, { url: 'https://new.example/webhooks/s' });
    expect(await send(again, 'new.example')).toBe('duplicate 200');
    expect(seen).toHaveLength(1);
  });
});

describe('senders at several bases', () => {
  const token = 'a-shared-token-of-32-characters!';

  it('by path they are those of each base that the path is under', async () => {
    const key = await sellerKey();
    const senders = { '/webhooks/s': [{ agentUrl: AGENT, pins: [key.publicJwk] }] };
    const { ask, urls } = await made([NEXT, OLD], { senders });
    const c = 'https://new.example/webhooks/s';
    expect([await ask({ signed: a }), await ask({ signed: c })]).toEqual([APPLIED, APPLIED]);
    expect(urls()).toEqual([a, c]);
    expect(await ask({ signed: 'https://new.example/webhooks/t' })).toBe(
      'refused webhook_signature_key_unknown 401',
    );
  });

  it.each(['old.example', 'new.example', 'third.example', ''])(
    'HMAC and bearer go by the path alone, at whatever Host: %j',
    async (host) => {
      const senders = { '/webhooks/s': [{ agentUrl: AGENT, auth: { bearer: { token } } }] };
      const { receiver, seen } = await testReceiver({ publicUrl: [NEW, OLD], senders });
      const headers = {
        'content-type': 'application/json',
        authorization: `Bearer ${token}`,
        ...(host !== '' && { host }),
      };
      const body = new TextEncoder().encode(JSON.stringify(payloads.tool('completed')));
      const answer = await receiver.verifyAndDispatch(body, headers, { url: '/webhooks/s' });
      expect(said(answer)).toBe(APPLIED);
      expect(seen[0]?.event.url).toBe('https://old.example/webhooks/s');
    },
  );

  it.each(['old.example', 'new.example', 'third.example'])(
    'who is registered with a legacy scheme at one of them may not sign there: %s',
    async (host) => {
      const key = await sellerKey();
      const other = await generateKey('ed25519', 'webhook-signing', { kid: 'other-1' });
      for (const hostCheck of ['strict', 'off'] as const) {
        const { ask, seen } = await made([NEXT, OLD], {
          hostCheck,
          senders: (url) =>
            url.host === 'old.example'
              ? [{ agentUrl: AGENT, pins: [key.publicJwk], auth: { hmac: { secret: token } } }]
              : [{ agentUrl: 'https://other.example/mcp', pins: [other.publicJwk] }],
        });
        expect(await ask({ signed: a, host })).toMatch(/^refused .* 401$/);
        // Nor may the other one, for a URL at which it is not registered.
        expect(await ask({ signed: a, host, key: other.privateJwk })).toMatch(/^refused .* 401$/);
        expect(seen).toEqual([]);
      }
    },
  );

  it('of URLs at one Host the one whose path is received comes first', async () => {
    const urls = ['https://old.example/a', 'https://old.example/b'];
    const senders = [{ agentUrl: AGENT, auth: { bearer: { token } } }];
    const { receiver, seen } = await testReceiver({ publicUrl: urls, senders });
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${token}`,
      host: 'old.example',
    };
    for (const url of ['/b', '/a', '/left-by-a-proxy', undefined]) {
      const body = new TextEncoder().encode(JSON.stringify(payloads.tool('completed')));
      await receiver.verifyAndDispatch(body, headers, ...(url === undefined ? [] : [{ url }]));
    }
    expect(seen.map(({ event }) => event.url)).toEqual([urls[1], urls[0], urls[0], urls[0]]);
  });

  it('a function is asked for the URL of each base, and nobody may call one that it does not give', async () => {
    const key = await sellerKey();
    const other = await generateKey('ed25519', 'webhook-signing', { kid: 'other-1' });
    const byHost: Readonly<Record<string, readonly Sender[]>> = {
      'old.example': [{ agentUrl: AGENT, pins: [key.publicJwk] }],
      'new.example': [{ agentUrl: 'https://other.example/mcp', pins: [other.publicJwk] }],
    };
    const asked: string[] = [];
    const { ask, seen, urls } = await made([NEXT, OLD], {
      hostCheck: 'off',
      senders: ({ host }) => {
        asked.push(host);
        return [...(byHost[host] ?? [])];
      },
    });
    expect(await ask({ signed: a })).toBe(APPLIED);
    expect(asked.splice(0)).toEqual(['old.example']);
    expect(await ask({ signed: a, host: 'third.example' })).toBe(APPLIED);
    expect(asked.splice(0)).toEqual(['new.example', 'old.example']);
    expect(urls()).toEqual([a, a]);
    // Its own key, and a URL where it is not registered.
    const forged = { signed: a, key: other.privateJwk };
    expect(await ask(forged)).toBe(INVALID);
    expect(await ask({ ...forged, host: 'third.example' })).toBe(INVALID);
    expect(seen).toHaveLength(2);
  });

  it('where the kind of authentication differs by base, that of the delivery is looked for', async () => {
    const key = await sellerKey();
    const { ask, receiver, urls } = await made([NEXT, OLD], {
      hostCheck: 'off',
      senders: ({ host }) =>
        host === 'old.example'
          ? [{ agentUrl: AGENT, auth: { bearer: { token } } }]
          : [{ agentUrl: AGENT, pins: [key.publicJwk] }],
    });
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}`, host: 'proxy' };
    const body = new TextEncoder().encode(JSON.stringify(payloads.tool('completed')));
    const answer = await receiver.verifyAndDispatch(body, headers, { url: '/webhooks/s' });
    expect(said(answer)).toBe(APPLIED);
    expect(await ask({ signed: 'https://new.example/webhooks/s', host: 'old.example' })).toBe(APPLIED);
    expect(urls()).toEqual(['https://old.example/webhooks/s', 'https://new.example/webhooks/s']);
  });

  it('a body that the kind of another base refuses has the outcome of a receiver of that base alone', async () => {
    const key = await sellerKey();
    const hmac = { agentUrl: AGENT, auth: { hmac: { secret: token } } };
    const { receiver } = await made([NEXT, OLD], {
      hostCheck: 'off',
      senders: ({ host }) => [host === 'old.example' ? hmac : { agentUrl: AGENT, pins: [key.publicJwk] }],
    });
    const alone = await made([OLD], { senders: [hmac] });
    const signed = signHmac({
      url: 'https://old.example/webhooks/s',
      body: payloads.tool('completed'),
      secret: 'another-secret-of-32-characters!',
    });
    const outcomes = [];
    for (const at of [receiver, alone.receiver]) {
      const headers = { ...signed.headers, host: 'proxy' };
      outcomes.push(await at.verifyAndDispatch(signed.body, headers, { url: '/webhooks/s' }));
    }
    const [elsewhere, own] = outcomes;
    expect(elsewhere && said(elsewhere)).toBe(INVALID);
    // The URL is the one that was tried first.
    expect(elsewhere).toStrictEqual({ ...own, url: 'https://new.example/webhooks/s' });
  });
});

describe('what a stranger can cause', () => {
  /** Eight bases, and a P-256 key, whose verifications `node:crypto` makes. */
  async function eight(options: TestReceiverOptions = {}) {
    let now = Date.now();
    const pair = await generateKey('ecdsa-p256-sha256', 'webhook-signing', { kid: 'p-1' });
    const forger = await generateKey('ecdsa-p256-sha256', 'webhook-signing', { kid: 'p-1' });
    const other = await generateKey('ecdsa-p256-sha256', 'webhook-signing', { kid: 'other-1' });
    const bases = Array.from({ length: 8 }, (_, i) => `https://b${i}.example/webhooks/*`);
    const test = await made(bases, {
      now: () => now,
      verification: 'main',
      senders: [
        { agentUrl: AGENT, pins: [pair.publicJwk] },
        { agentUrl: 'https://other.example/mcp', pins: [other.publicJwk] },
      ],
      ...options,
    });
    // The engine tests itself first.
    await test.ask({ signed: 'https://b0.example/webhooks/s', key: other.privateJwk, now });
    const verify = vi.spyOn(crypto, 'verify');
    onTestFinished(() => verify.mockRestore());
    /** What it is answered, and how many verifications it took. */
    const ask = async (key: SignDeliveryOptions['key'], at: number, host?: string): Promise<string> => {
      verify.mockClear();
      const signed = `https://b${at}.example/webhooks/s`;
      const answer = await test.ask({ signed, key, host, now });
      return `${answer} ${verify.mock.calls.length}`;
    };
    const [own, forged, others] = [pair.privateJwk, forger.privateJwk, other.privateJwk];
    return { ...test, ask, own, forged, others, pass: (ms: number) => (now += ms) };
  }

  const OVER = 'unavailable overloaded 503';

  it.each([
    ['at an unlisted Host', 'third.example', ELSEWHERE],
    ['at the Host of a base', 'b0.example', INVALID],
  ])('20 deliveries a second are tried for each base, further ones once: %s', async (_, host, refused) => {
    const { ask, forged, own, others, pass, alarms } = await eight();
    // The sender has verified at each base: no trial is made.
    for (let at = 0; at < 8; at += 1) expect(await ask(own, at)).toBe(`${APPLIED} 1`);
    for (let count = 0; count < 20; count += 1) expect(await ask(forged, 0, host)).toBe(`${refused} 8`);
    for (let count = 0; count < 50; count += 1) expect(await ask(forged, 0, host)).toBe(`${OVER} 1`);
    // What Host names is accepted meanwhile, and the other sender is tried as before.
    for (let at = 0; at < 8; at += 1) expect(await ask(own, at)).toBe(`${APPLIED} 1`);
    expect(await ask(others, 7, 'third.example')).toBe(`${REWRITTEN} 8`);
    // Authentic, and not tried: it comes again.
    expect(await ask(own, 7, 'third.example')).toBe(`${OVER} 1`);
    const codes = alarms.map(({ code }) => code);
    expect(codes.filter((code) => code === 'host_rewritten' || code === 'overloaded')).toEqual([
      'host_rewritten',
    ]);
    pass(1000);
    expect(await ask(own, 7, 'third.example')).toBe(`${REWRITTEN} 8`);
    expect(await ask(forged, 0, host)).toBe(`${refused} 8`);
  });

  it("with hostCheck: 'off' what is accepted counts for nothing", async () => {
    const { ask, forged, own, pass } = await eight({ hostCheck: 'off' });
    for (let count = 0; count < 30; count += 1)
      expect(await ask(own, 7, 'third.example')).toBe(`${APPLIED} 8`);
    for (let at = 0; at < 8; at += 1) await ask(own, at);
    for (let count = 0; count < 20; count += 1)
      expect(await ask(forged, 0, 'third.example')).toBe(`${INVALID} 8`);
    expect(await ask(forged, 0, 'third.example')).toBe(`${OVER} 1`);
    expect(await ask(own, 7, 'third.example')).toBe(`${OVER} 1`);
    expect(await ask(own, 0, 'third.example')).toBe(`${APPLIED} 1`);
    expect(await ask(own, 7)).toBe(`${APPLIED} 1`);
    pass(1000);
    expect(await ask(own, 7, 'third.example')).toBe(`${APPLIED} 8`);
  });

  it('a key id of nobody costs no verification and counts for nothing', async () => {
    const { ask, own } = await eight({ hostCheck: 'off' });
    const nobody = await generateKey('ecdsa-p256-sha256', 'webhook-signing', { kid: 'nobody-s' });
    for (let count = 0; count < 30; count += 1)
      expect(await ask(nobody.privateJwk, 0, 'third.example')).toBe(
        'refused webhook_signature_key_unknown 401 0',
      );
    expect(await ask(own, 7, 'third.example')).toBe(`${APPLIED} 8`);
  });

  it('those that are under way together are counted as they end', async () => {
    const { ask, forged, own } = await eight({ verification: 'pool', hostCheck: 'off' });
    for (let at = 0; at < 8; at += 1) await ask(own, at);
    const answers = await Promise.all(Array.from({ length: 200 }, () => ask(forged, 0, 'third.example')));
    const tried = answers.filter((answer) => answer.startsWith(INVALID)).length;
    expect(tried).toBeGreaterThanOrEqual(20);
    expect(await ask(forged, 0, 'third.example')).toBe(`${OVER} 1`);
  });
});

it('a verifier takes a list as well, and says which URL it was', async () => {
  const key = await sellerKey();
  const verifier = createVerifier({
    publicUrl: [NEW, OLD],
    senders: [{ agentUrl: AGENT, pins: [key.publicJwk] }],
    logger: SILENT_LOGGER,
  });
  const { body, headers } = await signDelivery({
    url: a,
    body: payloads.tool('completed'),
    key: key.privateJwk,
  });
  const verified = await verifier.verify(body, { ...headers, host: 'old.example' }, { url: pathOf(a) });
  expect(verified).toMatchObject({ kind: 'verified', event: { url: a } });
  await verifier.stop();
});

it('a proof of control that is signed is for the URL that it is signed for, at a legacy sender too', async () => {
  const key = await sellerKey();
  const auth = { bearer: { token: 'a-shared-token-of-32-characters!' } };
  const { receiver } = await testReceiver({
    publicUrl: [NEXT, OLD],
    hostCheck: 'off',
    senders: [
      {
        agentUrl: AGENT,
        pins: [key.publicJwk],
        auth,
      },
    ],
    onChallenge: () => true,
  });
  const { body, headers } = await signDelivery({
    url: a,
    body: sampleChallenge(AGENT, auth),
    key: key.privateJwk,
  });
  const answer = await receiver.verifyAndDispatch(body, { ...headers, host: 'proxy' }, { url: pathOf(a) });
  expect([said(answer), answer.url]).toEqual(['challenge 200', a]);
});

describe('what may be our own fault', () => {
  it('what has verified at one base says nothing of another: its URL is tried still', async () => {
    const { ask, alarms } = await made([OLD, 'https://new.example:8443/hook']);
    expect(await ask({ signed: a })).toBe(APPLIED);
    expect(await ask({ signed: 'https://new.example/hook' })).toBe(STRAY);
    expect(alarms).toMatchObject([
      { code: 'public_url_mismatch', signedUrl: 'https://new.example/hook', sender: AGENT },
    ]);
    expect(alarms[0]?.message).toContain('add https://new.example/hook to publicUrl;');
  });

  it('a wrong clock is found by what is signed for any of them', async () => {
    const { ask, alarms } = await made([NEXT, OLD], {
      hostCheck: 'off',
      now: () => Date.now() + 3_600_000,
    });
    const answers: string[] = [];
    for (let count = 0; count < 3; count += 1) answers.push(await ask({ signed: a, host: 'proxy' }));
    expect(answers.at(-1)).toBe('unavailable clock_skew 503');
    expect(alarms.map(({ code }) => code)).toContain('clock_skew');
  });
});
