import { createHash } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import {
  type ChallengeContext,
  type EventRegistrations,
  Fault,
  type OnChallenge,
  type Sender,
  type SenderAuth,
  type Store,
  type WebhookChallenge,
} from '../../src/index.ts';
import type { AcceptRequest } from '../../src/stores/index.ts';
import { bearerDelivery, generateKey, signHmac } from '../../src/sender/sign.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import { sampleChallenge } from '../../src/testing/for-tests.ts';
import {
  AGENT,
  gate,
  testReceiver,
  type TestReceiverOptions,
  payloads,
  said,
  sellerKey,
  URL_GIVEN,
} from './setup.ts';

const SECRET = 'a-shared-secret-of-32-characters';
const PREVIOUS = 'the-previous-one-of-32-characters';
const fingerprint = (credential: string): string => createHash('sha256').update(credential).digest('hex');

interface Asked {
  readonly challenge: WebhookChallenge;
  readonly ctx: ChallengeContext;
}

const STORES = [
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore(':memory:')],
] as const;

/** A store that writes down what it was asked to accept. */
function watched(store: Store): { readonly store: Store; readonly accepts: AcceptRequest[] } {
  const accepts: AcceptRequest[] = [];
  const accept: Store['accept'] = (request) => {
    accepts.push(request);
    return store.accept(request);
  };
  return { store: { ...store, accept }, accepts };
}

async function open(
  answer: OnChallenge = () => true,
  { auth, store = memoryStore(), ...more }: TestReceiverOptions & { readonly auth?: SenderAuth } = {},
) {
  const { publicJwk } = await sellerKey();
  const asked: Asked[] = [];
  const kept = watched(store);
  const sender: Sender = { agentUrl: AGENT, pins: [publicJwk], ...(auth && { auth }) };
  const at = await testReceiver({
    senders: [sender],
    onChallenge: (challenge, ctx) => {
      asked.push({ challenge, ctx });
      return answer(challenge, ctx);
    },
    ...more,
    store: kept.store,
  });
  const challenge = (changes: object = {}): Record<string, unknown> =>
    sampleChallenge(AGENT, auth, { ...changes });
  return { ...at, asked, challenge, accepts: kept.accepts };
}

const REFUSED = 'refused challenge_refused 403';
const MISMATCH = 'refused webhook_mode_mismatch 401';

