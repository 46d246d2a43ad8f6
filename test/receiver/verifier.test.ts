import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  type Alarm,
  type Burn,
  type Committed,
  ConfigError,
  createVerifier,
  Fault,
  type Outcome,
  type RefusedDelivery,
  type Unverified,
  type VerifiedDelivery,
  type Verifier,
  type VerifierOptions,
} from '../../src/index.ts';
import { createRegistrations } from '../../src/registrations/index.ts';
import {
  bearerDelivery,
  generateKey,
  signDelivery,
  type SignDeliveryOptions,
  signHmac,
} from '../../src/sender/sign.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import { sampleChallenge } from '../../src/testing/for-tests.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import {
  AGENT,
  alarmsTold,
  gate,
  payloads,
  said,
  sellerKey,
  type Signed,
  testReceiver,
  URL_GIVEN,
} from './setup.ts';

const REPLAYED = 'refused webhook_signature_replayed 401';
const FULL = 'refused webhook_signature_rate_abuse 429';
const ACCEPTED = 'accepted 200';

afterEach(() => {
  vi.useRealTimers();
});

async function verifying(options: Partial<VerifierOptions> = {}) {
  const { publicJwk, privateJwk } = await sellerKey();
  const alarms: Alarm[] = [];
  const outcomes: Outcome[] = [];
  const make = (): Verifier =>
    createVerifier({
      publicUrl: URL_GIVEN,
      senders: [{ agentUrl: AGENT, pins: [publicJwk] }],
      logger: SILENT_LOGGER,
      onAlarm: (alarm) => alarms.push(alarm),
      onOutcome: (outcome) => outcomes.push(outcome),
      ...options,
    });
  const verifier = make();
  const sign = (body: unknown = payloads.tool('completed'), more: Partial<SignDeliveryOptions> = {}) =>
    signDelivery({ url: URL_GIVEN, body: body as object, key: privateJwk, ...more });
  const verify = ({ body, headers }: Pick<Signed, 'body' | 'headers'>, by = verifier) =>
    by.verify(body, headers);
  return { verifier, make, alarms, outcomes, sign, verify };
}

function taken(found: VerifiedDelivery | Unverified): VerifiedDelivery {
  if (found.kind !== 'verified') throw new Error(said(found));
  return found;
}

const answered = (found: VerifiedDelivery | Unverified): string =>
  found.kind === 'verified' ? 'verified' : said(found);

const burnsOf = () => {
  const burned = new Set<string>();
  const calls: Parameters<Burn>[] = [];
  const burn: Burn = (...call) => {
    calls.push(call);
    const name = JSON.stringify(call.slice(0, 3));
    const isNew = !burned.has(name);
    burned.add(name);
    return isNew;
  };
  return { burn, calls };
};

