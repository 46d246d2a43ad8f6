import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Alarm, RefusedCode, Sender } from '../../src/index.ts';
import { SETTINGS } from '../../src/for-tests.ts';
import { bearerDelivery, generateKey, signHmac } from '../../src/sender/sign.ts';
import { sampleChallenge } from '../../src/testing/for-tests.ts';
import {
  AGENT,
  alarmsTold,
  payloads,
  said,
  sellerKey,
  type TestReceiver,
  testReceiver,
  type TestReceiverOptions,
  URL_GIVEN,
} from './setup.ts';

const SECRET = 'a-secret-of-thirty-two-characters';
const OTHER_SECRET = 'another-secret-of-32-characters-x';
const PUSH = 'X-A2A-Notification-Token';
const JSON_TYPE = { 'Content-Type': 'application/json' };
const PREFIX = 'https://buyer.example/webhooks/*';

type Auth = NonNullable<Sender['auth']>;
type Headers = Readonly<Record<string, string>>;

const completed = (): object => payloads.tool('completed');
const withAuth = (auth: Auth, more: TestReceiverOptions = {}): TestReceiverOptions => ({
  senders: [{ agentUrl: AGENT, auth }],
  ...more,
});
const HMAC: Auth = { hmac: { secret: SECRET } };
const BEARER: Auth = { bearer: { token: SECRET } };
const OWN_HEADER: Auth = { bearer: { token: SECRET, header: PUSH } };

/** A delivery without a signature. */
const bare =
  (headers: Headers, url?: string) =>
  async ({ receiver }: TestReceiver): Promise<unknown> =>
    receiver.verifyAndDispatch(
      new TextEncoder().encode(JSON.stringify(completed())),
      { ...JSON_TYPE, ...headers },
      url === undefined ? undefined : { url },
    );

const byHmac =
  (options: Partial<Parameters<typeof signHmac>[0]> = {}) =>
  async ({ receiver }: TestReceiver): Promise<unknown> => {
    const { body, headers } = signHmac({ url: URL_GIVEN, body: completed(), secret: SECRET, ...options });
    return receiver.verifyAndDispatch(body, headers);
  };

const byToken =
  (token: string, header?: string) =>
  async ({ receiver }: TestReceiver): Promise<unknown> => {
    const { body, headers } = bearerDelivery({
      url: URL_GIVEN,
      body: completed(),
      token,
      ...(header && { header }),
    });
    return receiver.verifyAndDispatch(body, headers);
  };

/** A signed delivery, with something changed behind the signature. */
const changed =
  (headers: Headers, body?: string) =>
  async ({ sign, receiver }: TestReceiver): Promise<unknown> => {
    const signed = await sign(completed());
    return receiver.verifyAndDispatch(body === undefined ? signed.body : new TextEncoder().encode(body), {
      ...signed.headers,
      ...headers,
    });
  };

const signedWith =
  (options: Parameters<TestReceiver['deliver']>[1]) =>
  async ({ deliver }: TestReceiver): Promise<unknown> =>
    deliver(completed(), options);

const forged = async ({ deliver }: TestReceiver): Promise<unknown> => {
  const { privateJwk } = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
  return deliver(completed(), { key: privateJwk });
};

/** Other bytes than were announced, of a sender that its headers prove. */
const tooLong = async ({ sign, receiver }: TestReceiver): Promise<unknown> => {
  const signed = await sign(completed());
  const ticket = await receiver.open(signed.headers);
  if (ticket.kind !== 'ticket') throw new Error(`no ticket: ${ticket.kind}`);
  ticket.add(new Uint8Array(2_000));
  return ticket.outcome;
};

interface Case {
  readonly what: string;
  readonly code: RefusedCode;
  readonly options?: TestReceiverOptions | (() => Promise<TestReceiverOptions>);
  readonly send: (at: TestReceiver) => Promise<unknown>;
  /** What the alarm names; undefined: something else of ours. */
  readonly option: string | undefined;
  readonly advice: string;
  /** By what it has proved. */
  readonly proved?: true;
}

