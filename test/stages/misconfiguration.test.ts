import { describe, expect, test } from 'vitest';
import { authenticateSignature } from '../../src/auth/for-tests.ts';
import { publicUrlOf } from '../../src/config/for-tests.ts';
import type { Candidate } from '../../src/keys/for-tests.ts';
import { clockTrial, createSetUpWatch, reencoded, urlTrial } from '../../src/stages/for-tests.ts';
import {
  bench,
  candidateOf,
  createSigner,
  deliveryOf,
  engine,
  NOW,
  requestOf,
  senderAt,
  signedHeaders,
  type Bench,
  type Published,
} from '../auth/rfc9421/support.ts';

const seller = senderAt('seller.example');
const other = senderAt('other.example');
const signer = createSigner();
const sellerKey = await candidateOf(seller, signer.jwk);

/** What the seller was given, and the seven URLs that differ from it in what a request gives evidence of. */
const GIVEN = 'https://buyer.example:8443/hooks?op=1';
const CONFIGURED = 'https://internal.example/elsewhere';

interface Watch extends Bench {
  /** Signatures verified since it was last asked. */
  readonly verified: () => number;
  readonly deliver: (how?: How) => Promise<string>;
}

interface How {
  /** What is signed. */
  readonly url?: string;
  /** Request target; none: the call with two arguments. */
  readonly target?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly as?: typeof signer;
  /** Ms since the start. */
  readonly at?: number;
}

function watch(
  publicUrl = CONFIGURED,
  published: Published = { found: { candidates: [sellerKey] } },
  allowLoopback = true,
): Watch {
  let verified = 0;
  const counting: typeof engine = {
    ...engine,
    verify: async (...given) => {
      verified += 1;
      // Off the main thread, as the pool does it.
      await new Promise((resolve) => setImmediate(resolve));
      return engine.verify(...given);
    },
  };
  const made = bench(published, { engine: counting });
  const { raiseAlarm } = made.context;
  const base = publicUrlOf(publicUrl, allowLoopback);
  const config = { bases: [base] as const, allowLoopback };
  const parts = { config, raiseAlarm, store: { name: 'test' }, now: () => NOW * 1000 };
  const setUp = createSetUpWatch(parts, async () => ({ clockTrial, reencoded, urlTrial }));
  const target = base.kind === 'exact' ? base.target : undefined;
  const deliver: Watch['deliver'] = async ({ url = GIVEN, as = signer, at = 0, ...how } = {}) => {
    const requestTarget = 'target' in how ? how.target : '/hooks?op=1';
    const signed = signedHeaders(as, { url, ...(how.parameters && { parameters: how.parameters }) });
    const headers = { ...signed, host: 'buyer.example:8443', ...how.headers };
    const delivery = deliveryOf(headers, { url: requestTarget });
    const result = await authenticateSignature(
      { ...made.context, setUp },
      requestOf(delivery, [seller, other], { arrivedAt: NOW * 1000 + at, ...(target && { target }) }),
    );
    return result.kind === 'authentic'
      ? `authentic ${result.sender.agentUrl}`
      : `${result.kind} ${result.code} ${result.check}`;
  };
  const counted = (): number => {
    const count = verified;
    verified = 0;
    return count;
  };
  return { ...made, verified: counted, deliver };
}

const OURS = 'unavailable misconfigured 10';
const INVALID = 'refused webhook_target_uri_malformed 10';
const forger = createSigner();