describe('a verifier (admission.md §2.18)', () => {
  it('raises one alarm for a wrong token, and none when the delivery is committed', async () => {
    const { publicJwk } = await sellerKey();
    const notificationToken = { token: 'tok_0123456789abcdef0123456789abcdef' };
    let clock = Date.now();
    const at = await verifying({
      senders: [{ agentUrl: AGENT, pins: [publicJwk], notificationToken }],
      now: () => clock,
    });
    for (let n = 0; n < 2; n += 1) {
      const headers = { 'X-A2A-Notification-Token': 'another-token-of-32-characters-00' };
      const found = taken(await at.verify(await at.sign(undefined, { headers, now: () => clock })));
      expect(found.event.warnings.map(({ code }) => code)).toEqual(['token_mismatch']);
      expect(said(await found.commit())).toBe(ACCEPTED);
      clock += 61_000;
    }
    expect(at.alarms.map(({ code, suppressed }) => [code, suppressed])).toEqual([
      ['token_mismatch', undefined],
      ['token_mismatch', undefined],
    ]);
  });

  it('gives the event of a receiver, and the answer once it is committed', async () => {
    const at = await verifying();
    const signed = await at.sign(payloads.tool('completed'));
    const found = taken(await at.verify(signed));
    const receiver = await testReceiver();
    const outcome = await receiver.send(signed);
    expect(found.event).toEqual(outcome.event);
    expect(found).toMatchObject({ sender: AGENT, deliveryId: outcome.deliveryId });
    expect(await found.commit()).toEqual({ ...outcome, response: { status: 200, headers: {}, body: '' } });
  });

  it('verifies the same bytes again until one is committed, and refuses them then', async () => {
    const at = await verifying();
    const signed = await at.sign();
    const first = taken(await at.verify(signed));
    const second = taken(await at.verify(signed));
    expect(said(await second.commit())).toBe(ACCEPTED);
    expect(said(await second.commit())).toBe(ACCEPTED);
    expect(said(await first.commit())).toBe(REPLAYED);
    expect(said(await first.commit())).toBe(REPLAYED);
    const third = await at.verify(signed);
    expect(answered(third)).toBe(REPLAYED);
    expect(third).toMatchObject({
      check: 12,
      sender: AGENT,
      response: { headers: { 'WWW-Authenticate': 'Signature error="webhook_signature_replayed"' } },
    });
    // What a seller sends again is signed anew.
    expect(said(await taken(await at.verify(await at.sign(first.event.envelope))).commit())).toBe(ACCEPTED);
  });

  it('tells one of many that verified at once that it was the first', async () => {
    const at = await verifying();
    const signed = await at.sign();
    const found = await Promise.all(Array.from({ length: 8 }, () => at.verify(signed)));
    const told = await Promise.all(found.map(async (one) => said(await taken(one).commit())));
    expect(told.toSorted()).toEqual([ACCEPTED, ...Array<string>(7).fill(REPLAYED)]);
  });

  it('loses nothing where the store of its owner fails: the bytes that come again verify', async () => {
    const { burn, calls } = burnsOf();
    for (const options of [{}, { burn }]) {
      const at = await verifying(options);
      const stored: string[] = [];
      let isDown = true;
      const receive = async (signed: Signed): Promise<number> => {
        const found = await at.verify(signed);
        if (found.kind !== 'verified') return found.response.status;
        if (isDown) return 503;
        stored.push(found.deliveryId);
        return (await found.commit()).response.status;
      };
      const signed = await at.sign();
      expect(await receive(signed)).toBe(503);
      expect(calls).toHaveLength(0);
      isDown = false;
      expect(await receive(signed)).toBe(200);
      expect(stored).toHaveLength(1);
    }
    expect(calls).toHaveLength(1);
  });

  it('burns the nonce of an authentic body that is no event together with its refusal', async () => {
    const { burn, calls } = burnsOf();
    const { idempotency_key: _key, ...keyless } = payloads.tool('completed');
    for (const options of [{}, { burn }]) {
      const at = await verifying(options);
      const broken = await at.sign('{"a":1,"a":2}', { allowMalformed: true });
      const unnamed = await at.sign(keyless, { allowMalformed: true });
      expect(answered(await at.verify(broken))).toBe('refused webhook_body_malformed 401');
      expect(answered(await at.verify(unnamed))).toBe('refused missing_idempotency_key 400');
      expect(answered(await at.verify(broken))).toBe(REPLAYED);
      expect(answered(await at.verify(unnamed))).toBe(REPLAYED);
    }
    expect(calls).toHaveLength(4);
  });

  it('looks at method, media type and size before all else', async () => {
    const senders = vi.fn(() => []);
    const at = await verifying({ senders, maxBodyBytes: 1_024 });
    const signed = await at.sign();
    const said415 = await at.verifier.verify(signed.body, {
      ...signed.headers,
      'Content-Type': 'text/plain',
    });
    expect(answered(said415)).toBe('refused unsupported_media_type 415');
    expect(answered(await at.verifier.verify(signed.body, signed.headers, { method: 'PUT' }))).toBe(
      'refused method_not_allowed 405',
    );
    expect(answered(await at.verifier.verify(new Uint8Array(1_025), signed.headers))).toBe(
      'refused payload_too_large 413',
    );
    expect(senders).not.toHaveBeenCalled();
    expect(answered(await at.verify(signed))).toBe('refused webhook_signature_key_unknown 401');
    expect(senders).toHaveBeenCalledTimes(1);
  });

  it('takes path and query from the request where publicUrl ends in /*', async () => {
    const at = await verifying({ publicUrl: 'https://buyer.example/webhooks/*' });
    const signed = await at.sign(undefined, { url: 'https://buyer.example/webhooks/one?a=b' });
    const by = (url: string) => at.verifier.verify(signed.body, signed.headers, { url, method: 'post' });
    expect(answered(await by('/webhooks/one?a=b'))).toBe('verified');
    expect(answered(await by('/webhooks/two'))).toBe('refused webhook_signature_invalid 401');
    await expect(at.verify(signed)).rejects.toThrow(ConfigError);
  });

  it('throws for the mistakes of its caller alone', async () => {
    const at = await verifying();
    const { headers } = await at.sign();
    await expect(at.verifier.verify('{}' as never, headers)).rejects.toThrow('rawBytes must be a Uint8Array');
    await expect(at.verifier.verify(new Uint8Array(), undefined as never)).rejects.toThrow('headers: pass');
  });

  it('asks onChallenge about a proof of control, and burns its nonce with the answer', async () => {
    const onChallenge = vi.fn(() => true);
    const { burn, calls } = burnsOf();
    for (const options of [{}, { burn }]) {
      const at = await verifying({ onChallenge, ...options });
      const challenge = sampleChallenge(AGENT, undefined);
      const signed = await at.sign(challenge);
      const found = await at.verify(signed);
      expect(answered(found)).toBe('challenge 200');
      expect(found).toMatchObject({ response: { body: JSON.stringify({ challenge: challenge.challenge }) } });
      expect(answered(await at.verify(signed))).toBe(REPLAYED);
    }
    expect(calls).toHaveLength(2);
    const deaf = await verifying();
    const unasked = await deaf.verify(await deaf.sign(sampleChallenge(AGENT, undefined)));
    expect(answered(unasked)).toBe('refused challenge_refused 403');
    expect(deaf.alarms.map(({ code }) => code)).toEqual(['challenge_refused']);
  });

  it('has nothing to burn of legacy schemes: commit is always accepted', async () => {
    const { burn, calls } = burnsOf();
    const secret = 'a-shared-secret-of-32-characters';
    const auths = [{ hmac: { secret } }, { bearer: { token: secret } }] as const;
    for (const auth of auths) {
      const at = await verifying({ burn, senders: [{ agentUrl: AGENT, auth }] });
      const given = { url: URL_GIVEN, body: payloads.tool('completed') };
      const signed =
        'hmac' in auth ? signHmac({ ...given, secret }) : bearerDelivery({ ...given, token: secret });
      const commit = async (): Promise<string> => said(await taken(await at.verify(signed)).commit());
      expect([await commit(), await commit()]).toEqual([ACCEPTED, ACCEPTED]);
      expect(at.alarms.map(({ code }) => code)).toEqual(['legacy_auth_used']);
    }
    expect(calls).toEqual([]);
  });

  it('finds keys as a receiver does: a seller of its own, that rotates, and whose keys cannot be had', async () => {
    await using seller = await createFakeSeller({ url: URL_GIVEN });
    const at = await verifying({ senders: [seller.sender], allowLoopback: true, publicUrl: URL_GIVEN });
    await at.verifier.ready();
    expect(answered(await at.verify(await seller.sign(seller.payloads.report())))).toBe('verified');
    const forged = await seller.sign(seller.payloads.report(), { mistake: 'tampered-body' });
    expect(answered(await at.verify(forged))).toBe('refused webhook_signature_digest_mismatch 401');
    await at.verifier.stop();
    seller.faults.set('*', 'down');
    const late = at.make();
    const found = await at.verify(await seller.sign(seller.payloads.report()), late);
    expect(answered(found)).toBe('unavailable keys_unavailable 503');
    await late.stop();
  });
});