const withPins = async (sender: Partial<Sender>): Promise<TestReceiverOptions> => {
  const { publicJwk } = await sellerKey();
  return { senders: [{ agentUrl: AGENT, pins: [publicJwk], ...sender }] };
};

const CASES: readonly Case[] = [
  {
    what: 'a type that contentTypes lacks, signed',
    code: 'unsupported_media_type',
    send: changed({ 'Content-Type': 'application/vnd.seller+json; version=1' }),
    option: 'contentTypes',
    advice: "contentTypes: ['application/vnd.seller+json']",
  },
  {
    what: 'an agent’s push to a sender without a header of its own',
    code: 'unsupported_media_type',
    send: bare({ 'Content-Type': 'application/a2a+json' }),
    option: 'contentTypes',
    advice: "contentTypes: ['application/a2a+json']",
  },
  {
    what: 'an agent’s push with a token in Authorization',
    code: 'unsupported_media_type',
    options: withAuth(BEARER),
    send: bare({ 'Content-Type': 'application/a2a+json', Authorization: `Bearer ${SECRET}` }),
    option: 'contentTypes',
    advice: "contentTypes: ['application/a2a+json']",
  },
  {
    what: 'a type that the option cannot name, of a bearer sender',
    code: 'unsupported_media_type',
    options: withAuth(BEARER),
    send: bare({ 'Content-Type': "application/x', 'y+json", Authorization: `Bearer ${SECRET}` }),
    option: undefined,
    advice: 'your proxy has changed it',
  },
  {
    what: 'another charset',
    code: 'unsupported_media_type',
    send: changed({ 'Content-Type': 'application/json; charset=latin1' }),
    option: undefined,
    advice: 'in UTF-8',
  },
  {
    what: 'a compressed body by HMAC',
    code: 'unsupported_content_encoding',
    options: withAuth(HMAC),
    send: byHmac({ headers: { 'Content-Encoding': 'gzip' } }),
    option: undefined,
    advice: 'turn that off for this path',
  },
  {
    what: 'a body over the limit',
    code: 'payload_too_large',
    options: { maxBodyBytes: 100 },
    send: signedWith({}),
    option: 'maxBodyBytes',
    advice: 'raise maxBodyBytes (100)',
  },
  {
    what: 'a body over the limit, behind a signature',
    code: 'payload_too_large',
    options: { maxBodyBytes: 1_000 },
    send: tooLong,
    option: 'maxBodyBytes',
    advice: 'raise maxBodyBytes (1000)',
    proved: true,
  },
  {
    what: 'HMAC by a name that is not accepted, at a sender with HMAC',
    code: 'webhook_signature_header_malformed',
    options: withAuth(HMAC, { protocol: 'proto' }),
    send: byHmac({ protocol: 'adcp' }),
    option: 'protocol',
    advice: "set protocol: 'adcp'",
  },
  {
    what: 'HMAC by a name that nobody knows, at a sender that signs',
    code: 'webhook_signature_header_malformed',
    send: byHmac({ protocol: 'other' }),
    option: 'auth',
    advice: "set protocol: 'other', and register its auth",
  },
  {
    what: 'HMAC fields of two names',
    code: 'webhook_signature_header_malformed',
    options: withAuth(HMAC),
    send: byHmac({ headers: { 'X-ADCP-Signature': 'sha256=0' } }),
    option: 'protocol',
    advice: 'set protocol to the one that it signs by',
  },
  {
    what: 'an agent’s token at a sender that signs',
    code: 'webhook_signature_header_malformed',
    send: bare({ [PUSH]: SECRET }),
    option: 'auth',
    advice: "register auth: { bearer: { token, header: 'X-A2A-Notification-Token' } }",
  },
  {
    what: 'an agent’s token at a sender with HMAC',
    code: 'webhook_signature_header_malformed',
    options: withAuth(HMAC),
    send: bare({ [PUSH]: SECRET }),
    option: 'auth',
    advice: "header: 'X-A2A-Notification-Token'",
  },
  {
    what: 'a token in a header of its own, where Authorization is registered',
    code: 'webhook_signature_header_malformed',
    options: withAuth(BEARER),
    send: byToken(SECRET, PUSH),
    option: 'auth',
    advice: "header: 'X-A2A-Notification-Token'",
  },
  {
    what: 'a token in Authorization, where another header is registered',
    code: 'webhook_signature_header_malformed',
    options: withAuth(OWN_HEADER),
    send: byToken(SECRET),
    option: 'auth',
    advice: 'leave auth.bearer.header out',
  },
  {
    what: 'a tag of another name',
    code: 'webhook_signature_tag_invalid',
    options: { protocol: 'proto' },
    send: signedWith({ protocol: 'adcp' }),
    option: 'protocol',
    advice: "set protocol: 'adcp'",
  },
  {
    what: 'a URL for which nobody is registered',
    code: 'webhook_signature_key_unknown',
    options: { publicUrl: PREFIX, senders: () => [] },
    send: async ({ sign, receiver }) => {
      const { body, headers } = await sign(completed());
      return receiver.verifyAndDispatch(body, headers, { url: '/webhooks/new-seller' });
    },
    option: 'senders',
    advice: 'add that seller to senders for it',
  },
  {
    what: 'the key of a sender that is registered at another URL',
    code: 'webhook_signature_key_unknown',
    options: async () => {
      const [{ publicJwk }, other] = [await sellerKey(), await generateKey('ed25519')];
      return {
        publicUrl: PREFIX,
        senders: ({ pathname }) =>
          pathname === '/webhooks/proto'
            ? [{ agentUrl: AGENT, pins: [publicJwk] }]
            : [{ agentUrl: 'https://other.example/mcp', pins: [other.publicJwk] }],
      };
    },
    send: async ({ sign, receiver }) => {
      const first = await sign(completed());
      await receiver.verifyAndDispatch(first.body, first.headers, { url: '/webhooks/proto' });
      const { body, headers } = await sign(completed(), { url: 'https://buyer.example/webhooks/other' });
      return receiver.verifyAndDispatch(body, headers, { url: '/webhooks/other' });
    },
    option: 'senders',
    advice: `${AGENT} has a key with this id`,
  },
  {
    what: 'a key that the pins lack',
    code: 'webhook_signature_key_unknown',
    send: signedWith({ params: { keyid: 'next-1' } }),
    option: 'pins',
    advice: `Only the pins of ${AGENT} count`,
  },
  {
    what: 'a key that the owner revoked',
    code: 'webhook_signature_key_revoked',
    options: () => withPins({ revocation: { revokedKids: ['seller-1'] } }),
    send: signedWith({}),
    option: 'revocation',
    advice: `revokedKids of ${AGENT}`,
  },
  {
    what: 'a pin with revoked_at',
    code: 'webhook_signature_key_revoked',
    options: async () => {
      const { publicJwk } = await sellerKey();
      return withPins({ pins: [{ ...publicJwk, revoked_at: '2020-01-01T00:00:00Z' }] });
    },
    send: signedWith({}),
    option: 'pins',
    advice: 'has revoked_at',
  },
  {
    what: 'a signature that does not verify, and nothing was accepted before',
    code: 'webhook_signature_invalid',
    send: forged,
    option: 'publicUrl',
    advice: `Nothing from ${AGENT} was accepted since the start`,
  },
  {
    what: 'a signature that does not verify under a pin that has',
    code: 'webhook_signature_invalid',
    send: async (at) => {
      await at.deliver(completed());
      return forged(at);
    },
    option: 'pins',
    advice: 'has replaced it under the same kid',
  },
  {
    what: 'another secret',
    code: 'webhook_signature_invalid',
    options: withAuth(HMAC),
    send: byHmac({ secret: OTHER_SECRET }),
    option: 'auth',
    advice: 'previousSecret',
  },
  {
    what: 'another secret for reports',
    code: 'webhook_signature_invalid',
    options: () => withPins({ auth: { reports: { secret: SECRET } } }),
    send: byHmac({ secret: OTHER_SECRET, body: payloads.report() }),
    option: 'auth',
    advice: 'previousSecret',
  },
  {
    what: 'another token',
    code: 'webhook_signature_invalid',
    options: withAuth(BEARER),
    send: byToken(OTHER_SECRET),
    option: 'auth',
    advice: 'previousToken',
  },
  {
    what: 'a body that was changed behind the signature',
    code: 'webhook_signature_digest_mismatch',
    send: changed({}, '{"changed":true}'),
    option: undefined,
    advice: 'your proxy, parser or middleware',
    proved: true,
  },
  {
    what: 'HMAC at a sender that signs',
    code: 'webhook_mode_mismatch',
    send: byHmac(),
    option: 'auth',
    advice: 'change the auth of its sender',
  },
  {
    what: 'a task by the secret for reports',
    code: 'webhook_mode_mismatch',
    options: () => withPins({ auth: { reports: { secret: SECRET } } }),
    send: byHmac(),
    option: 'auth',
    advice: 'change the auth of its sender',
    proved: true,
  },
];

