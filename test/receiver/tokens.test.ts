import { describe, expect, it } from 'vitest';
import { bearerDelivery, type SignDeliveryOptions, signHmac } from '../../src/sender/sign.ts';
import type { NotificationToken } from '../../src/index.ts';
import type { Sender } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import {
  AGENT,
  alarmsTold,
  gate,
  testReceiver,
  type TestReceiverOptions,
  payloads,
  said,
  sellerKey,
  URL_GIVEN,
} from './setup.ts';

const TOKEN = 'tok_0123456789abcdef0123456789abcdef';
const PREVIOUS = 'tok_fedcba9876543210fedcba9876543210';
const HEADER = 'X-A2A-Notification-Token';
const carrying = (token: string, name = HEADER): Partial<SignDeliveryOptions> => ({
  headers: { [name]: token },
});

const STORES = [
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore(':memory:')],
] as const;

describe.each(STORES)('a token beside a signature, on %s (verification.md §6.9)', (_name, store) => {
  const open = async (token: Partial<NotificationToken> = {}, more: TestReceiverOptions = {}) => {
    const { publicJwk } = await sellerKey();
    const notificationToken = { token: TOKEN, previousToken: PREVIOUS, ...token };
    return testReceiver({
      senders: [{ agentUrl: AGENT, pins: [publicJwk], notificationToken }],
      store: store(),
      ...more,
    });
  };
  const warnings = (of: Awaited<ReturnType<typeof open>>) =>
    of.seen.map(({ event }) => event.warnings.map(({ code }) => code));

  it('the token or the previous one, in the header or the envelope: no warning', async () => {
    const at = await open();
    for (const token of [TOKEN, PREVIOUS]) {
      expect(said(await at.deliver(payloads.tool('completed'), carrying(token)))).toBe('accepted 200');
      expect(said(await at.deliver(payloads.tool('completed', { token })))).toBe('accepted 200');
      expect(said(await at.deliver(payloads.agent('working'), carrying(token)))).toBe('accepted 200');
    }
    expect(warnings(at).flat()).toEqual([]);
    expect(at.alarms).toEqual([]);
  });

  it('no token: a warning, whatever onMismatch is, and no alarm', async () => {
    for (const onMismatch of ['warn', 'refuse'] as const) {
      const at = await open({ onMismatch });
      const outcome = await at.deliver(payloads.tool('completed', { token: null }));
      expect(said(outcome)).toBe('accepted 200');
      expect(outcome.event?.warnings.map(({ code }) => code)).toEqual(['token_missing']);
      expect(warnings(at)).toEqual([['token_missing']]);
      expect(at.alarms).toEqual([]);
    }
  });

  it.each([
    ['another', payloads.tool('completed'), carrying(`${TOKEN}0`)],
    ['a prefix', payloads.tool('completed'), carrying(TOKEN.slice(0, -1))],
    ['another case', payloads.tool('completed'), carrying(TOKEN.toUpperCase())],
    ['in the envelope', payloads.tool('completed', { token: 'another-token-of-32-characters-00' }), {}],
    ['in the envelope, no string', payloads.tool('completed', { token: [TOKEN] }), {}],
    ['in the envelope beside the right one', payloads.tool('completed', { token: 'x' }), carrying(TOKEN)],
    ['in the header beside the right one', payloads.tool('completed', { token: TOKEN }), carrying('')],
  ])('%s: a warning and an alarm, or 401 and an alarm', async (_what, payload, sign) => {
    const warning = await open();
    expect(said(await warning.deliver(payload, sign))).toBe('accepted 200');
    expect(warnings(warning)).toEqual([['token_mismatch']]);
    expect(warning.alarms).toMatchObject([{ code: 'token_mismatch', sender: AGENT }]);

    const refusing = await open({ onMismatch: 'refuse' });
    const outcome = await refusing.deliver(payload, sign);
    expect(said(outcome)).toBe('refused webhook_token_mismatch 401');
    expect(outcome.response.headers).toEqual({
      'WWW-Authenticate': 'Signature error="webhook_token_mismatch"',
    });
    expect(refusing.seen).toEqual([]);
    expect(refusing.alarms).toMatchObject([{ code: 'token_mismatch', sender: AGENT }]);
    expect(JSON.stringify([warning.alarms, refusing.alarms, outcome])).not.toContain(TOKEN);
  });

  it('a mismatch is one alarm: the next one, a minute later, has none left out', async () => {
    let clock = Date.now();
    const at = await open({}, { now: () => clock });
    for (let n = 0; n < 2; n += 1) {
      const payload = payloads.tool('completed', { task_id: `task-${n}` });
      const outcome = await at.deliver(payload, { ...carrying(`${TOKEN}0`), now: () => clock });
      expect(said(outcome)).toBe('accepted 200');
      clock += 61_000;
    }
    expect(warnings(at)).toEqual([['token_mismatch'], ['token_mismatch']]);
    expect(at.alarms.map(({ code, suppressed }) => [code, suppressed])).toEqual([
      ['token_mismatch', undefined],
      ['token_mismatch', undefined],
    ]);
  });

  it('a mismatch uses up no nonce: the same bytes are accepted once the token is registered', async () => {
    const shared = store();
    const before = await open({ onMismatch: 'refuse' }, { store: shared });
    const signed = await before.sign(
      payloads.tool('completed'),
      carrying('tok_new_0123456789abcdef01234567'),
    );
    expect(said(await before.send(signed))).toBe('refused webhook_token_mismatch 401');
    expect(said(await before.send(signed))).toBe('refused webhook_token_mismatch 401');
    const after = await open(
      { onMismatch: 'refuse', token: 'tok_new_0123456789abcdef01234567' },
      { store: shared },
    );
    expect(said(await after.send(signed))).toBe('accepted 200');
    expect(said(await after.send(signed))).toBe('refused webhook_signature_replayed 401');
  });

  it('is decided by the header before a malformed body; a family’s own token does not count', async () => {
    const at = await open({ onMismatch: 'refuse' });
    const twice = (token: string) => ({ ...carrying(token), allowMalformed: true });
    const malformed = await at.sign('{"a":1,"a":2}', twice('another-token-of-32-characters-00'));
    expect(said(await at.send(malformed))).toBe('refused webhook_token_mismatch 401');
    expect(said(await at.deliver('{"a":1,"a":2}', twice(TOKEN)))).toBe('refused webhook_body_malformed 401');
    const nameless = { idempotency_key: crypto.randomUUID(), token: 'of the family' };
    for (const family of [payloads.family('impairment', { token: 'of the family' }), nameless]) {
      expect(said(await at.deliver(family, carrying(TOKEN)))).toBe('accepted 200');
    }
    expect(warnings(at)).toEqual([[], []]);
    const unknown = payloads.tool('completed', { event: 'x.y', status: 'archived', token: 'another token' });
    expect(said(await at.deliver(unknown))).toBe('refused webhook_token_mismatch 401');
  });

  it('a worker keeps the warning on the outcome, though the stored body has no headers', async () => {
    const handled = gate<readonly string[]>();
    const at = await open(
      {},
      { mode: 'inbox', handler: ({ warnings: all }) => handled.open(all.map(({ code }) => code)) },
    );
    await at.receiver.start();
    const outcome = await at.deliver(
      payloads.tool('completed'),
      carrying('another-token-of-32-characters-00'),
    );
    expect(outcome.event?.warnings.map(({ code }) => code)).toEqual(['token_mismatch']);
    expect(await handled.opened).toEqual([]);
    expect(at.alarms.map(({ code }) => code)).toEqual(['token_mismatch']);
    await at.receiver.stop();
  });
});

