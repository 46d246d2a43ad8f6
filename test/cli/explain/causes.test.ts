import { createHmac, createPrivateKey, sign as signBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Capture, Cause, ExplainInput, Explanation } from '../../../src/cli/for-tests.ts';
import {
  generateKey,
  type SignDeliveryOptions,
  type SignedDelivery,
  signHmac,
} from '../../../src/sender/sign.ts';
import { createReceiver } from '../../../src/index.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { sampleChallenge } from '../../../src/testing/for-tests.ts';
import {
  BODY,
  bytes,
  captured,
  derText,
  explained,
  keys,
  NOW,
  signed,
  text,
  URL_GIVEN,
  withHeaders,
} from './captures.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';

/** A mistake put in on purpose. */
interface Injected {
  readonly cause: Cause;
  readonly how: string;
  /** What the seller signs otherwise. */
  readonly sign?: Partial<SignDeliveryOptions>;
  /** What happens on the way. */
  readonly way?: (delivery: SignedDelivery) => SignedDelivery;
  /** What the capture shows besides. */
  readonly capture?: Partial<Capture>;
  /** How the receiver is configured. */
  readonly input?: Partial<ExplainInput>;
}

const spacedText = (value: unknown): string =>
  JSON.stringify(value, undefined, 1)
    .replace(/\n\s*/g, ' ')
    .replace(/([[{]) /g, '$1')
    .replace(/ ([\]}])/g, '$1');
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, sorted(inner)]),
  );
};
const ascii = (json: string): string =>
  json.replace(/[\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
/** Without `2.0`, which no JavaScript serialiser gives back. */
const PLAIN = BODY.replace('2.0', '2');
const parsed = JSON.parse(PLAIN) as object;

/** The seller signs `from`, a parser in the receiver's way makes `to` of it. */
const reserialised = (cause: Cause, how: string, from: string, to: string): Injected => ({
  cause,
  how,
  sign: { body: from },
  way: (delivery) => ({ ...delivery, body: bytes(to) }),
});

const arrives = (cause: Cause, how: string, from: string | Uint8Array, to: Uint8Array): Injected => ({
  cause,
  how,
  sign: { body: from },
  way: (delivery) => ({ ...delivery, body: new Uint8Array(to) }),
});

const URLS: readonly Injected[] = [
  { cause: 'scheme', how: 'http for https', sign: { url: URL_GIVEN.replace('https:', 'http:') } },
  {
    cause: 'host',
    how: 'another host, which Host names',
    sign: { url: URL_GIVEN.replace('buyer.example', 'hooks.buyer.example') },
    way: (delivery) => withHeaders(delivery, { Host: 'hooks.buyer.example' }),
  },
  {
    cause: 'host',
    how: 'www. in front',
    sign: { url: URL_GIVEN.replace('buyer.example', 'www.buyer.example') },
  },
  {
    cause: 'port',
    how: 'another port',
    sign: { url: URL_GIVEN.replace('buyer.example', 'buyer.example:8443') },
  },
  {
    cause: 'port',
    how: 'no port where one is configured',
    input: { url: URL_GIVEN.replace('buyer.example', 'buyer.example:3000') },
  },
  {
    cause: 'forwarded-host',
    how: 'the public host in X-Forwarded-Host',
    way: (delivery) => withHeaders(delivery, { Host: '10.0.0.7:3000', 'X-Forwarded-Host': 'buyer.example' }),
    input: { url: URL_GIVEN.replace('buyer.example', '10.0.0.7:3000') },
  },
  {
    cause: 'forwarded-host',
    how: 'the public host in Forwarded',
    way: (delivery) => withHeaders(delivery, { Forwarded: 'for=1.2.3.4;host="buyer.example";proto=https' }),
    input: { url: URL_GIVEN.replace('buyer.example', 'internal.example') },
  },
  { cause: 'trailing-slash', how: 'a slash more', sign: { url: URL_GIVEN.replace('/proto', '/proto/') } },
  { cause: 'trailing-slash', how: 'a slash less', input: { url: URL_GIVEN.replace('/proto', '/proto/') } },
  {
    cause: 'path-prefix',
    how: 'a usual prefix, cut off by a router',
    input: { url: URL_GIVEN.replace('/webhooks/proto', '/proto') },
  },
  {
    cause: 'path-prefix',
    how: 'a prefix that X-Forwarded-Prefix names',
    sign: { url: URL_GIVEN.replace('/webhooks', '/tenant-7/webhooks') },
    way: (delivery) => withHeaders(delivery, { 'X-Forwarded-Prefix': '/tenant-7/' }),
  },
  {
    cause: 'path-prefix',
    how: 'the path as it was received',
    sign: { url: URL_GIVEN.replace('/webhooks', '/some/where/webhooks') },
    capture: { target: '/some/where/webhooks/proto?tenant=a%2Cb&n=1' },
  },
  {
    cause: 'path-prefix',
    how: 'a shorter path than configured',
    sign: { url: URL_GIVEN.replace('/webhooks/proto', '/proto') },
    capture: { target: '/webhooks/proto' },
  },
  {
    cause: 'path-encoding',
    how: 'a space as + in the path',
    sign: { url: 'https://buyer.example/a+b' },
    input: { url: 'https://buyer.example/a%20b' },
    capture: { target: '/a%20b' },
  },
  { cause: 'query-encoding', how: 'the comma decoded', sign: { url: URL_GIVEN.replace('%2C', ',') } },
  { cause: 'query-encoding', how: 'hex in lower case', sign: { url: URL_GIVEN.replace('%2C', '%2c') } },
  {
    cause: 'query-encoding',
    how: 'parameters in another order',
    sign: { url: URL_GIVEN.replace('tenant=a%2Cb&n=1', 'n=1&tenant=a%2Cb') },
  },
  {
    cause: 'query-encoding',
    how: 'spaces as +',
    sign: { url: 'https://buyer.example/hook?q=a+b' },
    input: { url: 'https://buyer.example/hook?q=a%20b' },
  },
  { cause: 'query-dropped', how: 'no query', sign: { url: URL_GIVEN.replace(/\?.*/, '') } },
  {
    cause: 'query-dropped',
    how: 'a query that is not configured',
    input: { url: URL_GIVEN.replace(/\?.*/, '') },
  },
];

const SIGNATURES: readonly Injected[] = [
  { cause: 'wrong-kid', how: 'the kid of another key of the set', sign: { params: { keyid: 'third' } } },
  { cause: 'wrong-kid', how: 'a kid that is not in the set', sign: { params: { keyid: 'gone' } } },
  {
    cause: 'content-type-changed',
    how: 'a proxy added charset',
    way: (delivery) => withHeaders(delivery, { 'Content-Type': 'application/json; charset=utf-8' }),
  },
  {
    cause: 'hex',
    how: 'a hexadecimal signature',
    way: (delivery) =>
      withHeaders(delivery, {
        Signature: `sig1=:${Buffer.from(/:(.*):/.exec(delivery.headers['Signature'] ?? '')?.[1] ?? '', 'base64url').toString('hex')}:`,
      }),
  },
  {
    cause: 'host-rewritten',
    how: 'a proxy rewrote Host',
    way: (delivery) => withHeaders(delivery, { Host: 'internal.example' }),
  },
  { cause: 'protocol', how: 'another name of the protocol', sign: { protocol: 'theirs' } },
];

const BODIES: readonly Injected[] = [
  reserialised('body-compact', 'compact was signed, spaced arrives', PLAIN, spacedText(parsed)),
  reserialised(
    'body-spaced',
    'spaced was signed, compact arrives',
    spacedText(parsed),
    JSON.stringify(parsed),
  ),
  reserialised(
    'body-indented',
    'indented by 2',
    JSON.stringify(parsed, undefined, 2),
    JSON.stringify(parsed),
  ),
  reserialised(
    'body-indented',
    'indented by tabs',
    JSON.stringify(parsed, undefined, '\t'),
    JSON.stringify(parsed),
  ),
  reserialised('body-sorted', 'sorted was signed', JSON.stringify(sorted(parsed)), JSON.stringify(parsed)),
  reserialised('body-ascii-escaped', 'ASCII-escaped was signed', ascii(PLAIN), PLAIN),
  reserialised('body-unescaped', 'UTF-8 was signed, escapes arrive', PLAIN, ascii(PLAIN)),
  reserialised('body-slash-escaped', 'PHP escapes slashes', PLAIN.replaceAll('/', '\\/'), PLAIN),
  reserialised(
    'body-html-escaped',
    'Go escapes HTML',
    PLAIN.replaceAll('<', '\\u003c').replaceAll('>', '\\u003e'),
    PLAIN,
  ),
  reserialised('body-trailing-newline', 'a line feed more was signed', `${BODY}\n`, BODY),
  reserialised('body-trailing-newline', 'a line feed was added', BODY, `${BODY}\n`),
  reserialised(
    'body-line-ends',
    'CR LF was signed',
    JSON.stringify(parsed, undefined, 2).replaceAll('\n', '\r\n'),
    JSON.stringify(parsed, undefined, 2),
  ),
  reserialised('body-bom', 'a BOM was signed and dropped', `\uFEFF${BODY}`, BODY),
  reserialised('body-bom', 'a BOM was added', BODY, `\uFEFF${BODY}`),
  arrives(
    'body-utf8-replaced',
    'Latin-1 bytes were replaced',
    Buffer.from(BODY, 'latin1'),
    Buffer.from(Buffer.from(BODY, 'latin1').toString('utf8')),
  ),
  arrives(
    'body-mojibake',
    'UTF-8 was taken for Latin-1',
    BODY,
    Buffer.from(Buffer.from(BODY).toString('latin1')),
  ),
  arrives('body-gzip', 'a proxy compressed it', BODY, gzipSync(BODY)),
  arrives('body-latin1', 'Latin-1 was hashed, UTF-8 sent', Buffer.from(BODY, 'latin1'), Buffer.from(BODY)),
  reserialised('body-empty', 'nothing was hashed', '', BODY),
];

const CLOCKS: readonly Injected[] = [
  {
    cause: 'clock-milliseconds',
    how: 'created and expires in ms',
    sign: { params: { created: NOW, expires: NOW + 300_000 } },
  },
  {
    cause: 'clock-milliseconds',
    how: 'created in ms alone',
    sign: { params: { created: NOW, expires: NOW / 1000 + 300 } },
  },
  { cause: 'clock-zone', how: 'two hours ahead', sign: { now: () => NOW + 7_200_000 } },
  { cause: 'clock-zone', how: 'five and a half hours behind', sign: { now: () => NOW - 19_800_000 } },
  { cause: 'clock-off', how: 'eleven minutes behind', sign: { now: () => NOW - 660_000 } },
  { cause: 'validity-too-long', how: 'an hour', sign: { lifetimeMs: 3_600_000 } },
];

describe.each([
  ['URL', URLS],
  ['signature', SIGNATURES],
  ['body', BODIES],
  ['clock', CLOCKS],
] as const)('explain names the planted cause: %s', (_, injected) => {
  it.each(injected.map((one) => [`${one.cause}: ${one.how}`, one] as const))(
    '%s',
    async (_name, { cause, sign, way, capture, input }) => {
      const delivery = await signed(sign);
      const { ok, findings } = await explained(captured(way?.(delivery) ?? delivery, capture), input);
      expect(ok).toBe(false);
      expect(findings[0]).toMatchObject({ cause });
      expect(findings.map((finding) => finding.cause)).not.toContain('unknown');
      for (const { says, fix } of findings) expect([says, fix]).not.toContain('');
    },
  );
});

describe('explain says whether the receiver finds a wrong URL by itself, and the receiver does so', () => {
  const saysSo = { true: 'alarm public_url_mismatch', false: 'it answers 401' } as const;

  it.each(URLS.map((one) => [`${one.cause}: ${one.how}`, one] as const))('%s', async (_, injected) => {
    const { sign, way, capture: changes, input = {} } = injected;
    const made = await signed(sign);
    const capture = captured(way?.(made) ?? made, changes);
    const { findings } = await explained(capture, input);
    const alarms: string[] = [];
    const publicUrl = input.url ?? URL_GIVEN;
    const { ed25519, p256, other } = await keys();
    const pins = [ed25519, p256, other].map(({ publicJwk }) => publicJwk);
    const receiver = createReceiver({
      publicUrl,
      senders: [{ agentUrl: 'https://seller.example/mcp', pins }],
      store: memoryStore(),
      durability: { require: 'process' },
      allowLoopback: publicUrl.startsWith('http:'),
      now: () => NOW,
      logger: SILENT_LOGGER,
      handlers: { other: () => {} },
      onAlarm: ({ code }) => alarms.push(code),
      ...(input.hostCheck && { hostCheck: input.hostCheck }),
    });
    const { target: url, method, headers, body } = capture;
    const { response, kind } = await receiver.verifyAndDispatch(body, headers, { url, method });
    const isFound = alarms.includes('public_url_mismatch');
    expect([kind, response.status]).toEqual(isFound ? ['unavailable', 503] : ['refused', 401]);
    for (const { fix, cause } of findings) {
      if (cause !== 'not-canonical') expect(fix).toContain(saysSo[`${isFound}`]);
    }
    await receiver.stop();
  });

  it('an http URL cannot be publicUrl: the seller needs another one', async () => {
    const url = URL_GIVEN.replace('https:', 'http:');
    const { findings } = await explained(captured(await signed({ url })));
    expect(findings[0]?.fix).toContain(`no receiver has ${url}`);
    expect(findings[0]?.fix).not.toContain('Set publicUrl');
    // In development one has.
    const there = await explained(captured(await signed()), { url });
    expect(there.findings[0]?.fix).toContain(
      `Set publicUrl to exactly the URL that the seller was given: '${URL_GIVEN}'`,
    );
  });

  it('both results occur', async () => {
    const said = await Promise.all(
      URLS.map(async ({ sign, way, capture, input }) => {
        const made = await signed(sign);
        return (await explained(captured(way?.(made) ?? made, capture), input)).findings[0]?.fix ?? '';
      }),
    );
    for (const text of Object.values(saysSo)) {
      expect(said.filter((fix) => fix.includes(text)).length).toBeGreaterThanOrEqual(3);
    }
  });
});

/** A delivery whose signature has these characters, as one in a few has. */
async function signedWith(pattern: RegExp): Promise<SignedDelivery> {
  for (let tries = 0; tries < 1000; tries++) {
    const delivery = await signed();
    if (pattern.test((delivery.headers['Signature'] ?? '').slice('sig1='.length))) return delivery;
  }
  throw new Error('no such signature in a thousand');
}

/** What the seller signs of its delivery, spoilt before it signs it. */
async function signedOver(edit: (base: string) => string): Promise<SignedDelivery> {
  const { ed25519 } = await keys();
  const delivery = await signed();
  const { headers } = delivery;
  const params = (headers['Signature-Input'] ?? '').slice('sig1='.length);
  const values: Readonly<Record<string, string | undefined>> = {
    '@method': 'POST',
    '@target-uri': URL_GIVEN,
    '@authority': 'buyer.example',
    'content-type': headers['Content-Type'],
    'content-digest': headers['Content-Digest'],
  };
  const names = [...params.replace(/\).*/, '').matchAll(/"([^"]+)"/g)].map(([, name = '']) => name);
  const lines = names.map((name) => `"${name}": ${values[name]}\n`).join('');
  const key = createPrivateKey({ key: ed25519.privateJwk, format: 'jwk' });
  const made = signBytes(null, bytes(edit(`${lines}"@signature-params": ${params}`)), key);
  return withHeaders(delivery, { Signature: `sig1=:${made.toString('base64url')}:` });
}

describe('explain names a slip in the signature base', () => {
  it.each<[Cause, string, (base: string) => string]>([
    ['base-trailing-newline', 'a line feed at its end', (base) => `${base}\n`],
    ['base-line-ends', 'CR LF', (base) => base.replaceAll('\n', '\r\n')],
    ['method-case', 'the method in lower case', (base) => base.replace('POST', 'post')],
    [
      'not-canonical',
      'the port that the scheme implies',
      (base) => base.replaceAll(/buyer\.example(?=[/\n])/g, 'buyer.example:443'),
    ],
    [
      'not-canonical',
      'that port in @authority alone',
      (base) => base.replace('"@authority": buyer.example', '"@authority": buyer.example:443'),
    ],
    ['not-canonical', 'the URL as typed', (base) => base.replaceAll('buyer.example', 'Buyer.example')],
  ])('%s: %s', async (cause, _, edit) => {
    const input = { url: URL_GIVEN.replace('buyer', 'Buyer') };
    expect((await explained(captured(await signedOver((base) => base)), input)).ok).toBe(true);
    const { findings } = await explained(captured(await signedOver(edit)), input);
    expect(findings).toMatchObject([{ cause, step: '10', proved: true }]);
  });
});

describe('explain: keys, DER, several causes at once', () => {
  it('names DER instead of r‖s', async () => {
    const { p256 } = await keys();
    const delivery = await signed({ key: p256.privateJwk });
    const der = withHeaders(delivery, {
      Signature: `sig1=:${derText(delivery.headers['Signature'] ?? '')}:`,
    });
    expect((await explained(captured(der))).findings).toMatchObject([
      { cause: 'der-signature', proved: true, step: '10' },
    ]);
  });

  it('names mixed alphabets, which check 1 refuses', async () => {
    const delivery = await signedWith(/-.*_|_.*-/);
    const signature = (delivery.headers['Signature'] ?? '').replaceAll('_', '/');
    const { findings } = await explained(captured(withHeaders(delivery, { Signature: signature })));
    expect(findings).toMatchObject([{ cause: 'alphabet-mixed', proved: true, step: '1' }]);
  });

  it('names an alphabet with swapped special characters', async () => {
    const delivery = await signedWith(/[-_]/);
    const swapped = (delivery.headers['Signature'] ?? '').replace(/[-_]/g, (char) =>
      char === '-' ? '_' : '-',
    );
    const { findings } = await explained(captured(withHeaders(delivery, { Signature: swapped })));
    expect(findings).toMatchObject([{ cause: 'alphabet-swapped', proved: true, step: '10' }]);
  });

  it('names a purpose that no edition takes', async () => {
    const key = await generateKey('ed25519', 'token-signing', { kid: 'tokens' });
    const sender = { agentUrl: 'https://seller.example/mcp', pins: [key.publicJwk] };
    const { findings } = await explained(captured(await signed({ key: key.privateJwk })), {
      senders: [sender],
    });
    expect(findings).toMatchObject([{ cause: 'key-purpose', step: '8' }]);
  });

  it('explains unreadable headers, by their code when no fix is found', async () => {
    const delivery = await signed();
    const { findings } = await explained(captured(withHeaders(delivery, { 'Signature-Input': 'sig1=' })));
    expect(findings).toMatchObject([{ cause: 'headers', step: '1' }]);
    const bare = (delivery.headers['Signature'] ?? '').replaceAll(':', '');
    const mended = await explained(captured(withHeaders(delivery, { Signature: bare })));
    expect(mended.findings).toMatchObject([{ cause: 'headers', step: '1', proved: true }]);
    expect(mended.findings[0]?.says).toContain('sig1=:…:');
  });

  it('mends both fields of a seller that writes them without colons', async () => {
    const delivery = await signed();
    const bare = Object.fromEntries(
      ['Signature', 'Content-Digest'].map((name) => [
        name,
        delivery.headers[name]?.replaceAll(':', '') ?? '',
      ]),
    );
    const { findings } = await explained(captured(withHeaders(delivery, bare)));
    expect(findings).toMatchObject([{ cause: 'headers', step: '1', proved: true }]);
    expect(findings[0]?.says).toMatch(/^(Signature and Content-Digest|Content-Digest and Signature) are not/);
  });

  it('looks at a URL that no receiver could be configured with', async () => {
    for (const url of ['https://buyer.example/a*b', 'https://buyer.example/caf\u00e9']) {
      const capture = captured(await signed(), { url });
      const { findings } = await explained(capture, { url });
      expect(findings.map(({ cause }) => cause)).toEqual(['path-prefix', 'query-dropped']);
    }
  });

  it('tries nothing of a URL with a key that the sender has not published', async () => {
    const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'stranger' });
    const delivery = await signed({ key: stranger.privateJwk, url: URL_GIVEN.replace('https', 'http') });
    expect((await explained(captured(delivery))).findings).toMatchObject([
      { cause: 'key-missing', step: '7', proved: true },
    ]);
  });

  it('names every change of a URL that a proxy changed in three ways', async () => {
    const delivery = withHeaders(await signed(), { 'X-Forwarded-Host': 'buyer.example' });
    const url = 'http://10.0.0.7:3000/proto?tenant=a%2Cb&n=1';
    const { findings } = await explained(captured(delivery), { url });
    expect(findings.map(({ cause }) => cause)).toEqual(['scheme', 'forwarded-host', 'path-prefix']);
    expect(findings[0]?.fix).toContain(
      `publicUrl to exactly the URL that the seller was given: '${URL_GIVEN}'`,
    );
  });

  it('names two changes of one body', async () => {
    const delivery = await signed({ body: spacedText(sorted(parsed)) });
    const { findings } = await explained(captured({ ...delivery, body: bytes(PLAIN) }));
    expect(findings.map(({ cause }) => cause).toSorted()).toEqual(['body-sorted', 'body-spaced']);
  });

  it('checks the digest although the window failed, and the signature too', async () => {
    const delivery = await signed({ now: () => NOW - 7_200_000, url: URL_GIVEN.replace('https', 'http') });
    const { findings, steps } = await explained(captured({ ...delivery, body: bytes(`${BODY}\n`) }));
    expect(findings.map(({ cause }) => cause)).toEqual(['clock-zone', 'scheme', 'body-trailing-newline']);
    expect(steps.filter(({ verdict }) => verdict === 'fail').map(({ id }) => id)).toEqual(['5', '10', '11']);
  });

  it('names the edition that takes the key’s purpose', async () => {
    const key = await generateKey('ed25519', 'request-signing', { kid: 'requests' });
    const delivery = await signed({ key: key.privateJwk });
    const sender = { agentUrl: 'https://seller.example/mcp', pins: [key.publicJwk] };
    const { findings } = await explained(captured(delivery), { senders: [sender] });
    expect(findings).toMatchObject([{ cause: 'edition', step: '8', proved: true }]);
    expect(findings[0]?.fix).toContain("edition: '3.1'");
    expect((await explained(captured(delivery), { senders: [sender], edition: '3.1' })).ok).toBe(true);
  });

  it('reads a body that is nested deeper than any stack, with white space around one', async () => {
    const deep = `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
    const delivery = await signed({ body: deep });
    const { findings } = await explained(captured({ ...delivery, body: bytes(deep.replace('a', 'b')) }));
    expect(findings.map(({ cause, step }) => [cause, step])).toEqual([
      ['body-other', '11'],
      ['body', '14'],
    ]);
    const spaced = await explained(captured({ ...(await signed()), body: bytes(`  ${BODY}`) }));
    expect(spaced.findings).toMatchObject([{ cause: 'body-other', proved: true }]);
  });

  it('names no cause without evidence', async () => {
    const delivery = await signed({ url: 'https://unheard.example/of' });
    const tampered = { ...delivery, body: bytes(text(delivery.body).replace('completed', 'canceled')) };
    const { findings } = await explained(captured(tampered));
    expect(findings.map(({ cause, proved }) => [cause, proved])).toEqual([
      ['unknown', false],
      ['body-other', false],
    ]);
  });
});

describe('explain decompresses gzip that a proxy added', () => {
  const zipped = (delivery: SignedDelivery, body: string | Uint8Array = delivery.body): SignedDelivery =>
    withHeaders({ ...delivery, body: new Uint8Array(gzipSync(body)) }, { 'Content-Encoding': 'gzip' });
  const causesOf = ({ findings }: Explanation): unknown[] =>
    findings.map(({ step, cause, proved }) => [step, cause, proved]);

  it('names it for each check that it made fail', async () => {
    expect(causesOf(await explained(captured(zipped(await signed()))))).toEqual([
      ['request', 'body-gzip', true],
      ['11', 'body-gzip', true],
      ['14', 'body-gzip', true],
    ]);
  });

  it('names other changes of the body beside it', async () => {
    const delivery = zipped(await signed({ body: PLAIN }), spacedText(parsed));
    expect(causesOf(await explained(captured(delivery)))).toEqual([
      ['request', 'body-gzip', true],
      ['11', 'body-gzip', true],
      ['11', 'body-compact', true],
      ['14', 'body-gzip', true],
    ]);
    const changed = zipped(await signed(), '{"another":"body"}');
    expect(causesOf(await explained(captured(changed)))).toContainEqual(['11', 'body-other', false]);
  });

  it('also for a legacy sender, whose HMAC covers the uncompressed body', async () => {
    const secret = 's-'.repeat(16);
    const sender = { agentUrl: 'https://old.example/mcp', auth: { hmac: { secret } } };
    const delivery = zipped(signHmac({ url: URL_GIVEN, body: BODY, secret, now: () => NOW }));
    expect(causesOf(await explained(captured(delivery), { senders: [sender] }))).toEqual([
      ['request', 'body-gzip', true],
      ['hmac', 'body-gzip', true],
      ['14', 'body-gzip', true],
    ]);
  });

  it('does not blame a proxy when the seller signed the compressed bytes', async () => {
    const delivery = await signed({ body: new Uint8Array(gzipSync(BODY)) });
    const capture = captured(withHeaders(delivery, { 'Content-Encoding': 'gzip' }));
    expect(causesOf(await explained(capture))).toEqual([
      ['request', 'request', true],
      ['14', 'body', true],
    ]);
  });

  it('leaves data that only looks like gzip, and doubly compressed data, unchanged', async () => {
    for (const body of [Uint8Array.of(0x1f, 0x8b, 0x08), new Uint8Array(gzipSync(gzipSync(BODY)))]) {
      const { findings } = await explained(captured({ ...(await signed()), body }));
      expect(findings.map(({ cause }) => cause)).toEqual(['body-other', 'body']);
    }
  });
});

describe('explain names the planted cause: legacy HMAC', () => {
  const secret = 's-'.repeat(16);
  const sender = { agentUrl: 'https://old.example/mcp', auth: { hmac: { secret } } };
  const made = (body: string, now = NOW): SignedDelivery =>
    signHmac({ url: URL_GIVEN, body, secret, now: () => now });
  const mac = (value: string): string => createHmac('sha256', secret).update(value).digest('hex');
  const seconds = NOW / 1000;

  it.each<[string, Cause, () => SignedDelivery]>([
    [
      'a body that was serialised again',
      'body-spaced',
      () => ({ ...made(spacedText(parsed)), body: bytes(PLAIN) }),
    ],
    ['a line feed more', 'body-trailing-newline', () => ({ ...made(BODY), body: bytes(`${BODY}\n`) })],
    ['milliseconds', 'clock-milliseconds', () => made(BODY, NOW * 1000)],
    ['a clock that is off', 'clock-off', () => made(BODY, NOW - 400_000)],
    [
      'upper-case digits',
      'headers',
      () =>
        withHeaders(made(BODY), { 'x-proto-signature': `sha256=${mac(`${seconds}.${BODY}`).toUpperCase()}` }),
    ],
    [
      'no timestamp in what is signed',
      'headers',
      () => withHeaders(made(BODY), { 'x-proto-signature': `sha256=${mac(BODY)}` }),
    ],
    [
      'another secret',
      'unknown',
      () => withHeaders(made(BODY), { 'x-proto-signature': `sha256=${'0'.repeat(64)}` }),
    ],
  ])('%s', async (_, cause, delivery) => {
    const { findings } = await explained(captured(delivery()), { senders: [sender] });
    expect(findings[0]).toMatchObject({ cause, step: 'hmac' });
  });
});

describe('explain: a valid delivery', () => {
  it.each(['ed25519', 'p256'] as const)('passes every check that a capture allows: %s', async (name) => {
    const { privateJwk } = (await keys())[name];
    const { ok, findings, steps } = await explained(captured(await signed({ key: privateJwk })));
    expect({ ok, findings }).toEqual({ ok: true, findings: [] });
    expect(steps.filter(({ verdict }) => verdict !== 'pass').map(({ id }) => id)).toEqual(['12']);
  });

  it('treats a proof of control as no event: signed at a legacy sender too', async () => {
    const { ed25519 } = await keys();
    const sender = {
      agentUrl: 'https://old.example/mcp',
      pins: [ed25519.publicJwk],
      auth: { hmac: { secret: 's-'.repeat(16) } },
    };
    const body = sampleChallenge(sender.agentUrl, sender.auth);
    const good = await explained(captured(await signed({ body })), { senders: [sender] });
    expect(good).toMatchObject({ ok: true, findings: [] });
    expect(good.steps.at(-1)).toMatchObject({ id: 'envelope', verdict: 'open' });
    const short = await explained(captured(await signed({ body: { ...body, challenge: 'short' } })));
    expect(short.steps.at(-1)).toMatchObject({ verdict: 'fail', code: 'challenge_refused' });
    expect(short.findings[0]?.fix).toContain('proof of control');
  });

  it('checks legacy senders by their own scheme', async () => {
    const secret = 's-'.repeat(16);
    const sender = { agentUrl: 'https://old.example/mcp', auth: { hmac: { secret } } };
    const delivery = signHmac({ url: URL_GIVEN, body: BODY, secret, now: () => NOW });
    expect((await explained(captured(delivery), { senders: [sender] })).ok).toBe(true);
    const { steps } = await explained(captured({ ...delivery, body: bytes(`${BODY} `) }), {
      senders: [sender],
    });
    expect(steps.find(({ id }) => id === 'hmac')).toMatchObject({
      verdict: 'fail',
      code: 'webhook_signature_invalid',
    });
    const wrong = await explained(captured(await signed()), { senders: [sender] });
    expect(wrong.findings[0]).toMatchObject({ cause: 'mode' });
  });
});
