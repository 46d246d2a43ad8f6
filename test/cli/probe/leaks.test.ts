import { describe, expect, it } from 'vitest';
import { leakOf, secretsIn } from '../../../src/cli/for-tests.ts';
import { generateKey, signDelivery } from '../../../src/sender/sign.ts';

const answer = (body: string, headers: Readonly<Record<string, string>> = {}) =>
  ({ outcome: 'failed', status: 401, headers, body }) as const;

describe('contents that no refusal may have (verification.md §2.24)', () => {
  it('the key id and every digest of what was sent, but no text shorter than a digest', async () => {
    const { privateJwk } = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
    const options = { url: 'https://buyer.example/hook', key: privateJwk, body: '{}' };
    const secrets = secretsIn(await signDelivery(options));
    expect(secrets).toContain('seller-1');
    expect(secrets).toContain('44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a');
    expect(secrets).toContain('RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o');
    expect(secrets).toContain('RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o');
    const short = await signDelivery({ ...options, headers: { 'Content-Digest': 'sha-256=:AAAA:' } });
    expect(secretsIn(short).filter((secret) => secret.length < 40)).toEqual(['seller-1']);
  });

  it('a kid as a word, not as part of one, and not in HTTP’s own text', () => {
    expect(leakOf(answer('no key k here'), ['k'])).toBe('the body discloses a key id or a digest');
    expect(leakOf(answer('unlucky; ok'), ['k'])).toBeUndefined();
    expect(leakOf(answer('', { date: 'Sat, 21 Nov 2026' }), ['2026'])).toBeUndefined();
    expect(leakOf(answer('', { 'x-key': '2026' }), ['2026'])).toBe(
      'the header x-key discloses a key id or a digest',
    );
    expect(leakOf(answer('anything'), [''])).toBeUndefined();
  });
});
