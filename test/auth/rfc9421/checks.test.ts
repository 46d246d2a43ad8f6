import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkSignatureHeaders } from '../../../src/auth/for-tests.ts';
import { headerFields, protocolsFor } from '../../../src/for-tests.ts';
import type { HeadersInput } from '../../../src/index.ts';
import { createSigner, FIVE, NONCE, NOW, signedHeaders } from './support.ts';
import type { Wire } from './support.ts';

const signer = createSigner();

function check(headers: HeadersInput, nowMs = NOW * 1000) {
  return checkSignatureHeaders(headerFields(headers), protocolsFor(), nowMs);
}

const sent = (wire: Wire = {}, nowMs?: number) => check(signedHeaders(signer, wire), nowMs);

function refused(check: number, code: string) {
  return { kind: 'refused', check, code: `webhook_signature_${code}` };
}

test('headers that pass checks 1 to 6 give all that the later checks need', () => {
  expect(sent()).toMatchObject({
    kind: 'checked',
    components: FIVE,
    parameters: { created: NOW, expires: NOW + 300, nonce: NONCE, keyid: 'key-1', alg: 'ed25519' },
    signature: expect.objectContaining({ length: 64 }) as unknown,
    digest: { sha256: expect.objectContaining({ length: 32 }) as unknown },
  });
});

describe('check 1: header_malformed', () => {
  const malformed = refused(1, 'header_malformed');
  const usual = signedHeaders(signer);
  const SIGNATURE = usual['signature'] ?? '';
  const INPUT = usual['signature-input'] ?? '';

  test('padded standard base64 passes', () => {
    expect(sent({ encoding: 'base64' })).toMatchObject({ kind: 'checked' });
  });

  test('other labels pass and are ignored', () => {
    const headers = {
      ...usual,
      'signature-input': `a=("x"), ${INPUT}`,
      signature: `a=:AAAA:, ${SIGNATURE};p=1, b=:-_8:`,
    };
    expect(check(headers)).toEqual(check(usual));
  });

  test('a dictionary on two header lines is read as one', () => {
    const lines = Object.entries(usual).filter(([name]) => name !== 'signature');
    expect(check([...lines, ['Signature', 'a=:AAAA:'], ['Signature', SIGNATURE]])).toEqual(check(usual));
  });

  test.each([['both'], ['signature'], ['signature-input']])('%s absent', (what) => {
    expect(sent({ without: what === 'both' ? ['signature', 'signature-input'] : [what] })).toMatchObject(
      malformed,
    );
  });

  test.each([
    ['nothing', ''],
    ['another label only', SIGNATURE.replace('sig1', 'sig2')],
    ['a label twice', `${SIGNATURE}, ${SIGNATURE}`],
    ['a parameter twice', `${SIGNATURE};a;a`],
    ['another member that is not a byte sequence', `${SIGNATURE}, b=1`],
    ['a string', 'sig1="AAAA"'],
    ['a token', 'sig1=AAAA'],
    ['an inner list', 'sig1=("a")'],
    ['a flag', 'sig1'],
    ['mixed alphabets', 'sig1=:+_+_:'],
    ['inner padding', 'sig1=:Zg==Zg==:'],
    ['trailing bits', 'sig1=:Zh==:'],
    ['wrong padding', 'sig1=:Zg=:'],
    ['latin-1', 'sig1=:\u00e9AAA:'],
    ['NUL', 'sig1=:AAA\u0000:'],
    ['an end that is missing', 'sig1=:AAAA'],
    ['one character and no end', 'sig1=:A'],
  ])('Signature with %s', (_, signature) => {
    expect(check({ ...usual, signature })).toMatchObject(malformed);
  });

  test.each([
    ['is not an inner list', 'sig1="x"'],
    ['has a label twice', `${INPUT}, ${INPUT}`],
    ['has a parameter twice', `${INPUT};tag="a"`],
    ['has created as a decimal', INPUT.replace(`created=${NOW}`, `created=${NOW}.0`)],
    ['has keyid as a token', INPUT.replace('"key-1"', 'key-1')],
  ])('Signature-Input that %s', (_, input) => {
    expect(check({ ...usual, 'signature-input': input })).toMatchObject(malformed);
  });

  test('the same Signature-Input on two lines', () => {
    const lines = Object.entries(usual);
    expect(check([...lines, ['Signature-Input', INPUT]])).toMatchObject(malformed);
  });

  test.each([
    ['signature-input', '=()'],
    ['signature', '=:AAAA:'],
    ['content-digest', '=:AAAA:'],
  ])('%s: 1,024 members, and not one more', (name, value) => {
    const withMore = (count: number): string =>
      [usual[name], ...Array.from({ length: count }, (_, at) => `more${at}${value}`)].join(', ');
    expect(check({ ...usual, [name]: withMore(1023) })).toMatchObject({ kind: 'checked' });
    expect(check({ ...usual, [name]: withMore(1024) })).toMatchObject(malformed);
  });

  test('more than 65,536 characters in the three fields together, before they are parsed', () => {
    const own = [usual['signature-input'], usual['signature'], usual['content-digest']].join('').length;
    const name = 'x'.repeat(65_536 - own - ', '.length - '=()'.length);
    const withMember = (member: string): string => `${usual['signature-input']}, ${member}=()`;
    expect(check({ ...usual, 'signature-input': withMember(name) })).toMatchObject({ kind: 'checked' });
    const beyond = check({ ...usual, 'signature-input': withMember(`${name}x`) });
    expect(beyond).toMatchObject({
      ...malformed,
      detail: expect.stringContaining('have 65537 characters') as string,
    });
  });

  test('Content-Digest that does not parse, or is not 32 bytes, or is repeated', () => {
    const digest = usual['content-digest'] ?? '';
    for (const value of ['sha-256', 'sha-256=:AAAA:', '', [digest, digest]]) {
      expect(check({ ...usual, 'content-digest': value })).toMatchObject(malformed);
    }
  });
});