describe('nonces in the process (admission.md §2.19)', () => {
  const sellers = async (maxNoncesPerKey?: number) => {
    const other = await generateKey('ed25519', 'webhook-signing', { kid: 'other-1' });
    const { publicJwk } = await sellerKey();
    const senders = [
      { agentUrl: AGENT, pins: [publicJwk], ...(maxNoncesPerKey && { maxNoncesPerKey }) },
      { agentUrl: 'https://other.example/mcp', pins: [other.publicJwk] },
    ];
    return { senders, other: other.privateJwk };
  };

  it.each([
    ['maxNoncesPerKey', { maxNoncesPerKey: 2 }, undefined],
    ['maxNoncesPerKey of the sender', {}, 2],
    ['maxNoncesPerSender', { maxNoncesPerSender: 2 }, undefined],
  ])('%s: what is over it is refused, nothing that lives is forgotten', async (_, limits, ofSender) => {
    const { senders, other } = await sellers(ofSender);
    const at = await verifying({ ...limits, senders });
    const all = await Promise.all([1, 2, 3].map(() => at.sign()));
    const found = await Promise.all(all.map(async (signed) => taken(await at.verify(signed))));
    const told: string[] = [];
    // oxlint-disable-next-line no-await-in-loop -- in this order
    for (const one of found) told.push(said(await one.commit()));
    expect(told).toEqual([ACCEPTED, ACCEPTED, FULL]);
    // Before its owner would store it.
    expect(answered(await at.verify(await at.sign()))).toBe(FULL);
    expect(answered(await at.verify(all[0] as Signed))).toBe(REPLAYED);
    const others = await at.sign(undefined, { key: other });
    expect(said(await taken(await at.verify(others)).commit())).toBe(ACCEPTED);
    expect(new Set(at.alarms.map(({ code }) => code))).toEqual(new Set(['cap_near', 'cap_reached']));
  });

  it('maxNonces: of all senders together', async () => {
    const { senders, other } = await sellers();
    const at = await verifying({ maxNonces: 2, senders });
    const commit = async (key?: typeof other): Promise<string> => {
      const found = await at.verify(await at.sign(undefined, key && { key }));
      return found.kind === 'verified' ? said(await found.commit()) : said(found);
    };
    expect([await commit(), await commit(other)]).toEqual([ACCEPTED, ACCEPTED]);
    expect([await commit(), await commit(other)]).toEqual([FULL, FULL]);
  });

  it('are forgotten once no signature of theirs is inside its window, and not by a clock that is set', async () => {
    vi.useFakeTimers({ toFake: ['performance'], now: 0 });
    let clock = Date.now();
    const now = (): number => clock;
    const at = await verifying({ maxNoncesPerKey: 1, now });
    const signed = await at.sign(undefined, { now });
    expect(said(await taken(await at.verify(signed)).commit())).toBe(ACCEPTED);
    // Forward and back again: it still verifies, so it is still known.
    clock += 3_600_000;
    expect(answered(await at.verify(signed))).toContain('webhook_signature_window_invalid');
    clock -= 3_600_000;
    expect(answered(await at.verify(signed))).toBe(REPLAYED);
    vi.advanceTimersByTime(420_000);
    clock += 420_000;
    expect(answered(await at.verify(signed))).toContain('webhook_signature_window_invalid');
    expect(answered(await at.verify(await at.sign(undefined, { now })))).toBe('verified');
  });

  it('are gone with the process: what that one committed verifies in the next, within its window', async () => {
    const at = await verifying();
    const signed = await at.sign();
    expect(said(await taken(await at.verify(signed)).commit())).toBe(ACCEPTED);
    await at.verifier.stop();
    const next = at.make();
    expect(said(await taken(await at.verify(signed, next)).commit())).toBe(ACCEPTED);
  });
});