describe.each(STORES)('a proof of control, on %s (verification.md §7.9)', (_name, store) => {
  it('approved: 200 with exactly the challenge, and the outcome names it', async () => {
    const at = await open(async () => true, { store: store() });
    const body = at.challenge({ future_member: { a: 1 }, ['__proto__']: 'kept' });
    const outcome = await at.deliver(body);
    expect(outcome.response).toEqual({
      status: 200,
      headers: { 'Content-Type': 'application/json' },
      body: `{"challenge":"${String(body['challenge'])}"}`,
    });
    expect(outcome).toMatchObject({
      kind: 'challenge',
      sender: AGENT,
      challenge: { challenge: body['challenge'], authMatches: true, future_member: { a: 1 } },
    });
    expect(at.asked).toHaveLength(1);
    expect(at.asked[0]?.challenge).toEqual({ ...body, authMatches: true });
    expect(at.asked[0]?.ctx).toMatchObject({ sender: AGENT, signal: { aborted: false } });
    expect(at.seen).toEqual([]);
    expect(at.alarms).toEqual([]);
  });

  it('the nonce is used up with the answer, in one operation of the store without an event', async () => {
    for (const answer of [true, false]) {
      const at = await open(() => answer, { store: store() });
      const signed = await at.sign(at.challenge());
      expect(said(await at.send(signed))).toBe(answer ? 'challenge 200' : REFUSED);
      expect(at.accepts).toHaveLength(1);
      expect(at.accepts[0]).toMatchObject({
        sender: AGENT,
        nonce: { keyid: '99', nonce: expect.stringMatching(/^seller-1 /) },
      });
      expect(at.accepts[0]).not.toHaveProperty('event');
      expect(said(await at.send(signed))).toBe('refused webhook_signature_replayed 401');
      expect(said(await at.deliver(at.challenge()))).toBe(answer ? 'challenge 200' : REFUSED);
      expect(at.alarms.map(({ code }) => code)).toEqual(answer ? [] : ['challenge_refused']);
    }
  });

  it('when the hook throws: 503 and the nonce stays unused: the same bytes ask again', async () => {
    let fails = true;
    const at = await open(
      () => {
        if (fails) throw new Error('database down');
        return true;
      },
      { store: store() },
    );
    const signed = await at.sign(at.challenge());
    const failed = await at.send(signed);
    expect(said(failed)).toBe('unavailable handler_failed 503');
    expect(failed.response.headers).toEqual({ 'Retry-After': '5' });
    fails = false;
    expect(said(await at.send(signed))).toBe('challenge 200');
    expect(at.alarms).toEqual([]);
  });

  it('when the hook is late: 503 after 5 s, its signal says so, and the nonce stays unused', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const late = gate<boolean>();
      const slow = await open(() => late.opened, { store: store() });
      const signed = await slow.sign(slow.challenge());
      const outcome = slow.send(signed);
      while (slow.asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
      await vi.advanceTimersByTimeAsync(4_999);
      expect(slow.asked[0]?.ctx.signal.aborted).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      expect(said(await outcome)).toBe('unavailable handler_timeout 503');
      expect(slow.asked[0]?.ctx.signal.reason).toMatchObject({ code: 'handler_timeout' });
      expect(slow.accepts).toEqual([]);
      late.open(true);
      expect(said(await slow.send(signed))).toBe('challenge 200');
    } finally {
      vi.useRealTimers();
    }
  });

  it('the caps of nonces apply to it', async () => {
    const at = await open(() => true, { store: store(), maxNoncesPerKey: 2 });
    expect(said(await at.deliver(at.challenge()))).toBe('challenge 200');
    expect(said(await at.deliver(at.challenge()))).toBe('challenge 200');
    expect(said(await at.deliver(at.challenge()))).toBe('refused webhook_signature_rate_abuse 429');
    expect(at.alarms.map(({ code }) => code)).toContain('cap_reached');
  });

  it('a store that is down: 503 whatever the hook answered', async () => {
    const broken = store();
    const at = await open(() => true, { store: broken });
    await at.receiver.ready();
    const signed = await at.sign(at.challenge());
    await broken.close();
    expect(said(await at.send(signed))).toBe('unavailable store_unavailable 503');
  });

  it('in mode inbox it is answered at once and is no event', async () => {
    const at = await open(() => true, { store: store(), mode: 'inbox' });
    expect(said(await at.deliver(at.challenge()))).toBe('challenge 200');
    expect((await at.receiver.inbox.list({ state: 'queued' })).records).toEqual([]);
  });
});

