import { createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { authenticateHmac, type AuthResult } from '../../src/auth/for-tests.ts';
import type { HeadersInput } from '../../src/index.ts';
import { bench, NOW, request, sender } from './make-context.ts';

const SECRET = 'a shared secret of 32 characters';
const PREVIOUS = 'the secret that was used before it';
const OTHER = 'the secret of quite another seller';
const BODY = new TextEncoder().encode('{"idempotency_key":"0123456789abcdef","status":"completed"}');

const seller = sender('seller.example', { scheme: 'hmac', secrets: [SECRET, PREVIOUS] });
const other = sender('other.example', { scheme: 'hmac', secrets: [OTHER] });

/** contract.md §5.14, by another implementation than ours. */
function sign(secret: string, timestamp: string, body: Uint8Array = BODY): string {
  return `sha256=${createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')}`;
}

const fields = (timestamp: string, signature: string): Record<string, string> => ({
  'X-PROTO-Timestamp': timestamp,
  'X-PROTO-Signature': signature,
});
const signed = (secret: string, timestamp = String(NOW), body = BODY): Record<string, string> =>
  fields(timestamp, sign(secret, timestamp, body));

const run = async (headers: HeadersInput, body = BODY, senders = [seller, other]): Promise<AuthResult> =>
  await authenticateHmac(bench().context, request(senders, headers, body));

const MALFORMED = { kind: 'refused', code: 'webhook_signature_header_malformed' };
const WINDOW = { kind: 'refused', code: 'webhook_signature_window_invalid' };
const INVALID = { kind: 'refused', code: 'webhook_signature_invalid' };

describe('authenticateHmac: the sender', () => {
  it('is the sender whose secret signed timestamp, dot and raw body', async () => {
    expect(await run(signed(SECRET))).toEqual({ kind: 'authentic', sender: seller, scheme: 'hmac' });
    expect(await run(signed(OTHER))).toEqual({ kind: 'authentic', sender: other, scheme: 'hmac' });
  });

  it('is the same sender under its previous secret', async () => {
    expect(await run(signed(PREVIOUS))).toMatchObject({ kind: 'authentic', sender: seller });
  });

  it('is unknown under any other secret', async () => {
    expect(await run(signed('a secret that nobody registered, ever'))).toMatchObject(INVALID);
    expect(await run(signed(OTHER), BODY, [seller])).toMatchObject(INVALID);
  });

  it('reads the header names of the configured protocol name', async () => {
    const headers = { 'x-other-timestamp': String(NOW), 'x-other-signature': sign(SECRET, String(NOW)) };
    const asked = request([seller], headers, BODY);
    expect(await authenticateHmac(bench('other').context, asked)).toMatchObject({ kind: 'authentic' });
    expect(await authenticateHmac(bench().context, asked)).toMatchObject(MALFORMED);
  });

  it('keys with the UTF-8 bytes of the secret', async () => {
    const secret = 'ein gemeinsames Geheimnis — größer';
    const sellers = [sender('s.example', { scheme: 'hmac', secrets: [secret] })];
    expect(await run(signed(secret), BODY, sellers)).toMatchObject({ kind: 'authentic' });
  });
});

describe('authenticateHmac: bytes', () => {
  it('takes any body, an empty one included', async () => {
    for (const body of [new Uint8Array(), Uint8Array.of(0xff, 0, 0xfe)]) {
      expect(await run(signed(SECRET, String(NOW), body), body)).toMatchObject({ kind: 'authentic' });
    }
  });

  it('refuses the body with any bit flipped', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: BODY.length * 8 - 1 }), async (bit) => {
        const body = new Uint8Array(BODY);
        body[bit >> 3] = (body[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(await run(signed(SECRET), body)).toMatchObject(INVALID);
      }),
    );
  });

  it('refuses the signature of another timestamp', async () => {
    expect(await run(fields(String(NOW + 1), sign(SECRET, String(NOW))))).toMatchObject(INVALID);
  });

  it('signs the timestamp as it was written, not as it was read', async () => {
    expect(await run(signed(SECRET, `00${NOW}`))).toMatchObject({ kind: 'authentic' });
    expect(await run(fields(`00${NOW}`, sign(SECRET, String(NOW))))).toMatchObject(INVALID);
  });

  const right = sign(SECRET, String(NOW));
  it.each([
    ['upper-case hex', right.toUpperCase().replace('SHA', 'sha')],
    ['an upper-case name', right.replace('sha', 'SHA')],
    ['no name', right.slice(7)],
    ['another name', right.replace('sha256', 'sha512')],
    ['a digit less', right.slice(0, -1)],
    ['a digit more', `${right}0`],
    ['only the name', 'sha256='],
    ['base64', `sha256=${Buffer.from(right.slice(7), 'hex').toString('base64')}`],
    ['a space after the name', right.replace('=', '= ')],
    ['a character outside ASCII', `${right.slice(0, -1)}é`],
  ])('refuses a signature with %s', async (_, signature) => {
    expect(await run(fields(String(NOW), signature))).toMatchObject(INVALID);
  });
});