it('a token beside an HMAC signature', async () => {
  const secret = 'a-shared-secret-of-32-characters';
  const notificationToken = { token: TOKEN, onMismatch: 'refuse' } as const;
  const { receiver } = await testReceiver({
    senders: [{ agentUrl: AGENT, auth: { hmac: { secret } }, notificationToken }],
  });
  const send = async (token: string) => {
    const made = signHmac({
      url: URL_GIVEN,
      body: payloads.tool('completed'),
      secret,
      headers: { [HEADER]: token },
    });
    return said(await receiver.verifyAndDispatch(made.body, made.headers));
  };
  expect(await send(TOKEN)).toBe('accepted 200');
  expect(await send(PREVIOUS)).toBe('refused webhook_token_mismatch 401');
});

describe('a bearer token in a header of its own (verification.md §6.8)', () => {
  const open = (auth: Extract<Sender['auth'], { bearer: unknown }>['bearer']) =>
    testReceiver({ senders: [{ agentUrl: AGENT, auth: { bearer: auth } }] });

  it('is the whole value of that header; the previous one too; Authorization is ignored', async () => {
    const { receiver, alarms } = await open({ token: TOKEN, previousToken: PREVIOUS, header: HEADER });
    const send = async (token: string, header: string | undefined, more: Record<string, string> = {}) => {
      const at = { url: URL_GIVEN, body: payloads.agent('working'), token, headers: more };
      const made = bearerDelivery(header === undefined ? at : { ...at, header });
      const outcome = await receiver.verifyAndDispatch(made.body, made.headers);
      return [said(outcome), outcome.response.headers['WWW-Authenticate']];
    };
    expect(await send(TOKEN, HEADER)).toEqual(['accepted 200', undefined]);
    expect(await send(PREVIOUS, HEADER.toLowerCase())).toEqual(['accepted 200', undefined]);
    expect(await send(TOKEN, HEADER, { Authorization: 'Bearer of-a-gateway' })).toEqual([
      'accepted 200',
      undefined,
    ]);
    const challenge = 'Bearer error="invalid_token"';
    expect(await send(`Bearer ${TOKEN}`, HEADER)).toEqual([
      'refused webhook_signature_invalid 401',
      challenge,
    ]);
    expect(await send(TOKEN, undefined)).toEqual([
      'refused webhook_signature_header_malformed 401',
      challenge,
    ]);
    await alarmsTold();
    expect(alarms).toMatchObject([
      { code: 'legacy_auth_used', scheme: 'bearer' },
      { code: 'webhook_signature_invalid', option: 'auth' },
      { code: 'webhook_signature_header_malformed', option: 'auth' },
    ]);
  });

  it('a signature beside it is another mode', async () => {
    const { deliver } = await open({ token: TOKEN, header: HEADER });
    expect(said(await deliver(payloads.agent('working'), carrying(TOKEN)))).toBe(
      'refused webhook_mode_mismatch 401',
    );
  });

  it('at a sender that signs the same header is no other mode', async () => {
    const { deliver } = await testReceiver();
    expect(said(await deliver(payloads.agent('working'), carrying(TOKEN)))).toBe('accepted 200');
  });
});