describe('nonces in a store of the owner (admission.md §2.20)', () => {
  it('is told sender, keyid, nonce and until when, and survives a restart', async () => {
    const { burn, calls } = burnsOf();
    const at = await verifying({ burn });
    const signed = await at.sign();
    expect(said(await taken(await at.verify(signed)).commit())).toBe(ACCEPTED);
    const [, nonce] = /;nonce="([^"]+)"/.exec(signed.headers['Signature-Input'] ?? '') ?? [];
    const [, expires] = /;expires=([0-9]+)/.exec(signed.headers['Signature-Input'] ?? '') ?? [];
    expect(calls).toEqual([[AGENT, 'seller-1', nonce, (Number(expires) + 60) * 1000 + 1]]);
    await at.verifier.stop();
    const next = at.make();
    const found = taken(await at.verify(signed, next));
    expect(said(await found.commit())).toBe(REPLAYED);
    expect(said(await found.commit())).toBe(REPLAYED);
    expect(calls).toHaveLength(2);
  });

  it('gets names that fit into 255 characters', async () => {
    const { burn, calls } = burnsOf();
    const key = await generateKey('ed25519', 'webhook-signing', { kid: 'k'.repeat(256) });
    const at = await verifying({ burn, senders: [{ agentUrl: AGENT, pins: [key.publicJwk] }] });
    const signed = await at.sign(undefined, { key: key.privateJwk, nonce: 'n'.repeat(256) });
    expect(said(await taken(await at.verify(signed)).commit())).toBe(ACCEPTED);
    expect(calls[0]?.slice(1, 3)).toEqual([
      expect.stringMatching(/^sha-256:[0-9a-f]{64}$/),
      expect.stringMatching(/^sha-256:[0-9a-f]{64}$/),
    ]);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('connection refused');
      },
      'unavailable store_unavailable 503',
      /burn failed: .*connection refused/,
    ],
    [
      'rejects',
      () => Promise.reject(new Error('deadlock')),
      'unavailable store_unavailable 503',
      /burn failed: .*deadlock/,
    ],
    [
      'rejects with a Fault',
      () => Promise.reject(new Fault('not_durable', 'a replica')),
      'unavailable not_durable 503',
      /a replica/,
    ],
    ['says nothing', () => undefined as never, 'unavailable misconfigured 503', /burn returned undefined/],
    ['says a row count', () => 1 as never, 'unavailable misconfigured 503', /burn returned number/],
  ] as const)('that %s: 503, and the next commit asks again', async (_, broken, answer, detail) => {
    let isBroken = true;
    const burn = (): boolean | Promise<boolean> => (isBroken ? broken() : true);
    const at = await verifying({ burn });
    const found = taken(await at.verify(await at.sign()));
    const failed = await found.commit();
    expect(said(failed)).toBe(answer);
    expect(failed).toMatchObject({ detail: expect.stringMatching(detail) as string, sender: AGENT });
    expect(failed.response.headers).toEqual({ 'Retry-After': '5' });
    if (answer.includes('misconfigured'))
      expect(at.alarms.map(({ code }) => code)).toEqual(['misconfigured']);
    isBroken = false;
    expect(said(await found.commit())).toBe(ACCEPTED);
  });

  it('that burned, and whose answer was lost: the next commit of that delivery is accepted', async () => {
    const burned = new Set<string>();
    let isLost = true;
    const at = await verifying({
      burn: (_sender, _keyid, nonce) => {
        const isNew = !burned.has(nonce);
        burned.add(nonce);
        if (isLost) throw new Error('connection reset');
        return isNew;
      },
    });
    const signed = await at.sign();
    const found = taken(await at.verify(signed));
    expect(said(await found.commit())).toBe('unavailable store_unavailable 503');
    isLost = false;
    const again = taken(await at.verify(signed));
    expect(said(await found.commit())).toBe(ACCEPTED);
    // Nobody but that delivery may take the nonce for its own.
    expect(said(await again.commit())).toBe('refused webhook_signature_replayed 401');
  });

  it('that hangs: 503 after 5 s', async () => {
    const at = await verifying({ burn: () => new Promise(() => {}) });
    const found = taken(await at.verify(await at.sign()));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const hanging = found.commit();
    await vi.advanceTimersByTimeAsync(4_999);
    let ended = false;
    void hanging.then(() => (ended = true));
    await vi.advanceTimersByTimeAsync(0);
    expect(ended).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(said(await hanging)).toBe('unavailable store_unavailable 503');
  });
});