const made = async ({ options = {} }: Pick<Case, 'options'>, more: TestReceiverOptions = {}) =>
  testReceiver({ ...(typeof options === 'function' ? await options() : options), ...more });

describe('a refusal that another setting would not have given is an alarm that names it (verification.md §2.37)', () => {
  it.each(CASES)('$code, by $what: $option', async ({ code, send, option, advice, proved, ...given }) => {
    const at = await made(given);
    await send(at);
    await alarmsTold();
    const own = at.alarms.filter((alarm) => alarm.code === code);
    expect(own).toHaveLength(1);
    expect(own[0]).toMatchObject({ message: expect.stringContaining(advice), url: expect.any(String) });
    expect(own[0]?.['option']).toBe(option);
    expect(own[0]?.sender).toBe(proved && AGENT);
  });

  it.each(CASES)('$code, by $what: once a minute', async ({ code, send, ...given }) => {
    let time = Date.now();
    const at = await made(given, { now: () => time });
    const own = (): Alarm[] => at.alarms.filter((alarm) => alarm.code === code);
    const repeat = async (): Promise<void> => {
      for (let count = 0; count < 3; count += 1) await send(at);
      await alarmsTold();
    };
    await repeat();
    expect(own()).toHaveLength(1);
    time += 60_000;
    await repeat();
    expect(own()).toHaveLength(2);
    expect(own()[1]).toMatchObject({ suppressed: 2 });
  });

  it('a flood of URLs is one alarm, at nobody’s and at a sender’s', async () => {
    for (const senders of [() => [], [{ agentUrl: AGENT, pins: [(await sellerKey()).publicJwk] }]]) {
      const { receiver, sign, alarms } = await testReceiver({ publicUrl: PREFIX, senders });
      const { body, headers } = await sign(completed(), { params: { keyid: 'of-nobody' } });
      for (let index = 0; index < 500; index += 1) {
        await receiver.verifyAndDispatch(body, headers, { url: `/webhooks/${index}` });
      }
      await alarmsTold();
      expect(alarms.map(({ code }) => code)).toEqual(['webhook_signature_key_unknown']);
    }
  });

  it('what strangers send hides no alarm of a proved sender', async () => {
    const at = await testReceiver({ maxBodyBytes: 1_000 });
    for (let index = 0; index < 3; index += 1) await bare({ filler: 'x', 'Content-Length': '2000' })(at);
    await at.receiver.open({ ...JSON_TYPE, 'Content-Length': '2000' });
    await tooLong(at);
    await alarmsTold();
    const own = at.alarms.filter(({ code }) => code === 'payload_too_large');
    expect(own.map(({ sender }) => sender)).toEqual([undefined, AGENT]);
  });

  it('what no setting of ours would have taken is no alarm', async () => {
    const at = await testReceiver();
    const silent: ((to: TestReceiver) => Promise<unknown>)[] = [
      bare({}),
      bare({ 'Content-Type': 'text/plain' }),
      bare({ 'Content-Encoding': 'gzip' }),
      bare({ Signature: 'x', [PUSH]: SECRET }),
      signedWith({ params: { tag: 'proto/request-signing/v1' } }),
      signedWith({ params: { alg: 'rsa-v1_5-sha256' } }),
      signedWith({ params: { nonce: undefined } }),
      signedWith({ components: ['@method'] }),
      async ({ deliver }) => deliver({ ...completed(), idempotency_key: undefined }),
      async ({ deliver }) => deliver('{"a":1,"a":2}', { allowMalformed: true }),
      async ({ receiver }) => receiver.verifyAndDispatch(new Uint8Array(2), JSON_TYPE, { method: 'GET' }),
    ];
    for (const send of silent) await send(at);
    await alarmsTold();
    expect(at.alarms).toEqual([]);
  });

  it('a URL for which nobody is registered, without signature or token, is no alarm', async () => {
    const at = await testReceiver({ publicUrl: PREFIX, senders: () => [] });
    await bare({}, '/webhooks/scanned')(at);
    await alarmsTold();
    expect(at.alarms).toEqual([]);
  });
});

