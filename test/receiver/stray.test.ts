import { expect, it } from 'vitest';
import { generateKey } from '../../src/sender/sign.ts';
import { AGENT, house, payloads, said, sellerKey } from './setup.ts';

const publicUrl = 'https://buyer.example/webhooks/*';

it('a path outside the prefix is 503, and an alarm once a minute, for deliveries of a known key alone', async () => {
  let now = Date.now();
  const { receiver, sign, alarms } = await house({ publicUrl, now: () => now });
  const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'nobody-s' });
  const send = async (key = stranger) => {
    const { body, headers } = await sign(payloads.tool('completed'), { key: key.privateJwk });
    return said(await receiver.verifyAndDispatch(body, headers, { url: '/proto' }));
  };
  expect(await send()).toBe('unavailable misconfigured 503');
  const unsigned = { 'Content-Type': 'application/json', Authorization: 'Bearer x' };
  expect(said(await receiver.verifyAndDispatch(new Uint8Array(2), unsigned, { url: '/x' }))).toBe(
    'unavailable misconfigured 503',
  );
  expect(alarms).toEqual([]);
  for (let count = 0; count < 3; count += 1) {
    expect(await send(await sellerKey())).toBe('unavailable misconfigured 503');
  }
  expect(alarms).toMatchObject([{ code: 'misconfigured' }]);
  now += 60_000;
  await send(await sellerKey());
  expect(alarms).toMatchObject([{}, { code: 'misconfigured', suppressed: 2 }]);
});

it('the field of a registered legacy scheme counts too', async () => {
  const auth = { bearer: { token: 'a-shared-token-of-32-characters!' } };
  const { receiver, alarms } = await house({ publicUrl, senders: [{ agentUrl: AGENT, auth }] });
  const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer x' };
  await receiver.verifyAndDispatch(new Uint8Array(2), headers, { url: '/x' });
  expect(alarms).toMatchObject([{ code: 'misconfigured' }]);
});