describe('what the owner of a verifier is told', () => {
  it('onOutcome: each answer once, and nothing of what has none yet', async () => {
    const at = await verifying();
    const signed = await at.sign();
    const found = taken(await at.verify(signed));
    expect(at.outcomes).toEqual([]);
    const done = await found.commit();
    await found.commit();
    const refused = await at.verify(signed);
    expect(at.outcomes).toEqual([done, refused]);
    expect(at.outcomes[0]).toBe(done);
  });

  it('onRefused: the delivery, also where commit refuses it', async () => {
    const told: RefusedDelivery[] = [];
    const at = await verifying({ onRefused: (delivery) => told.push(delivery) });
    const signed = await at.sign();
    const [first, second] = [taken(await at.verify(signed)), taken(await at.verify(signed))];
    await first.commit();
    await second.commit();
    await alarmsTold();
    expect(told).toMatchObject([{ rawBytes: signed.body, sender: AGENT, targetUri: URL_GIVEN }]);
  });

  it('alarms of the seller’s mistakes, once its event is committed', async () => {
    const at = await verifying();
    const found = taken(
      await at.verify(await at.sign({ ...payloads.tool('completed'), status: 'half-done' })),
    );
    expect(found.event.warnings.map(({ code }) => code)).toContain('unknown_status');
    expect(at.alarms).toEqual([]);
    await found.commit();
    expect(at.alarms.map(({ code, warning }) => [code, warning])).toContainEqual([
      'nonconforming_sender',
      'unknown_status',
    ]);
  });

  it('hooks that throw change nothing', async () => {
    const thrower = () => {
      throw new Error('a hook');
    };
    const at = await verifying({ onOutcome: thrower, onAlarm: thrower, onRefused: thrower });
    const signed = await at.sign();
    expect(said(await taken(await at.verify(signed)).commit())).toBe(ACCEPTED);
    expect(answered(await at.verify(signed))).toBe(REPLAYED);
  });
});

