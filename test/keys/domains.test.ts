import { expect, test } from 'vitest';
import { registrableDomain, sameRegistrableDomain } from '../../src/keys/agent-location.ts';

test.each([
  ['seller.example', 'seller.example', true],
  ['ads.seller.com', 'brand.seller.com', true],
  ['seller.com', 'ads.seller.com', true],
  ['a.co.uk', 'b.co.uk', false],
  ['x.a.co.uk', 'a.co.uk', true],
  ['a.github.io', 'b.github.io', false],
  ['seller.com', 'seller.org', false],
  ['evilseller.com', 'seller.com', false],
  ['127.0.0.1', '127.0.0.1', true],
  ['127.0.0.1', '127.0.0.2', false],
  ['localhost', 'ads.localhost', false],
  ['com', 'seller.com', false],
])('%s and %s: %s', async (a, b, same) => {
  expect(await sameRegistrableDomain(a, b)).toBe(same);
  expect(await sameRegistrableDomain(b, a)).toBe(same);
});

test('addresses, single labels and public suffixes have no registrable domain', async () => {
  for (const host of ['127.0.0.1', '[::1]', 'localhost', 'co.uk', 'github.io', '']) {
    expect(await registrableDomain(host)).toBeUndefined();
  }
  expect(await registrableDomain('ads.seller.co.uk')).toBe('seller.co.uk');
});
