import { describe, expect, it } from 'vitest';
import { modeMismatch, schemeOf } from '../../src/auth/for-tests.ts';
import { type AuthPolicy, headerFields, protocolsFor } from '../../src/for-tests.ts';

type Scheme = AuthPolicy['scheme'];

/** Short names for what a delivery may carry. */
const FIELDS = {
  input: ['Signature-Input', 'sig1=()'],
  signature: ['Signature', 'sig1=:AA:'],
  hmac: ['X-PROTO-Signature', 'sha256=00'],
  timestamp: ['X-PROTO-Timestamp', '1760000000'],
  bearer: ['Authorization', 'Bearer 0123456789abcdef0123456789abcdef'],
  lowerBearer: ['authorization', 'bearer 0123456789abcdef0123456789abcdef'],
  basic: ['Authorization', 'Basic dXNlcjpwYXNz'],
  emptyBearer: ['Authorization', 'Bearer'],
  digest: ['Content-Digest', 'sha-256=:AA:'],
} as const;

function verdict(scheme: Scheme, carried: readonly (keyof typeof FIELDS)[], protocol = 'proto'): string {
  const headers = headerFields(carried.map((name) => FIELDS[name]));
  return modeMismatch(scheme, headers, protocolsFor(protocol))?.code ?? 'none';
}

const MISMATCH = 'webhook_mode_mismatch';

describe('modeMismatch (verification.md §2.23)', () => {
  it.each<[Scheme, readonly (keyof typeof FIELDS)[]]>([
    ['hmac', ['input', 'signature']],
    ['hmac', ['input']],
    ['hmac', ['signature']],
    ['hmac', ['hmac', 'timestamp', 'signature']],
    ['bearer', ['input', 'signature']],
    ['bearer', ['input', 'bearer']],
    ['bearer', ['signature', 'bearer']],
    ['signature', ['hmac', 'timestamp']],
    ['signature', ['hmac', 'input', 'signature']],
    ['bearer', ['hmac', 'timestamp']],
    ['bearer', ['hmac', 'bearer']],
    ['signature', ['bearer']],
    ['signature', ['lowerBearer', 'digest']],
    ['signature', ['timestamp', 'bearer']],
    ['hmac', ['bearer']],
  ])('%s sender, delivery with %j: mismatch', (scheme, carried) => {
    expect(verdict(scheme, carried)).toBe(MISMATCH);
  });

  it.each<[Scheme, readonly (keyof typeof FIELDS)[]]>([
    ['signature', ['input', 'signature', 'digest']],
    ['hmac', ['hmac', 'timestamp']],
    ['bearer', ['bearer']],
    // A stray Authorization beside the registered scheme's own fields.
    ['signature', ['input', 'signature', 'bearer']],
    ['signature', ['input', 'signature', 'basic']],
    ['signature', ['input', 'bearer']],
    ['hmac', ['hmac', 'timestamp', 'bearer']],
    ['hmac', ['hmac', 'bearer']],
    // No scheme's fields: the registered scheme says what is missing.
    ['signature', []],
    ['hmac', []],
    ['bearer', []],
    ['signature', ['digest']],
    // Not a bearer token.
    ['signature', ['basic']],
    ['hmac', ['basic']],
    ['hmac', ['emptyBearer']],
    ['bearer', ['basic']],
    // The HMAC scheme's proof is its signature; the timestamp alone is none.
    ['signature', ['timestamp', 'input', 'signature']],
    ['signature', ['timestamp']],
    ['bearer', ['timestamp', 'bearer']],
  ])('%s sender, delivery with %j: none', (scheme, carried) => {
    expect(verdict(scheme, carried)).toBe('none');
  });

  it('knows the HMAC headers of the configured protocol name', () => {
    expect(verdict('signature', ['hmac', 'timestamp'], 'other')).toBe('none');
    const headers = headerFields({ 'X-Other-Signature': 'sha256=00' });
    expect(modeMismatch('signature', headers, protocolsFor('other'))?.code).toBe(MISMATCH);
  });

  it('finds a token in any of repeated lines', () => {
    expect(verdict('signature', ['basic', 'bearer'])).toBe(MISMATCH);
  });

  it('answers in the Signature form for bearer senders too, and tells no value of a header', () => {
    const headers = headerFields([FIELDS.signature, FIELDS.bearer]);
    const refusal = modeMismatch('bearer', headers, protocolsFor());
    expect(refusal).not.toHaveProperty('challenge');
    expect(refusal?.detail).not.toContain('0123456789abcdef');
  });
});

describe('schemeOf: the fields decide where HMAC counts for reports (verification.md §2.22)', () => {
  const EITHER: AuthPolicy = { scheme: 'signature', reportSecrets: ['0123456789abcdef0123456789abcdef'] };

  function judged(auth: AuthPolicy, carried: readonly (keyof typeof FIELDS)[]): string {
    const headers = headerFields(carried.map((name) => FIELDS[name]));
    const scheme = schemeOf(auth, headers, protocolsFor('proto'));
    return modeMismatch(scheme, headers, protocolsFor('proto'))?.code ?? scheme;
  }

  it.each<[readonly (keyof typeof FIELDS)[], string]>([
    [['hmac', 'timestamp'], 'hmac'],
    [['hmac'], 'hmac'],
    [['hmac', 'timestamp', 'bearer'], 'hmac'],
    [['input', 'signature'], 'signature'],
    [['input', 'signature', 'timestamp'], 'signature'],
    [['input', 'signature', 'bearer'], 'signature'],
    [['timestamp'], 'signature'],
    [[], 'signature'],
    [['hmac', 'input'], MISMATCH],
    [['hmac', 'signature'], MISMATCH],
    [['hmac', 'timestamp', 'input', 'signature', 'digest'], MISMATCH],
    [['bearer'], MISMATCH],
    [['timestamp', 'bearer'], MISMATCH],
  ])('%j: %s', (carried, expected) => {
    expect(judged(EITHER, carried)).toBe(expected);
  });

  it('the fields of another registration decide nothing', () => {
    expect(judged({ scheme: 'signature' }, ['hmac', 'timestamp'])).toBe(MISMATCH);
    expect(judged({ scheme: 'hmac', secrets: [] }, ['input', 'signature'])).toBe(MISMATCH);
    expect(judged({ scheme: 'bearer', tokens: [] }, ['hmac', 'timestamp'])).toBe(MISMATCH);
  });
});