describe('403 with an alarm that names what is missing', () => {
  const refusal = async (changes: object, answer: unknown = true) => {
    const at = await open(() => answer as boolean);
    const outcome = await at.deliver(at.challenge(changes));
    expect(said(outcome)).toBe(REFUSED);
    expect(outcome.response).toMatchObject({
      headers: { 'Content-Type': 'application/json' },
      body: '{"error":{"code":"challenge_refused","message":"The proof of control is not accepted."}}',
    });
    expect(at.alarms).toMatchObject([{ code: 'challenge_refused', sender: AGENT }]);
    return { asked: at.asked.length, message: at.alarms[0]?.message };
  };

  it.each([
    ['too short', { challenge: 'a'.repeat(31) }, /32 to 255/],
    ['too long', { challenge: 'a'.repeat(256) }, /32 to 255/],
    ['of other characters', { challenge: `${'a'.repeat(40)}"` }, /32 to 255/],
    ['with a line feed behind it', { challenge: `${'a'.repeat(40)}\n` }, /32 to 255/],
    ['a number', { challenge: 1e40 }, /32 to 255/],
    ['absent', { challenge: undefined }, /32 to 255/],
  ])('a challenge that is %s', async (_what, changes, message) => {
    expect(await refusal(changes)).toMatchObject({ asked: 0, message: expect.stringMatching(message) });
  });

  it.each([
    ['seller_agent_url', undefined],
    ['seller_agent_url', 7],
    ['account_id', {}],
    ['scope', ['agent']],
    ['subscriber_id', 1],
    ['event_types', 'impairment'],
    ['event_types', [1]],
    ['event_types', ['impairment', 1]],
    ['delivery_auth', 'rfc9421'],
    ['delivery_auth', {}],
    ['delivery_auth', { mode: 'Bearer', credential_fingerprint: 1 }],
  ])('%s: %j', async (member, value) => {
    expect(await refusal({ [member]: value })).toMatchObject({
      asked: 0,
      message: expect.stringContaining(member),
    });
  });

  it.each([`${AGENT}/`, AGENT.toUpperCase(), 'https://other.example/mcp', `https://x\u001b[31m.example`])(
    'seller_agent_url %j is not the verified sender',
    async (url) => {
      const { asked, message } = await refusal({ seller_agent_url: url });
      expect(asked).toBe(0);
      expect(message).toContain(`${AGENT} signed it`);
      expect(message).not.toContain('\u001b');
    },
  );

  it.each([
    ['no', false, /said no \(authMatches: true\)/],
    ['nothing', null, /returned object.*true or false/],
    ['a truthy value', 'yes', /returned string.*true or false/],
  ])('the hook answers %s', async (_what, answer, message) => {
    expect(await refusal({}, answer)).toMatchObject({ asked: 1, message: expect.stringMatching(message) });
  });

  it('no option', async () => {
    const at = await testReceiver();
    const outcome = await at.deliver(sampleChallenge(AGENT, undefined));
    expect(said(outcome)).toBe(REFUSED);
    expect(at.alarms).toMatchObject([
      { code: 'challenge_refused', message: expect.stringContaining('onChallenge is missing') },
    ]);
  });

  it('members that an edition may lack are not missed', async () => {
    const at = await open();
    const bare = { type: 'webhook.challenge', challenge: 'c'.repeat(32), seller_agent_url: AGENT };
    expect(said(await at.deliver(bare))).toBe('challenge 200');
    expect(said(await at.deliver({ ...bare, account_id: null, delivery_auth: null }))).toBe('challenge 200');
    expect(at.asked.map(({ challenge }) => challenge.authMatches)).toEqual([false, false]);
  });

  it('the hook cannot change the challenge that is echoed', async () => {
    const at = await open((challenge) => {
      expect(() => Object.assign(challenge, { challenge: 'x'.repeat(40) })).toThrow(TypeError);
      return true;
    });
    const body = at.challenge();
    expect((await at.deliver(body)).response.body).toBe(JSON.stringify({ challenge: body['challenge'] }));
  });
});

