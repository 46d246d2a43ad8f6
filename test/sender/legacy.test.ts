import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { bearerDelivery, signHmac } from '../../src/sender/sign.ts';

const NOW = 1_760_000_000;
const now = (): number => NOW * 1000 + 999;
const url = 'https://buyer.example/hook';
const secret = 'a shared secret of 32 characters';

test('signHmac signs "<timestamp>.<raw body>", compact, in lower-case hex', () => {
  const { method, headers, body, ...rest } = signHmac({ url, body: { a: [1, 2] }, secret, now });
  expect([method, rest.url, new TextDecoder().decode(body)]).toEqual(['POST', url, '{"a":[1,2]}']);
  const mac = createHmac('sha256', secret).update(`${NOW}.{"a":[1,2]}`).digest('hex');
  expect(headers).toEqual({
    'Content-Type': 'application/json',
    'x-proto-timestamp': String(NOW),
    'x-proto-signature': `sha256=${mac}`,
  });
});

test('signHmac takes the protocol’s name and further headers', () => {
  const { headers } = signHmac({
    url,
    body: '{}',
    secret,
    now,
    protocol: 'other',
    headers: { 'X-More': 'a' },
  });
  expect(Object.keys(headers)).toEqual(['Content-Type', 'x-other-timestamp', 'x-other-signature', 'X-More']);
});

test('bearerDelivery sends the token in Authorization', () => {
  const { headers, body } = bearerDelivery({
    url,
    body: '{}',
    token: secret,
    headers: { 'content-type': 'text/plain' },
  });
  expect(headers).toEqual({ Authorization: `Bearer ${secret}`, 'content-type': 'text/plain' });
  expect(new TextDecoder().decode(body)).toBe('{}');
});