describe('an alarm of another code names the option too', () => {
  const task = (more: object): object => payloads.tool('completed', { task_id: 'task-1', ...more });
  const cases: readonly [string, string, () => Promise<TestReceiverOptions>, readonly object[]][] = [
    ['cap_reached', 'maxRecordsPerSender', async () => ({ maxRecordsPerSender: 1 }), [task({}), completed()]],
    ['cap_reached', 'maxNoncesPerKey', async () => ({ maxNoncesPerKey: 1 }), [completed(), completed()]],
    [
      'payload_changed',
      'edition',
      async () => ({ edition: '3.2' }),
      [1, 2].map((message) => task({ idempotency_key: 'key-of-the-same-event', message })),
    ],
    [
      'second_terminal_status',
      'edition',
      async () => ({ edition: '3.2' }),
      [
        task({ timestamp: '2026-01-01T00:00:00Z' }),
        task({ status: 'failed', timestamp: '2026-01-01T00:01:00Z' }),
      ],
    ],
    ['challenge_refused', 'onChallenge', async () => ({}), [sampleChallenge(AGENT, undefined, {})]],
    [
      'token_mismatch',
      'notificationToken',
      () => withPins({ notificationToken: { token: SECRET, onMismatch: 'refuse' } }),
      [{ ...completed(), token: 'another' }],
    ],
  ];

  it.each(cases)('%s: %s', async (code, option, options, deliveries) => {
    const at = await made({ options });
    const outcomes = [];
    for (const delivery of deliveries) outcomes.push(await at.deliver(delivery));
    expect(outcomes.at(-1)?.kind).toBe('refused');
    expect(at.alarms.filter((alarm) => alarm.code === code)).toMatchObject([{ option, sender: AGENT }]);
  });

  it('key_purpose_refused: edition', async () => {
    const { publicJwk, privateJwk } = await generateKey('ed25519', 'request-signing');
    const at = await testReceiver({ senders: [{ agentUrl: AGENT, pins: [publicJwk], edition: '3.0' }] });
    await at.deliver(completed(), { key: privateJwk });
    expect(at.alarms.at(-1)).toMatchObject({ code: 'key_purpose_refused', option: 'edition', sender: AGENT });
  });
});