describe('check 2: params_incomplete', () => {
  test.each(['created', 'expires', 'nonce', 'keyid', 'alg', 'tag'])('%s is absent', (name) => {
    expect(sent({ parameters: { [name]: null } })).toMatchObject(refused(2, 'params_incomplete'));
  });

  test.each([
    ['16 bytes', 'A'.repeat(22)],
    ['more', `${'A'.repeat(40)}-_`],
    ['characters drawn at random, whose last has stray bits', 'abcdefghijklmnopqrstuv'],
  ])('a nonce of %s passes', (_, nonce) => {
    expect(sent({ parameters: { nonce: `"${nonce}"` } })).toMatchObject({ kind: 'checked' });
  });

  test.each([
    ['15 bytes', 'A'.repeat(20)],
    ['nothing', ''],
    ['padded text', `${'A'.repeat(22)}==`],
    ['the standard alphabet', `${'A'.repeat(21)}+`],
    ['a length that no bytes have', 'A'.repeat(25)],
    ['other characters', `${'A'.repeat(22)}.`],
    ['text that ends with a space', `${'A'.repeat(22)} `],
  ])('a nonce of %s is header_malformed', (_, nonce) => {
    expect(sent({ parameters: { nonce: `"${nonce}"` } })).toMatchObject(refused(2, 'header_malformed'));
  });
});

describe('check 3: tag_invalid', () => {
  test.each(['proto/webhook-signing/v2', 'proto/request-signing/v1', 'Proto/webhook-signing/v1', ''])(
    '%j',
    (tag) => {
      expect(sent({ parameters: { tag: `"${tag}"` } })).toMatchObject(refused(3, 'tag_invalid'));
    },
  );

  test('the tag contains the configured protocol name', () => {
    const headers = headerFields(signedHeaders(signer, { parameters: { tag: '"ad-x/webhook-signing/v1"' } }));
    expect(checkSignatureHeaders(headers, protocolsFor('ad-x'), NOW * 1000)).toMatchObject({
      kind: 'checked',
    });
    expect(checkSignatureHeaders(headers, protocolsFor(), NOW * 1000)).toMatchObject(
      refused(3, 'tag_invalid'),
    );
  });
});

