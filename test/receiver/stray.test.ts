import { describe, expect, it } from 'vitest';
import type { Sender } from '../../src/index.ts';
import { generateKey } from '../../src/sender/sign.ts';
import { AGENT, testReceiver, payloads, said, sellerKey } from './setup.ts';

const publicUrl = 'https://buyer.example/webhooks/*';

it('a path outside the prefix is 503, with an alarm once a minute for deliveries of a known key only', async () => {
  let now = Date.now();
  const { receiver, sign, alarms } = await testReceiver({ publicUrl, now: () => now });
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
  const message = expect.stringContaining(`is not under publicUrl ${publicUrl}: pass the whole path`);
  expect(alarms).toMatchObject([{ code: 'misconfigured', message }]);
  now += 60_000;
  await send(await sellerKey());
  expect(alarms).toMatchObject([{}, { code: 'misconfigured', suppressed: 2 }]);
});

it('the header of a registered legacy scheme counts as a known key', async () => {
  const auth = { bearer: { token: 'a-shared-token-of-32-characters!' } };
  const { receiver, alarms } = await testReceiver({ publicUrl, senders: [{ agentUrl: AGENT, auth }] });
  const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer x' };
  await receiver.verifyAndDispatch(new Uint8Array(2), headers, { url: '/x' });
  expect(alarms).toMatchObject([{ code: 'misconfigured' }]);
});

it('the header that a bearer sender has instead of Authorization counts too', async () => {
  const auth = { bearer: { token: 'a-shared-token-of-32-characters!', header: 'X-A2A-Notification-Token' } };
  const { receiver, alarms } = await testReceiver({ publicUrl, senders: [{ agentUrl: AGENT, auth }] });
  const send = (field: object): unknown =>
    receiver.verifyAndDispatch(
      new Uint8Array(2),
      { 'Content-Type': 'application/json', ...field },
      { url: '/x' },
    );
  await send({ Authorization: 'Bearer x' });
  expect(alarms).toEqual([]);
  await send({ 'X-A2A-Notification-Token': 'x' });
  expect(alarms).toMatchObject([{ code: 'misconfigured' }]);
});

describe('when senders is a function', () => {
  const bearer = { bearer: { token: 'a-shared-token-of-32-characters!' } };
  const deep = 'https://buyer.example/api/webhooks/*';

  /** What it was asked for, and what the alarms were; the seller is known by the URL that it was given. */
  async function stray(prefix: string, given: string, url: string, change: Partial<Sender> = {}) {
    const asked: string[] = [];
    const pins = change.auth ? {} : { pins: [(await sellerKey()).publicJwk] };
    const sellers: Readonly<Record<string, readonly Sender[]>> = {
      [given]: [{ agentUrl: AGENT, ...pins, ...change }],
    };
    const made = await testReceiver({
      publicUrl: prefix,
      senders: ({ pathname }) => {
        asked.push(pathname);
        return sellers[pathname] ?? [];
      },
    });
    const { body, headers } = change.auth
      ? {
          body: new Uint8Array(2),
          headers: { 'Content-Type': 'application/json', Authorization: 'Bearer x' },
        }
      : await made.sign(payloads.tool('completed'), { url: `https://buyer.example${given}` });
    expect(said(await made.receiver.verifyAndDispatch(body, headers, { url }))).toBe(
      'unavailable misconfigured 503',
    );
    return { ...made, asked, codes: made.alarms.map(({ code }) => code) };
  }

  it.each([
    ['publicUrl has another path', 'https://buyer.example/hooks/*', '/webhooks/seller', '/webhooks/seller'],
    ['the whole prefix was cut off', publicUrl, '/webhooks/seller', '/seller'],
    ['the first part of it was cut off', deep, '/api/webhooks/seller', '/webhooks/seller'],
    ['all of it was, with a query', deep, '/api/webhooks/seller', '/seller?a=1'],
  ])('it is called with the URLs that the path may have been: %s', async (_, prefix, given, url) => {
    expect((await stray(prefix, given, url)).codes).toEqual(['misconfigured']);
    expect((await stray(prefix, given, url, { auth: bearer })).codes).toEqual(['misconfigured']);
  });

  it('an unknown sender raises no alarm', async () => {
    const { asked, codes } = await stray(publicUrl, '/webhooks/seller', '/other');
    expect(codes).toEqual([]);
    expect(asked).toEqual(['/other', '/webhooks/other']);
  });

  it('when it throws: 503 and no alarm', async () => {
    const senders = (): never => {
      throw new Error('no such path');
    };
    const { receiver, sign, alarms } = await testReceiver({ publicUrl, senders });
    const { body, headers } = await sign(payloads.tool('completed'));
    expect(said(await receiver.verifyAndDispatch(body, headers, { url: '/seller' }))).toBe(
      'unavailable misconfigured 503',
    );
    expect(alarms).toEqual([]);
  });
});