describe('a verifier that stops', () => {
  it('finishes what is under way, takes nothing new, and lets what is verified be committed', async () => {
    const asked = gate();
    const answer = gate();
    const { publicJwk } = await sellerKey();
    const at = await verifying({
      senders: async () => {
        asked.open();
        await answer.opened;
        return [{ agentUrl: AGENT, pins: [publicJwk] }];
      },
    });
    const signed = await at.sign();
    const underWay = at.verify(signed);
    await asked.opened;
    let stopped = false;
    const stopping = at.verifier.stop().then(() => (stopped = true));
    expect(answered(await at.verify(signed))).toBe('unavailable shutting_down 503');
    expect(stopped).toBe(false);
    answer.open();
    const found = taken(await underWay);
    await stopping;
    await at.verifier.stop();
    expect(said(await found.commit())).toBe(ACCEPTED);
    await expect(at.verifier.ready()).rejects.toMatchObject({ code: 'shutting_down' });
    await Promise.all([at.verifier.start(), at.verifier.start()]);
    expect(await at.verifier.ready()).toEqual({ storeId: undefined });
    // It is the same process, which knows what it burned.
    expect(answered(await at.verify(signed))).toBe(REPLAYED);
    expect(answered(await at.verify(await at.sign()))).toBe('verified');
  });

  it('is disposed of by await using', async () => {
    const at = await verifying();
    {
      await using verifier = at.make();
      expect(answered(await at.verify(await at.sign(), verifier))).toBe('verified');
      await at.verifier[Symbol.asyncDispose]();
    }
    expect(answered(await at.verify(await at.sign()))).toBe('unavailable shutting_down 503');
  });
});

describe('options of a verifier', () => {
  const good = { publicUrl: URL_GIVEN, senders: [{ agentUrl: AGENT }] };
  const registrations = createRegistrations({
    store: memoryStore(),
    baseUrl: 'https://buyer.example/webhooks/',
    secrets: ['a-secret-of-more-than-32-characters'],
  });

  it.each([
    ['no options', undefined, 'createVerifier takes an object: { publicUrl, senders }.'],
    ['an option of a receiver', { ...good, store: memoryStore() }, 'options: store is not known'],
    ['a misspelt one', { ...good, maxNonce: 1 }, 'options: maxNonce is not known'],
    ['no publicUrl', { senders: good.senders }, 'publicUrl: missing'],
    ['no senders', { publicUrl: URL_GIVEN }, 'senders: missing'],
    ['http', { ...good, publicUrl: 'http://buyer.example/' }, 'is not https'],
    ['a burn that is none', { ...good, burn: true }, 'burn: must be a function.'],
    [
      'a cap beside burn',
      { ...good, burn: () => true, maxNonces: 5 },
      'maxNonces: has no effect beside burn',
    ],
    ['a number that is none', { ...good, maxBodyBytes: '1' }, 'maxBodyBytes:'],
    ['a hook that is none', { ...good, onAlarm: 'log' }, 'onAlarm: must be a function.'],
    ['a clock in seconds', { ...good, now: () => 1_700_000_000 }, 'now: returned 1700000000'],
    ['a logger that is none', { ...good, logger: {} }, 'logger: has no function debug'],
    ['dns beside fetch', { ...good, advanced: { dns: 'system' }, fetch }, 'dns: has no effect beside fetch'],
    [
      'an advanced option of a receiver',
      { ...good, advanced: { waitMs: 1 } },
      'advanced: waitMs is not known',
    ],
    ['an advanced option in the wrong place', { ...good, dns: 'system' }, 'Write advanced: { dns: … }'],
    [
      'senders of registrations',
      { ...good, senders: registrations.senders },
      'senders: are those of registrations',
    ],
  ])('%s: a ConfigError', (_, options, message) => {
    expect(() => createVerifier(options as never)).toThrow(ConfigError);
    expect(() => createVerifier(options as never)).toThrow(message);
  });

  it('a pin that cannot verify is an alarm of ready, before the first delivery', async () => {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: 'AA', kid: 'seller-1' };
    const at = await verifying({ senders: [{ agentUrl: AGENT, pins: [jwk] }] });
    await at.verifier.ready();
    await at.verifier.ready();
    expect(at.alarms.map(({ code }) => code)).toEqual(['key_document_invalid']);
    expect(at.alarms[0]?.message).toContain(`pins of ${AGENT}`);
  });
});

/** What is answered has one shape, whichever call gives it: this compiles, and nothing else of it is asked. */
export const answerOf = (
  found: Unverified | Committed,
): [number, Readonly<Record<string, string>>, string] => {
  const { status, headers, body } = found.response;
  return [status, headers, body];
};