describe('publicUrl and evidence (verification.md §2.34)', () => {
  test('tries seven forms at most, once a second per sender, and fetches nothing if one verifies', async () => {
    const made = watch();
    expect(await made.deliver({ as: forger })).toBe(INVALID);
    expect(made.verified()).toBe(1 + 7);
    for (let at = 1; at < 1000; at += 100) expect(await made.deliver({ as: forger, at })).toBe(INVALID);
    expect(made.verified()).toBe(10);
    expect(made.asked.filter((name) => name === 'findReplaced')).toHaveLength(11);
    expect(await made.deliver({ at: 1000 })).toBe(OURS);
    expect(made.verified()).toBeLessThanOrEqual(1 + 7);
    expect(made.asked.filter((name) => name === 'findReplaced')).toHaveLength(11);
    expect(made.alarms).toMatchObject([
      { code: 'public_url_mismatch', signedUrl: GIVEN, sender: seller.agentUrl },
    ]);
  });

  test('tries each later delivery in the found form alone', async () => {
    const made = watch();
    expect(await made.deliver()).toBe(OURS);
    made.verified();
    for (let count = 0; count < 5; count += 1) expect(await made.deliver()).toBe(OURS);
    expect(made.verified()).toBe(5 * 2);
    for (let count = 0; count < 5; count += 1)
      expect(await made.deliver({ as: forger, at: 5000 })).toBe(INVALID);
    expect(made.verified()).toBe(5 * 2);
    // Another path of the same form: what is found is not one URL.
    expect(await made.deliver({ url: 'https://buyer.example:8443/hooks?op=2', target: '/hooks?op=2' })).toBe(
      OURS,
    );
  });

  test('tries a burst once, and answers all of it 503', async () => {
    const made = watch();
    const burst = await Promise.all(Array.from({ length: 50 }, () => made.deliver()));
    expect(new Set(burst)).toEqual(new Set([OURS]));
    expect(made.verified()).toBeLessThanOrEqual(7 + 50 * 2);
  });

  test('tries nothing once the sender has verified as configured', async () => {
    const made = watch(GIVEN);
    expect(await made.deliver({ url: CONFIGURED })).toBe('refused webhook_signature_invalid 10');
    expect(await made.deliver({ at: 2000 })).toMatch(/^authentic/);
    made.verified();
    const elsewhere = { url: CONFIGURED, target: '/elsewhere', headers: { host: 'internal.example' } };
    expect(await made.deliver({ ...elsewhere, at: 9000 })).toBe(INVALID);
    expect(made.verified()).toBe(1);
    expect(made.alarms).toEqual([]);
  });

  test('drops a finding when something verifies as configured', async () => {
    const made = watch(GIVEN);
    // Another receiver's delivery, which that one replays here.
    const replayed = { url: CONFIGURED, target: '/elsewhere', headers: { host: 'internal.example' } };
    expect(await made.deliver(replayed)).toBe(OURS);
    expect(await made.deliver()).toMatch(/^authentic/);
    expect(await made.deliver({ ...replayed, at: 5000 })).toBe(INVALID);
  });

  test('goes on when the clock was set back', async () => {
    const made = watch();
    expect(await made.deliver({ as: forger, at: 100_000 })).toBe(INVALID);
    expect(await made.deliver({ at: 0 })).toBe(OURS);
  });

  test.each([
    ['the call with two arguments', { target: undefined, headers: {} }],
    [
      'what X-Forwarded-* says',
      {
        headers: {
          host: 'internal.example',
          'x-forwarded-host': 'buyer.example:8443',
          'x-forwarded-port': '8443',
          forwarded: 'host=buyer.example:8443',
        },
      },
    ],
    ['a Host that is none', { headers: { host: 'buyer.example:8443/hooks?op=1#' } }],
    ['two hosts', { headers: { host: 'buyer.example:8443', ':authority': 'internal.example' } }],
    ['a path that the request does not have', { target: '/' }],
  ] as const)('does not take %s as evidence', async (_, how) => {
    const made = watch();
    expect(await made.deliver(how)).toMatch(/^refused/);
    expect(made.alarms).toEqual([]);
  });

  test.each([
    ['http without allowLoopback', 'http://buyer.example:8443/hooks?op=1', '/hooks?op=1'],
    ['a *', 'https://buyer.example:8443/hooks*', '/hooks*'],
    ['a final /*', 'https://buyer.example:8443/hooks/*', '/hooks/*'],
  ])('does not try what publicUrl cannot be: %s', async (_, url, target) => {
    expect(await watch(CONFIGURED, undefined, false).deliver({ url, target })).toBe(INVALID);
  });

  test('takes no proof from a revoked key or one of another purpose', async () => {
    const revoked = watch(CONFIGURED, {
      found: { candidates: [sellerKey] },
      revocation: { [seller.agentUrl]: () => 'revoked' },
    });
    expect(await revoked.deliver()).toBe('refused webhook_signature_key_revoked 9');
    const stranger = await candidateOf(other, forger.jwk);
    const mixed = watch(CONFIGURED, {
      found: { candidates: [sellerKey, stranger] },
      revocation: { [seller.agentUrl]: () => 'revoked' },
    });
    expect(await mixed.deliver()).toBe(INVALID);
  });

  test('names the signer of several senders with one kid, and tries a key found by the refetch', async () => {
    const stranger = await candidateOf(other, forger.jwk);
    const both = watch(CONFIGURED, { found: { candidates: [stranger, sellerKey] } });
    expect(await both.deliver()).toBe(OURS);
    expect(both.alarms).toMatchObject([{ sender: seller.agentUrl }]);
    const late = watch(CONFIGURED, {
      found: { candidates: [stranger] },
      replaced: { candidates: [sellerKey] },
    });
    expect(await late.deliver()).toBe(OURS);
  });

  test('tries several keys of one sender under one kid alternately', async () => {
    const pinned: Candidate[] = [await candidateOf(seller, forger.jwk), sellerKey];
    const made = watch(CONFIGURED, { found: { candidates: pinned } });
    expect(await made.deliver()).toBe(INVALID);
    expect(made.verified()).toBe(2 + 7);
    expect(await made.deliver({ at: 1000 })).toBe(OURS);
    made.verified();
    expect(await made.deliver({ at: 1001 })).toBe(OURS);
    expect(made.verified()).toBe(2 + 2);
  });
});

describe('the clock (verification.md §2.35)', () => {
  const parameters = { created: String(NOW - 600), expires: String(NOW - 300) };

  test('is checked with deliveries outside their window once a second per sender, and never by forged ones', async () => {
    const made = watch(GIVEN);
    for (let at = 0; at < 3000; at += 100) {
      expect(await made.deliver({ as: forger, at, parameters })).toBe(
        'refused webhook_signature_window_invalid 5',
      );
    }
    expect(made.verified()).toBe(3);
    // Nothing is fetched again for it.
    expect(new Set(made.asked)).toEqual(new Set(['find']));
  });
});