describe('an agent’s own push (verification.md §6.8, §7.25)', () => {
  const A2A = { 'Content-Type': 'application/a2a+json' };

  it('is taken of a sender with a token in a header of its own, in one call and by a ticket', async () => {
    const at = await made({ options: withAuth(OWN_HEADER) });
    for (const type of ['application/a2a+json', 'Application/A2A+JSON; charset=utf-8']) {
      const { body, headers } = bearerDelivery({
        url: URL_GIVEN,
        body: payloads.agent('completed'),
        token: SECRET,
        header: PUSH,
        headers: { 'Content-Type': type },
      });
      const whole = await at.receiver.verifyAndDispatch(body, headers);
      expect(said(whole)).toBe('accepted 200');
      const opened = await at.receiver.open(headers);
      expect(opened.kind).toBe('ticket');
      if (opened.kind === 'ticket') opened.abort();
    }
    expect(at.seen).toHaveLength(2);
    await alarmsTold();
    expect(at.alarms.map(({ code }) => code)).toEqual(['legacy_auth_used']);
  });

  it('with a wrong token, another charset or another type it is refused as ever', async () => {
    const at = await made({ options: withAuth(OWN_HEADER) });
    const code = async (headers: Headers): Promise<unknown> => {
      const outcome = (await bare(headers)(at)) as { readonly code?: string };
      return outcome.code;
    };
    expect(await code({ ...A2A, [PUSH]: OTHER_SECRET })).toBe('webhook_signature_invalid');
    expect(await code({ 'Content-Type': 'application/a2a+json; charset=latin1', [PUSH]: SECRET })).toBe(
      'unsupported_media_type',
    );
    expect(await code({ 'Content-Type': 'application/ld+json', [PUSH]: SECRET })).toBe(
      'unsupported_media_type',
    );
    expect(at.seen).toEqual([]);
  });

  it.each<[string, TestReceiverOptions]>([
    ['that signs', {}],
    ['with HMAC', withAuth(HMAC)],
    ['with a token in Authorization', withAuth(BEARER)],
  ])('of a sender %s is 415 before anything is proved', async (_, options) => {
    const at = await made({ options });
    for (const headers of [
      { ...A2A, [PUSH]: SECRET },
      { ...A2A, Authorization: `Bearer ${SECRET}` },
    ]) {
      expect(await bare(headers)(at)).toMatchObject({
        code: 'unsupported_media_type',
        response: { status: 415 },
      });
    }
    const listed = await made({ options }, { contentTypes: ['application/a2a+json'] });
    expect(await bare(A2A)(listed)).not.toMatchObject({ code: 'unsupported_media_type' });
  });
});