describe('registrations are asked before onChallenge', () => {
  type Answers = NonNullable<EventRegistrations['answersChallenge']>;
  const answering = (answersChallenge: Answers): EventRegistrations => ({
    ofEvent: async () => undefined,
    answersChallenge,
  });

  it('yes: 200, and the owner is not asked', async () => {
    const known: unknown[] = [];
    const registrations = answering(async (challenge, sender) => known.push([challenge, sender]) > 0 || 'no');
    const at = await open(() => false, { registrations });
    const body = at.challenge();
    expect(said(await at.deliver(body))).toBe('challenge 200');
    expect(known).toEqual([[{ ...body, authMatches: true }, AGENT]]);
    expect(at.asked).toEqual([]);
    expect(at.alarms).toEqual([]);
  });

  it('no: 403 with their reason in the alarm, and the nonce is used up; the owner is not asked', async () => {
    const at = await open(() => true, {
      registrations: answering(async () => 'event_types is not the same'),
    });
    const signed = await at.sign(at.challenge());
    expect(said(await at.send(signed))).toBe(REFUSED);
    expect(said(await at.send(signed))).toBe('refused webhook_signature_replayed 401');
    expect(at.asked).toEqual([]);
    expect(at.alarms).toMatchObject([
      {
        code: 'challenge_refused',
        option: 'registrations',
        sender: AGENT,
        message: expect.stringContaining('event_types is not the same'),
      },
    ]);
  });

  it('none of theirs: the owner decides; nobody does: the alarm says what to do', async () => {
    const registrations = answering(async () => undefined);
    for (const answer of [true, false]) {
      const at = await open(() => answer, { registrations });
      expect(said(await at.deliver(at.challenge()))).toBe(answer ? 'challenge 200' : REFUSED);
      expect(at.asked).toHaveLength(1);
      expect(at.alarms.map(({ option }) => option)).toEqual(answer ? [] : ['onChallenge']);
    }
    const alone = await testReceiver({ registrations });
    const hostile = `sub\u001b[31m${'x'.repeat(200)}`;
    for (const subscriber_id of [hostile, undefined]) {
      expect(said(await alone.deliver(sampleChallenge(AGENT, undefined, { subscriber_id })))).toBe(REFUSED);
    }
    const [first, second] = alone.alarms.map(({ message }) => message);
    expect(first).toMatch(/"sub\?\[31mx{56,60}…".*registrations\.subscribe.*onChallenge/);
    expect(second).toContain('subscriber_id ""');
    expect(alone.alarms.map(({ option }) => option)).toEqual(['onChallenge', 'onChallenge']);
  });

  it('what is no valid challenge is asked of nobody, and is no matter of a setting', async () => {
    const asked = vi.fn<Answers>(async () => true);
    const at = await open(() => true, { registrations: answering(asked) });
    for (const changes of [
      { seller_agent_url: 'https://other.example/mcp' },
      { event_types: 'impairment' },
    ]) {
      expect(said(await at.deliver(at.challenge(changes)))).toBe(REFUSED);
    }
    expect(asked).not.toHaveBeenCalled();
    expect(at.alarms).toHaveLength(2);
    expect(at.alarms.every((alarm) => !('option' in alarm))).toBe(true);
  });

  it('they cannot answer: 503 as their fault says, and the same bytes ask again', async () => {
    const faults = [new Fault('store_unavailable', 'away'), new Error('a mistake')];
    const registrations = answering(async () => {
      const fault = faults.shift();
      if (fault) throw fault;
      return true;
    });
    const at = await open(() => true, { registrations });
    const signed = await at.sign(at.challenge());
    expect(said(await at.send(signed))).toBe('unavailable store_unavailable 503');
    expect(said(await at.send(signed))).toBe('unavailable misconfigured 503');
    expect(at.accepts).toEqual([]);
    expect(at.asked).toEqual([]);
    expect(said(await at.send(signed))).toBe('challenge 200');
  });

  it('one time limit for both: 503 after 5 s, and the owner is not asked any more', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const late = gate<undefined>();
      const asked = vi.fn<Answers>(() => late.opened);
      const owner = gate<boolean>();
      const at = await open(() => owner.opened, { registrations: answering(asked) });
      const signed = await at.sign(at.challenge());
      const inTurn = async (isReached: () => boolean): Promise<void> => {
        while (!isReached()) await new Promise((resolve) => setImmediate(resolve));
      };
      const first = at.send(signed);
      await inTurn(() => asked.mock.calls.length === 1);
      await vi.advanceTimersByTimeAsync(5_000);
      expect(said(await first)).toBe('unavailable store_unavailable 503');
      expect(await first).toMatchObject({ detail: 'registrations have not answered in 5000 ms' });
      late.open(undefined);
      // The time that they took is not the owner's.
      let waiting = (): void => undefined;
      asked.mockImplementation(() => new Promise((resolve) => (waiting = () => resolve(undefined))));
      const second = at.send(signed);
      await inTurn(() => asked.mock.calls.length === 2);
      await vi.advanceTimersByTimeAsync(4_000);
      expect(at.asked).toEqual([]);
      waiting();
      await inTurn(() => at.asked.length === 1);
      await vi.advanceTimersByTimeAsync(1_000);
      expect(said(await second)).toBe('unavailable handler_timeout 503');
      const overrun = 'onChallenge ran over 5000 ms';
      expect(await second).toMatchObject({ detail: overrun });
      expect(at.asked[0]?.ctx.signal.reason).toMatchObject({ code: 'handler_timeout', message: overrun });
      expect(at.accepts).toEqual([]);
      owner.open(true);
      await at.receiver.stop();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('what fails is logged once, with its error', () => {
  const failure = new Error('database down');
  const fails = async (): Promise<never> => {
    throw failure;
  };

  it.each<readonly [string, string, (waits: () => Promise<never>) => TestReceiverOptions, string, string]>([
    [
      'onChallenge',
      'onChallenge failed',
      () => ({ onChallenge: fails }),
      'unavailable handler_failed 503',
      'onChallenge failed',
    ],
    [
      'a late onChallenge',
      'a late onChallenge failed',
      (waits) => ({ onChallenge: waits }),
      'unavailable handler_timeout 503',
      'onChallenge ran over 5000 ms',
    ],
    [
      'late registrations',
      'a late answer of registrations failed',
      (waits) => ({ registrations: { ofEvent: async () => undefined, answersChallenge: waits } }),
      'unavailable store_unavailable 503',
      'registrations have not answered in 5000 ms',
    ],
  ])('%s', async (_what, line, optionsOf, outcome, detail) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const asked = gate();
      const late = gate();
      const waits = async (): Promise<never> => {
        asked.open();
        await late.opened;
        throw failure;
      };
      const errors: unknown[] = [];
      const error = (fields: object, message: string): void => {
        if (message !== 'delivery unavailable') errors.push([fields, message]);
      };
      const at = await testReceiver({
        logger: { ...SILENT_LOGGER, error },
        ...optionsOf(waits),
      });
      const answered = at.deliver(sampleChallenge(AGENT, undefined));
      await Promise.race([asked.opened, answered]);
      await vi.advanceTimersByTimeAsync(5_000);
      expect(said(await answered)).toBe(outcome);
      expect(await answered).toMatchObject({ detail });
      late.open();
      await at.receiver.stop();
      expect(errors).toEqual([[expect.objectContaining({ err: failure }), line]]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('which bodies are a challenge', () => {
  it('is decided before the format of its sender is used', async () => {
    const { publicJwk } = await sellerKey();
    for (const format of ['tool', 'agent'] as const) {
      const at = await open(() => true, { senders: [{ agentUrl: AGENT, pins: [publicJwk], format }] });
      const likeATask = {
        status: { state: 'completed' },
        id: 'task_1',
        task_id: 't',
        event_type: 'impairment',
      };
      expect(said(await at.deliver(at.challenge(likeATask))), format).toBe('challenge 200');
      expect(said(await at.deliver(at.challenge({ idempotency_key: null }))), format).toBe('challenge 200');
      expect(at.seen).toEqual([]);
    }
  });

  it('with a key it is an ordinary body', async () => {
    const at = await open();
    const outcome = await at.deliver(at.challenge({ idempotency_key: 'evt_0123456789abcdef' }));
    expect(outcome).toMatchObject({ kind: 'accepted', event: { kind: 'other' } });
    expect(said(await at.deliver(at.challenge({ idempotency_key: 'short' })))).toBe(
      'refused invalid_envelope 400',
    );
    expect(at.asked).toEqual([]);
  });

  it.each(['webhook.challenges', 'Webhook.Challenge', 'webhook.challenge ', ['webhook.challenge'], null])(
    'with the type %j it is an ordinary body',
    async (type) => {
      const at = await open();
      expect(said(await at.deliver(at.challenge({ type })))).toBe('refused missing_idempotency_key 400');
      expect(at.asked).toEqual([]);
    },
  );

  it('of over 16 KiB it is an ordinary body', async () => {
    const at = await open();
    const body = JSON.stringify(at.challenge());
    expect(said(await at.deliver(body.padEnd(16_384)))).toBe('challenge 200');
    expect(said(await at.deliver(body.padEnd(16_385)))).toBe('refused missing_idempotency_key 400');
  });

  it('a name twice is a malformed body (check 14), and unsigned it is refused by check 1', async () => {
    const at = await open();
    const twice = JSON.stringify(at.challenge()).replace('{', '{"type":"webhook.challenge",');
    expect(said(await at.deliver(twice, { allowMalformed: true }))).toBe(
      'refused webhook_body_malformed 401',
    );
    const unsigned = await at.receiver.verifyAndDispatch(
      new TextEncoder().encode(JSON.stringify(at.challenge())),
      { 'Content-Type': 'application/json' },
    );
    expect(said(unsigned)).toBe('refused webhook_signature_header_malformed 401');
    expect(at.asked).toEqual([]);
  });

  it('a token beside it that is another one is refused first', async () => {
    const { publicJwk } = await sellerKey();
    const token = 'tok_0123456789abcdef0123456789abcdef';
    const at = await open(() => true, {
      senders: [{ agentUrl: AGENT, pins: [publicJwk], notificationToken: { token, onMismatch: 'refuse' } }],
    });
    const carrying = (value: string) => ({ headers: { 'X-A2A-Notification-Token': value } });
    expect(said(await at.deliver(at.challenge(), carrying(`${token}0`)))).toBe(
      'refused webhook_token_mismatch 401',
    );
    expect(said(await at.deliver(at.challenge(), carrying(token)))).toBe('challenge 200');
    expect(said(await at.deliver(at.challenge()))).toBe('challenge 200');
  });
});

describe('authMatches: mode and credential are those configured', () => {
  const HMAC: SenderAuth = { hmac: { secret: SECRET, previousSecret: PREVIOUS } };
  const BEARER: SenderAuth = { bearer: { token: SECRET, previousToken: PREVIOUS } };
  const print = fingerprint(SECRET);

  it.each<[string, SenderAuth | undefined, unknown, boolean]>([
    ['signatures', undefined, { mode: 'rfc9421' }, true],
    ['signatures', undefined, { mode: 'rfc9421', credential_fingerprint: print }, true],
    ['signatures', undefined, { mode: 'Bearer', credential_fingerprint: print }, false],
    ['signatures', undefined, { mode: 'RFC9421' }, false],
    ['HMAC', HMAC, { mode: 'HMAC-SHA256', credential_fingerprint: print }, true],
    ['HMAC', HMAC, { mode: 'HMAC-SHA256', credential_fingerprint: print.toUpperCase() }, true],
    ['HMAC', HMAC, { mode: 'HMAC-SHA256', credential_fingerprint: fingerprint(PREVIOUS) }, true],
    ['HMAC', HMAC, { mode: 'HMAC-SHA256', credential_fingerprint: fingerprint('injected') }, false],
    ['HMAC', HMAC, { mode: 'HMAC-SHA256', credential_fingerprint: SECRET }, false],
    ['HMAC', HMAC, { mode: 'HMAC-SHA256', credential_fingerprint: print.slice(0, -1) }, false],
    ['HMAC', HMAC, { mode: 'HMAC-SHA256', credential_fingerprint: '' }, false],
    ['HMAC', HMAC, { mode: 'HMAC-SHA256' }, false],
    ['HMAC', HMAC, { mode: 'HMAC-SHA256', credential_fingerprint: null }, false],
    ['HMAC', HMAC, { mode: 'Bearer', credential_fingerprint: print }, false],
    ['HMAC', HMAC, { mode: 'rfc9421' }, false],
    ['bearer', BEARER, { mode: 'Bearer', credential_fingerprint: print }, true],
    ['bearer', BEARER, { mode: 'Bearer', credential_fingerprint: fingerprint(PREVIOUS) }, true],
    ['bearer', BEARER, { mode: 'HMAC-SHA256', credential_fingerprint: print }, false],
    ['bearer', BEARER, { mode: 'Bearer', credential_fingerprint: fingerprint('injected') }, false],
  ])('%s (%j), %j: %j', async (_scheme, auth, said_auth, expected) => {
    const at = await open(() => true, auth ? { auth } : {});
    const outcome = await at.deliver(at.challenge({ delivery_auth: said_auth, authMatches: !expected }));
    expect(said(outcome)).toBe('challenge 200');
    expect(at.asked.map(({ challenge }) => challenge.authMatches)).toEqual([expected]);
  });

  it('one seller at two URLs: the registration of the called URL counts', async () => {
    const { publicJwk } = await sellerKey();
    const seen: boolean[] = [];
    const at = await testReceiver({
      publicUrl: 'https://buyer.example/webhooks/*',
      senders: ({ pathname }) => [
        { agentUrl: AGENT, pins: [publicJwk], ...(pathname === '/webhooks/hmac' && { auth: HMAC }) },
      ],
      onChallenge: ({ authMatches }) => seen.push(authMatches) > 0,
    });
    for (const path of ['/webhooks/hmac', '/webhooks/signed']) {
      for (const auth of [HMAC, undefined]) {
        const signed = await at.sign(sampleChallenge(AGENT, auth), { url: `https://buyer.example${path}` });
        const outcome = await at.receiver.verifyAndDispatch(signed.body, signed.headers, { url: path });
        expect(said(outcome)).toBe('challenge 200');
      }
    }
    expect(seen).toEqual([true, false, false, true]);
  });
});

describe('at a sender registered with a legacy scheme a signed delivery may be nothing else', () => {
  const SCHEMES: readonly (readonly [string, SenderAuth])[] = [
    ['HMAC', { hmac: { secret: SECRET } }],
    ['bearer', { bearer: { token: SECRET } }],
  ];

  it.each(SCHEMES)(
    '%s: verified by its brand.json like any other, or by no key at all',
    async (_name, auth) => {
      await using seller = await createFakeSeller({ url: URL_GIVEN, auth });
      const asked: WebhookChallenge[] = [];
      const { receiver, alarms } = await testReceiver({
        senders: [seller.sender],
        allowLoopback: true,
        onChallenge: (challenge) => asked.push(challenge) > 0,
      });
      const send = async (payload: object | string, options: Parameters<typeof seller.sign>[1] = {}) => {
        const made = await seller.sign(payload, { auth: 'signature', ...options });
        return said(await receiver.verifyAndDispatch(made.body, made.headers));
      };
      // Anything else is decided without a fetch.
      expect(await send(payloads.tool('completed'))).toBe(MISMATCH);
      expect(await send('{"type":"webhook.challenge","type":"webhook.challenge"}')).toBe(MISMATCH);
      const body = sampleChallenge(seller.agentUrl, auth);
      expect(await send({ ...body, idempotency_key: 'evt_0123456789abcdef' })).toBe(MISMATCH);
      expect(await send(JSON.stringify(body).padEnd(16_385))).toBe(MISMATCH);
      expect(seller.fetches()).toBe(0);

      expect(await send(body)).toBe('challenge 200');
      expect(asked).toMatchObject([{ seller_agent_url: seller.agentUrl, authMatches: true }]);
      expect(seller.fetches('/.well-known/jwks.json')).toBe(1);
      // Its own checks answer, each with its code.
      expect(await send(sampleChallenge(seller.agentUrl, auth), { mistake: 'tampered-body' })).toBe(
        'refused webhook_signature_digest_mismatch 401',
      );
      expect(await send(body, { sign: { url: 'https://buyer.example/other' } })).toBe(
        'refused webhook_signature_invalid 401',
      );
      expect(await send(body, { mistake: 'expired' })).toBe('refused webhook_signature_window_invalid 401');
      const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'unknown' });
      expect(await send(body, { key: stranger.privateJwk })).toBe(
        'refused webhook_signature_key_unknown 401',
      );
      expect(await send(body, { key: stranger.privateJwk })).toBe('unavailable keys_unavailable 503');
      expect(asked).toHaveLength(1);
      expect(alarms.filter(({ code }) => code === 'legacy_auth_used')).toEqual([]);
    },
  );

  it('its documents cannot be fetched: 503, and the nonce stays unused', async () => {
    const auth: SenderAuth = { hmac: { secret: SECRET } };
    await using seller = await createFakeSeller({ url: URL_GIVEN, auth });
    let now = Date.now();
    const { receiver } = await testReceiver({
      senders: [seller.sender],
      allowLoopback: true,
      onChallenge: () => true,
      now: () => now,
    });
    seller.faults.set('*', 'down');
    const made = await seller.sign(sampleChallenge(seller.agentUrl, auth), { auth: 'signature' });
    const send = async () => said(await receiver.verifyAndDispatch(made.body, made.headers));
    expect(await send()).toBe('unavailable keys_unavailable 503');
    seller.faults.clear();
    now += 61_000;
    expect(await send()).toBe('challenge 200');
  });

  it("beside the scheme's own fields; an HMAC signature at a bearer sender is another mode", async () => {
    const signed = async (auth: SenderAuth, headers: Record<string, string>) => {
      const at = await open(() => true, { auth });
      return said(await at.deliver(at.challenge(), { headers }));
    };
    const [[, hmac], [, bearer]] = SCHEMES as [(typeof SCHEMES)[0], (typeof SCHEMES)[0]];
    const made = signHmac({ url: URL_GIVEN, body: '{}', secret: SECRET });
    const hmacFields = Object.fromEntries(
      Object.entries(made.headers).filter(([name]) => name.toLowerCase().startsWith('x-')),
    );
    expect(await signed(hmac, hmacFields)).toBe('challenge 200');
    expect(await signed(bearer, { Authorization: `Bearer ${SECRET}` })).toBe('challenge 200');
    expect(await signed(bearer, hmacFields)).toBe(MISMATCH);
  });

  it('with the HMAC or the token alone it is never echoed: 403 and an alarm', async () => {
    for (const [, auth] of SCHEMES) {
      const at = await open(() => true, { auth });
      const body = JSON.stringify(at.challenge());
      const made =
        'hmac' in auth
          ? signHmac({ url: URL_GIVEN, body, secret: SECRET })
          : bearerDelivery({ url: URL_GIVEN, body, token: SECRET });
      expect(said(await at.receiver.verifyAndDispatch(made.body, made.headers))).toBe(REFUSED);
      expect(at.asked).toEqual([]);
      expect(at.accepts).toEqual([]);
      expect(at.alarms.filter(({ code }) => code === 'challenge_refused')).toMatchObject([
        { sender: AGENT, message: expect.stringContaining('not signed') },
      ]);
    }
  });
});

it('stop waits for an answer that comes too late', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const late = gate<boolean>();
    const at = await open(() => late.opened);
    const outcome = at.deliver(at.challenge());
    while (at.asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(5_000);
    await outcome;
    const stopping = at.receiver.stop();
    const stopped = vi.fn();
    void stopping.then(stopped);
    await new Promise((resolve) => setImmediate(resolve));
    expect(stopped).not.toHaveBeenCalled();
    late.open(false);
    await stopping;
  } finally {
    vi.useRealTimers();
  }
});

it('neither the log nor a hook of the log has the challenge', async () => {
  const lines: string[] = [];
  const write = (fields: object, message: string): void => void lines.push(JSON.stringify([fields, message]));
  const at = await open(() => true, { logger: { debug: write, info: write, warn: write, error: write } });
  const body = at.challenge();
  await at.deliver(body);
  expect(lines.join('\n')).toContain('delivery challenge');
  expect(lines.join('\n')).not.toContain(String(body['challenge']));
});