describe('check 4: alg_not_allowed', () => {
  test('ecdsa-p256-sha256 passes', () => {
    expect(sent({ parameters: { alg: '"ecdsa-p256-sha256"' } })).toMatchObject({ kind: 'checked' });
  });

  test.each([
    'rsa-pss-sha512',
    'hmac-sha256',
    'ecdsa-p384-sha384',
    'ED25519',
    'EdDSA',
    '',
    'toString',
    '__proto__',
  ])('%j', (alg) => {
    expect(sent({ parameters: { alg: `"${alg}"` } })).toMatchObject(refused(4, 'alg_not_allowed'));
  });
});

describe('check 5: window_invalid', () => {
  const at = (created: number, expires: number, nowMs?: number) =>
    sent({ parameters: { created: String(created), expires: String(expires) } }, nowMs);

  test.each([
    ['one second long', NOW, NOW + 1],
    ['300 s long', NOW, NOW + 300],
    ['created 60 s ahead', NOW + 60, NOW + 61],
    ['expired 60 s ago', NOW - 61, NOW - 60],
  ])('%s passes', (_, created, expires) => {
    expect(at(created, expires)).toMatchObject({ kind: 'checked' });
  });

  test.each([
    ['expires = created', NOW, NOW],
    ['expires < created', NOW, NOW - 1],
    ['301 s long', NOW, NOW + 301],
    ['created 61 s ahead', NOW + 61, NOW + 62],
    ['expired 61 s ago', NOW - 62, NOW - 61],
    ['10 min behind', NOW - 600, NOW - 300],
    ['10 min ahead', NOW + 600, NOW + 900],
    ['milliseconds', NOW * 1000, NOW * 1000 + 300],
    ['milliseconds, 5 min long', NOW * 1000, NOW * 1000 + 300_000],
    ['negative', -1, 299],
    ['zero', 0, 300],
    ['as large as integers get', 999_999_999_999_998, 999_999_999_999_999],
  ])('%s', (_, created, expires) => {
    expect(at(created, expires)).toMatchObject(refused(5, 'window_invalid'));
  });

  test('the window ends at the millisecond at which the nonce is forgotten', () => {
    expect(at(NOW - 300, NOW, (NOW + 60) * 1000)).toMatchObject({ kind: 'checked' });
    expect(at(NOW - 300, NOW, (NOW + 60) * 1000 + 1)).toMatchObject(refused(5, 'window_invalid'));
    expect(at(NOW, NOW + 1, (NOW - 60) * 1000 - 1)).toMatchObject(refused(5, 'window_invalid'));
  });
});