describe('the table in docs/spec', () => {
  const page = readFileSync(new URL('../../docs/spec/verification.md', import.meta.url), 'utf8');
  const rule = page.slice(page.indexOf('### 2.37'), page.indexOf('## 3. '));
  const rows = rule.split('\n').flatMap((line) => {
    const [codes = '', option = '', where = ''] = line.split('|').slice(1);
    const named = [...codes.matchAll(/`(…?\w+)`/g)].map(([, code = '']) =>
      code.replace('…', 'webhook_signature'),
    );
    return named.map((code) => ({ code, option: option.trim(), where: where.trim() }));
  });

  it('has every code of a refusal once', () => {
    expect(rows.map(({ code }) => code).sort()).toEqual(Object.keys(SETTINGS).sort());
  });

  it.each(rows)('$code: is built as it says', ({ code, option, where }) => {
    const row = SETTINGS[code as RefusedCode];
    const options = [...option.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    const own = CASES.filter((one) => one.code === code).map((one) => one.option);
    if (typeof row === 'string') {
      expect(where).toContain(`alarm \`${row}\``);
      expect(own).toEqual([]);
    } else if (row === undefined) {
      expect([option, where.split(':')[0]]).toEqual(['none', 'never']);
      expect(own).toEqual([]);
    } else {
      expect(new Set(own.filter((name) => name !== undefined))).toEqual(
        new Set(options.filter((name) => name !== 'publishers')),
      );
      expect(own.length).toBeGreaterThan(0);
    }
  });
});