describe('authenticateHmac: fields', () => {
  const { 'X-PROTO-Timestamp': timestamp = '', 'X-PROTO-Signature': signature = '' } = signed(SECRET);

  it('refuses a missing or empty signature or timestamp', async () => {
    expect(await run({})).toMatchObject(MALFORMED);
    expect(await run({ 'X-PROTO-Timestamp': timestamp })).toMatchObject(MALFORMED);
    expect(await run({ 'X-PROTO-Signature': signature })).toMatchObject(MALFORMED);
    expect(await run(fields('', signature))).toMatchObject(MALFORMED);
    expect(await run(fields(timestamp, ''))).toMatchObject(MALFORMED);
  });

  it.each(['X-PROTO-Timestamp', 'X-PROTO-Signature'])('refuses a repeated %s', async (name) => {
    const all = fields(timestamp, signature);
    const again = all[name] ?? '';
    expect(await run([...Object.entries(all), [name.toLowerCase(), again]])).toMatchObject(MALFORMED);
    expect(await run({ ...all, [name]: `${again}, ${again}` })).toMatchObject(MALFORMED);
  });

  it.each([
    '-1',
    '+1760000000',
    '1760000000.0',
    '1.76e9',
    '0x68e77800',
    '1 760 000 000',
    'now',
    '２０２５',
    '1760000000s',
  ])('refuses a timestamp that is not a number: %s', async (text) => {
    expect(await run(signed(SECRET, text))).toMatchObject(MALFORMED);
  });

  it('answers in the Signature form, with no check of verification.md §2', async () => {
    const refusal = await run({});
    expect(refusal).not.toHaveProperty('challenge');
    expect(refusal).not.toHaveProperty('check');
  });
});

describe('authenticateHmac: window', () => {
  it.each([0, 1, 299, 300, -1, -299, -300])('takes a timestamp %d s away', async (skew) => {
    const { context, alarms } = bench();
    const asked = request([seller], signed(SECRET, String(NOW + skew)), BODY);
    expect(await authenticateHmac(context, asked)).toMatchObject({ kind: 'authentic' });
    expect(alarms).toEqual([]);
  });

  it.each([301, -301, 600, -600, 86_400, -NOW])('refuses one %d s away and says so', async (skew) => {
    const { context, alarms } = bench();
    const asked = request([seller], signed(SECRET, String(NOW + skew)), BODY);
    expect(await authenticateHmac(context, asked)).toMatchObject(WINDOW);
    expect(alarms).toMatchObject([{ code: 'clock_skew', offsetMs: skew * 1000, sender: seller.agentUrl }]);
  });

  it('compares whole seconds, as the sender counts', async () => {
    const asked = request([seller], signed(SECRET, String(NOW - 300)), BODY, NOW * 1000 + 999);
    expect(await authenticateHmac(bench().context, asked)).toMatchObject({ kind: 'authentic' });
  });

  it('refuses milliseconds passed as seconds, and names them', async () => {
    const { context, alarms } = bench();
    const asked = request([seller, other], signed(SECRET, String(NOW * 1000)), BODY);
    expect(await authenticateHmac(context, asked)).toMatchObject(WINDOW);
    expect(alarms).toHaveLength(1);
    expect(alarms[0]?.message).toContain('milliseconds');
    expect(alarms[0]).not.toHaveProperty('sender');
  });

  it('refuses digits without end', async () => {
    expect(await run(signed(SECRET, '9'.repeat(9000)))).toMatchObject(WINDOW);
  });
});

describe('authenticateHmac: order (verification.md §6.1)', () => {
  it('missing before not a number, not a number before the window, the window before the digest', async () => {
    expect(await run({ 'X-PROTO-Timestamp': '1' })).toMatchObject(MALFORMED);
    expect(await run(fields('soon', 'sha256=00'))).toMatchObject(MALFORMED);
    expect(await run(fields('1', 'sha256=00'))).toMatchObject(WINDOW);
    expect(await run(fields(String(NOW), 'sha256=00'))).toMatchObject(INVALID);
  });

  it('never throws, whatever the fields say', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), fc.string(), async (timestamp, signature) => {
        expect(await run(fields(timestamp, signature))).toMatchObject({ kind: 'refused' });
      }),
    );
  });
});