describe('check 6: components_incomplete', () => {
  const incomplete = refused(6, 'components_incomplete');

  test.each(FIVE)('%s is not covered', (missing) => {
    expect(sent({ components: FIVE.filter((name) => name !== missing) })).toMatchObject(incomplete);
  });

  test('the five in any order pass', () => {
    expect(sent({ components: FIVE.toReversed() })).toMatchObject({ kind: 'checked' });
  });

  test.each(['@scheme', '@path', '@query', '@request-target', 'x-extra', 'content-length'])(
    'an additional plain %s passes',
    (extra) => {
      const headers = { 'x-extra': 'a', 'content-length': '1' };
      expect(sent({ components: [...FIVE, extra], headers })).toMatchObject({ kind: 'checked' });
    },
  );

  test.each([
    '@status',
    '@query-param',
    '@signature-params',
    '@unknown',
    '@',
    'x-absent',
    'X-Extra',
    '',
    'x extra',
  ])('an additional %j', (extra) => {
    expect(sent({ components: [...FIVE, extra], headers: { 'x-extra': 'a' } })).toMatchObject(incomplete);
  });

  test.each(['sf', 'bs', 'key="a"', 'req', 'tr', 'other'])('a component with ;%s', (parameter) => {
    const headers = signedHeaders(signer);
    const input = (headers['signature-input'] ?? '').replace('"content-type"', `"content-type";${parameter}`);
    expect(check({ ...headers, 'signature-input': input })).toMatchObject(incomplete);
  });

  test.each(['@method', 'content-type', 'x-extra'])('a duplicate of %s', (twice) => {
    const components = [...new Set([...FIVE, twice]), twice];
    expect(sent({ components, headers: { 'x-extra': 'a' } })).toMatchObject(incomplete);
  });

  test('a parameterised component beside the plain one', () => {
    const headers = signedHeaders(signer);
    const input = (headers['signature-input'] ?? '').replace(
      '"content-type"',
      '"content-type" "content-type";sf',
    );
    expect(check({ ...headers, 'signature-input': input })).toMatchObject(incomplete);
  });

  test.each(['content-type', 'content-digest'])('%s is covered and absent', (name) => {
    expect(sent({ without: [name] })).toMatchObject(incomplete);
  });

  test.each([
    ['latin-1', '\u00e9'],
    ['a line feed', 'a\n"@method": GET'],
    ['NUL', 'a\u0000'],
  ])('a covered field with %s', (_, value) => {
    expect(sent({ components: [...FIVE, 'x-extra'], headers: { 'x-extra': value } })).toMatchObject(
      incomplete,
    );
  });
});

describe('the order of the table', () => {
  const broken = {
    1: { parameters: { keyid: 'token' } },
    2: { parameters: { expires: null } },
    3: { parameters: { tag: '"x"' } },
    4: { parameters: { alg: '"x"' } },
    5: { parameters: { created: '1' } },
    6: { components: ['@method'] },
  } as const;

  test('the first that fails decides, whatever fails after it', () => {
    const steps = [1, 2, 3, 4, 5, 6] as const;
    for (const first of steps) {
      const later = steps.filter((step) => step >= first).map((step): Wire => broken[step]);
      const parameters = Object.assign({}, ...later.map((wire) => wire.parameters)) as Record<
        string,
        string | null
      >;
      expect(sent({ parameters, components: ['@method'] })).toMatchObject({ check: first });
    }
  });

  test('a missing parameter is reported before an invalid nonce', () => {
    expect(sent({ parameters: { nonce: '"short"', tag: null } })).toMatchObject(
      refused(2, 'params_incomplete'),
    );
  });

  test('a malformed Content-Digest is reported before a missing parameter', () => {
    const wire = { parameters: { tag: null }, headers: { 'content-digest': 'sha-256' } };
    expect(sent(wire)).toMatchObject(refused(1, 'header_malformed'));
  });
});

test('whatever the headers hold, nothing throws', () => {
  const usual = Object.entries(signedHeaders(signer));
  const value = fc.string({ unit: 'binary' });
  const splice = fc.tuple(fc.nat(3), fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(8), value);
  fc.assert(
    fc.property(splice, ([which, at, cut, text]) => {
      const headers = usual.map(([name, line], i): [string, string] => {
        const start = Math.floor(at * line.length);
        return [name, i === which ? line.slice(0, start) + text + line.slice(start + cut) : line];
      });
      expect(['checked', 'refused']).toContain(check(headers).kind);
    }),
    { numRuns: 3000 },
  );
});

test('16 KiB of any bytes are read in bounded time', () => {
  const usual = signedHeaders(signer);
  const long = [' ', '"', '\\', '(', ';', ',', ':', 'a', '=', ';a=1', ', a', '("x")', '\t', '%'].map((unit) =>
    unit.repeat(Math.floor(16_384 / unit.length)),
  );
  for (const text of long) {
    for (const name of ['signature-input', 'signature', 'content-digest']) {
      const before = usual[name] ?? '';
      for (const line of [text, `${before}${text}x`, `${before.slice(0, 6)}${text}x`]) {
        expect(
          checkSignatureHeaders(new Map([...headerFields(usual), [name, [line]]]), protocolsFor(), 0),
        ).toMatchObject({
          kind: 'refused',
        });
      }
    }
  }
});
