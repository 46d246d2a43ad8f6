import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { authenticateSignature, type SetUpWatch } from '../../../src/auth/for-tests.ts';
import { canonicalTargetUri, type SignatureAlgorithm } from '../../../src/auth/rfc9421/index.ts';
import { Fault } from '../../../src/index.ts';
import type { Candidate } from '../../../src/keys/for-tests.ts';
import { bench, BODY, candidateOf, createSigner, deliveryOf, FIVE } from './support.ts';
import { NONCE, NOW, requestOf, senderAt, signedHeaders, URL_GIVEN } from './support.ts';
import type { Bench, Published, Wire } from './support.ts';

const seller = senderAt('seller.example');
const other = senderAt('other.example');
const signer = createSigner();
const sellerKey = await candidateOf(seller, signer.jwk);
const strangerKey = await candidateOf(seller, createSigner().jwk);
const otherKey = await candidateOf(other, createSigner().jwk);
const wrongPurpose = (sender = seller) =>
  candidateOf(sender, { ...signer.jwk, proto_use: 'request-signing' });

/** Delivers what `signer` signed to a receiver of `senders`, for whom the resolver finds what is `published`. */
async function authenticate(
  at: Bench,
  wire: Wire = {},
  headers: Record<string, string> = {},
  senders = [seller],
) {
  const delivery = deliveryOf({ ...signedHeaders(signer, wire), ...headers }, { rawBody: wire.body ?? BODY });
  return await authenticateSignature(at.context, requestOf(delivery, senders));
}

const found = (...candidates: readonly Candidate[]): Published => ({ found: { candidates } });

/** The other `y` of P-256 that goes with the same `x`. */
function opposite(y: string): string {
  const prime = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n;
  const number = prime - BigInt(`0x${Buffer.from(y, 'base64url').toString('hex')}`);
  return Buffer.from(number.toString(16).padStart(64, '0'), 'hex').toString('base64url');
}

function refused(check: number, code: string) {
  return { kind: 'refused', check, code: `webhook_${code}` };
}

describe('a delivery that passes checks 1 to 11', () => {
  test.each(['ed25519', 'ecdsa-p256-sha256'] as const)(
    '%s: the sender, and the nonce to be claimed',
    async (alg) => {
      const mine = createSigner('k', alg);
      const at = bench(found(await candidateOf(seller, mine.jwk)));
      const delivery = deliveryOf({ ...signedHeaders(mine), host: 'buyer.example' });
      expect(await authenticateSignature(at.context, requestOf(delivery, [seller]))).toEqual({
        kind: 'authentic',
        sender: seller,
        scheme: 'signature',
        target: canonicalTargetUri(URL_GIVEN),
        bodyHash: createHash('sha256').update(BODY).digest('hex'),
        nonce: { keyid: 'k', nonce: NONCE, expiresAtMs: (NOW + 300 + 60) * 1000 },
      });
      expect(at.alarms).toEqual([]);
      expect(at.asked).toEqual(['find']);
    },
  );

  test('padded standard base64 in signature and digest', async () => {
    expect(await authenticate(bench(found(sellerKey)), { encoding: 'base64' })).toMatchObject({
      kind: 'authentic',
    });
  });

  test('additional components are part of the base', async () => {
    const wire = {
      components: ['@scheme', '@path', '@query', '@request-target', 'x-list', ...FIVE],
      headers: { 'x-list': 'a, b' },
    };
    expect(await authenticate(bench(found(sellerKey)), wire)).toMatchObject({ kind: 'authentic' });
    const changed = await authenticate(bench(found(sellerKey)), wire, { 'x-list': 'a, c' });
    expect(changed).toMatchObject(refused(10, 'signature_invalid'));
  });

  test('unknown parameters are part of the base, as received', async () => {
    const wire = { parameters: { extra: '1.50', other: '?1' } };
    expect(await authenticate(bench(found(sellerKey)), wire)).toMatchObject({ kind: 'authentic' });
  });

  test('the method is part of the base', async () => {
    const delivery = deliveryOf(signedHeaders(signer), { method: 'PUT' });
    const result = await authenticateSignature(
      bench(found(sellerKey)).context,
      requestOf(delivery, [seller]),
    );
    expect(result).toMatchObject(refused(10, 'signature_invalid'));
  });

  test('the configured URL is verified, whatever the request target says', async () => {
    const delivery = deliveryOf(signedHeaders(signer), { url: '/behind/a/proxy' });
    const right = await authenticateSignature(bench(found(sellerKey)).context, requestOf(delivery, [seller]));
    expect(right).toMatchObject({ kind: 'authentic' });
    const target = canonicalTargetUri('https://buyer.example/elsewhere');
    const request = requestOf(delivery, [seller], { target });
    expect(await authenticateSignature(bench(found(sellerKey)).context, request)).toMatchObject(
      refused(10, 'signature_invalid'),
    );
  });
});

describe('checks 1 to 6 come before any key', () => {
  test.each([
    [1, { without: ['signature'] }],
    [2, { parameters: { tag: null } }],
    [3, { parameters: { tag: '"x"' } }],
    [4, { parameters: { alg: '"x"' } }],
    [5, { parameters: { created: '1' } }],
    [6, { components: ['@method'] }],
  ])('check %i', async (check, wire: Wire) => {
    const at = bench(found(sellerKey));
    expect(await authenticate(at, wire)).toMatchObject({ kind: 'refused', check });
    expect(at.asked).toEqual([]);
  });
});

describe('clock_skew', () => {
  test.each([
    ['milliseconds', NOW * 1000, 'milliseconds'],
    ['10 min behind', NOW - 600, 'behind'],
    ['10 min ahead', NOW + 600, 'ahead'],
  ])('created %s raises the alarm', async (_, created, word) => {
    const at = bench(found(sellerKey));
    const parameters = { created: String(created), expires: String(created + 300) };
    expect(await authenticate(at, { parameters })).toMatchObject(refused(5, 'signature_window_invalid'));
    expect(at.alarms).toMatchObject([
      { code: 'clock_skew', message: expect.stringContaining(word) as unknown },
    ]);
    expect(at.alarms[0]?.message).toContain('keyid "key-1"');
  });

  test('a window that is only too long, or only just over, raises no clock_skew', async () => {
    const at = bench(found(sellerKey));
    for (const [created, expires] of [
      [NOW, NOW + 301],
      [NOW - 361 + 60, NOW - 61],
    ] as const) {
      const parameters = { created: String(created), expires: String(expires) };
      expect(await authenticate(at, { parameters })).toMatchObject({ check: 5 });
    }
    expect(at.alarms).toEqual([]);
  });
});

describe('check 7: key_unknown', () => {
  test('is 401 when no sender has the keyid and all could be asked', async () => {
    const at = bench();
    expect(await authenticate(at)).toMatchObject(refused(7, 'signature_key_unknown'));
    expect(at.asked).toEqual(['find']);
  });

  test('is 503, never 401, when a sender could not be asked', async () => {
    const at = bench({ found: { undecided: ['https://seller.example/mcp: cooling down'] } });
    const failure = await authenticate(at).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Fault);
    expect(failure).toMatchObject({ code: 'keys_unavailable' });
  });
});

describe('checks 8 and 9', () => {
  test('a key of another purpose is refused after a refetch, as it may have been replaced under its kid', async () => {
    const at = bench(found(await wrongPurpose()));
    expect(await authenticate(at)).toMatchObject(refused(8, 'signature_key_purpose_invalid'));
    expect(at.asked).toEqual(['find', 'findReplaced']);
  });

  test('a purpose that another edition accepts is an alarm that names the edition', async () => {
    const at = bench(found(await wrongPurpose()));
    await authenticate(at);
    expect(at.alarms).toMatchObject([{ code: 'key_purpose_refused', sender: seller.agentUrl }]);
    expect(at.alarms[0]?.message).toContain("edition: '3.1'");
  });

  test('the alarm is not raised when another edition would not help, or another key verified', async () => {
    const named = (changes: object) => candidateOf(seller, { ...signer.jwk, ...changes });
    for (const changes of [
      { proto_use: 'tls' },
      { proto_use: undefined },
      { use: 'enc', proto_use: 'request-signing' },
    ]) {
      const at = bench(found(await named(changes)));
      expect(await authenticate(at)).toMatchObject(refused(8, 'signature_key_purpose_invalid'));
      expect(at.alarms, JSON.stringify(changes)).toEqual([]);
    }
    const at = bench({ ...found(await wrongPurpose()), replaced: { candidates: [sellerKey] } });
    expect(await authenticate(at)).toMatchObject({ kind: 'authentic' });
    expect(at.alarms).toEqual([]);
  });

  test("the purposes are those of the sender's edition", async () => {
    const at = bench(found(await wrongPurpose(senderAt('seller.example', '3.1'))));
    expect(await authenticate(at)).toMatchObject({ kind: 'authentic' });
  });

  test('a key that could not be imported', async () => {
    const broken = { sender: seller, key: { ...sellerKey.key, verifyKey: 'point is not on the curve' } };
    expect(await authenticate(bench(found(broken)))).toMatchObject(
      refused(8, 'signature_key_purpose_invalid'),
    );
  });

  test('a revoked key: 401', async () => {
    const at = bench({ ...found(sellerKey), revocation: { [seller.agentUrl]: () => 'revoked' } });
    expect(await authenticate(at)).toMatchObject(refused(9, 'signature_key_revoked'));
  });

  test.each([
    ['at the second of created', NOW, 9],
    ['before created', NOW - 1, 9],
    ['in the second of created', NOW + 0.4, 9],
    ['after created', NOW + 1, undefined],
  ])('a key with revoked_at %s', async (_when, seconds, check) => {
    const revoked_at = new Date(seconds * 1000).toISOString();
    const key = await candidateOf(seller, { ...signer.jwk, revoked_at });
    const result = await authenticate(bench(found(key)));
    if (check === undefined) expect(result).toMatchObject({ kind: 'authentic' });
    else expect(result).toMatchObject(refused(9, 'signature_key_revoked'));
  });

  test.each(['soon', 1_700_000_000, '2026-02-30T00:00:00Z', '2026-03-01', {}, ''])(
    'a key with a revoked_at that cannot be read is revoked: %j',
    async (revoked_at) => {
      const key = await candidateOf(seller, { ...signer.jwk, revoked_at });
      expect(await authenticate(bench(found(key)))).toMatchObject(refused(9, 'signature_key_revoked'));
    },
  );

  test('a revoked_at of null says nothing; another zone is the same instant', async () => {
    for (const revoked_at of [null, '2126-03-01T14:00:00+02:00'])
      expect(
        await authenticate(bench(found(await candidateOf(seller, { ...signer.jwk, revoked_at })))),
      ).toMatchObject({ kind: 'authentic' });
  });

  test('of one key that several publishers of the sender pin, one revoked_at is enough; of another sender it is nothing', async () => {
    const revoked = { ...signer.jwk, revoked_at: '2000-01-01T00:00:00Z' };
    const own = await candidateOf(seller, revoked);
    expect(await authenticate(bench(found(sellerKey, own)))).toMatchObject(
      refused(9, 'signature_key_revoked'),
    );
    const theirs = await candidateOf(other, revoked);
    const stranger = await candidateOf(seller, { ...createSigner().jwk, revoked_at: '2000-01-01T00:00:00Z' });
    expect(
      await authenticate(bench(found(sellerKey, theirs, stranger)), {}, {}, [seller, other]),
    ).toMatchObject({
      kind: 'authentic',
      sender: seller,
    });
  });

  test.each([
    ['of the P-256 key with the same x and the opposite y is of another key', 'ecdsa-p256-sha256', false],
    ['of an Ed25519 key with a y, which it does not need, is of the same key', 'ed25519', true],
  ] as const)('a revoked_at %s', async (_what, alg, isSame) => {
    const mine = createSigner('key-1', alg);
    const y = opposite((mine.jwk['y'] as string | undefined) ?? 'AQ');
    const own = await candidateOf(seller, mine.jwk);
    const like = await candidateOf(seller, { ...mine.jwk, y, revoked_at: '2000-01-01T00:00:00Z' });
    const delivery = deliveryOf(signedHeaders(mine));
    const result = await authenticateSignature(
      bench(found(own, like)).context,
      requestOf(delivery, [seller]),
    );
    if (isSame) expect(result).toMatchObject(refused(9, 'signature_key_revoked'));
    else expect(result).toMatchObject({ kind: 'authentic' });
  });

  test('a stale list: 503 with the code of the check', async () => {
    const at = bench({ ...found(sellerKey), revocation: { [seller.agentUrl]: () => 'stale' } });
    expect(await authenticate(at)).toMatchObject({
      kind: 'unavailable',
      check: 9,
      code: 'webhook_signature_revocation_stale',
    });
  });

  test('the order: purpose before revocation before signature', async () => {
    const revocation = { [seller.agentUrl]: () => 'revoked' as const };
    const purpose = await authenticate(bench({ ...found(await wrongPurpose()), revocation }));
    expect(purpose).toMatchObject({ check: 8 });
    const revoked = await authenticate(
      bench({ ...found(strangerKey), revocation }),
      {},
      { host: 'evil.example' },
    );
    expect(revoked).toMatchObject({ check: 9 });
  });
});

describe('check 10: the authority, then the signature', () => {
  test('a signature by another key, after the set was fetched again', async () => {
    const at = bench(found(strangerKey));
    expect(await authenticate(at)).toMatchObject(refused(10, 'signature_invalid'));
    expect(at.asked).toEqual(['find', 'findReplaced']);
  });

  test('a key that was replaced under its old kid', async () => {
    const at = bench({ ...found(strangerKey), replaced: { candidates: [sellerKey] } });
    expect(await authenticate(at)).toMatchObject({ kind: 'authentic', sender: seller });
  });

  test('is 503, never 401, when the set could not be fetched again', async () => {
    const undecided = ['seller: connection refused', 'other: timed out', 'seller: connection refused'];
    const at = bench({ ...found(strangerKey), replaced: { undecided } });
    await expect(authenticate(at)).rejects.toMatchObject({
      code: 'keys_unavailable',
      message: expect.stringMatching(/: seller: connection refused; other: timed out$/) as unknown,
    });
  });

  test.each([
    ['nothing', 'sig1=::'],
    ['63 bytes', `sig1=:${Buffer.alloc(63, 1).toString('base64')}:`],
    ['zeros', `sig1=:${Buffer.alloc(64).toString('base64')}:`],
    ['DER', `sig1=:${Buffer.from('3045022100', 'hex').toString('base64')}:`],
  ])('a signature of %s is invalid, not a throw', async (_, signature) => {
    for (const alg of ['ed25519', 'ecdsa-p256-sha256'] as const satisfies readonly SignatureAlgorithm[]) {
      const mine = createSigner('key-1', alg);
      const delivery = deliveryOf({ ...signedHeaders(mine), signature });
      const at = bench(found(await candidateOf(seller, mine.jwk)));
      expect(await authenticateSignature(at.context, requestOf(delivery, [seller]))).toMatchObject(
        refused(10, 'signature_invalid'),
      );
    }
  });

  test('Host differs and the signature verifies: 503, and an alarm that names hostCheck', async () => {
    const at = bench(found(sellerKey));
    expect(await authenticate(at, {}, { host: 'internal:8080' })).toMatchObject({
      kind: 'unavailable',
      check: 10,
      code: 'webhook_target_uri_malformed',
    });
    expect(at.alarms).toMatchObject([
      {
        code: 'host_rewritten',
        sender: seller.agentUrl,
        message: expect.stringContaining("hostCheck: 'off'") as unknown,
      },
    ]);
  });

  test('Host differs and the signature does not verify: 401', async () => {
    const at = bench(found(strangerKey));
    const result = await authenticate(at, {}, { host: 'internal:8080' });
    expect(result).toMatchObject(refused(10, 'target_uri_malformed'));
    expect(at.alarms).toEqual([]);
  });

  test('Host differs and the key was replaced: the new key decides', async () => {
    const at = bench({ ...found(strangerKey), replaced: { candidates: [sellerKey] } });
    expect(await authenticate(at, {}, { host: 'internal' })).toMatchObject({
      kind: 'unavailable',
      check: 10,
    });
  });

  test("Host differs under hostCheck 'off': the configured URL stands alone", async () => {
    const at = bench(found(sellerKey), { hostCheck: 'off' });
    expect(await authenticate(at, {}, { host: 'internal:8080' })).toMatchObject({ kind: 'authentic' });
    expect(at.alarms).toEqual([]);
  });

  test.each(['strict', 'off'] as const)(
    'a contradiction is refused under hostCheck %s, though signed',
    async (hostCheck) => {
      const at = bench(found(sellerKey), { hostCheck });
      const result = await authenticate(at, {}, { ':authority': 'buyer.example', host: 'evil.example' });
      expect(result).toMatchObject(refused(10, 'target_uri_malformed'));
      expect(at.asked).toEqual(['find']);
    },
  );
});

describe('check 11: digest_mismatch', () => {
  test('another body', async () => {
    const delivery = deliveryOf(signedHeaders(signer), { rawBody: Uint8Array.from([...BODY, 32]) });
    const result = await authenticateSignature(
      bench(found(sellerKey)).context,
      requestOf(delivery, [seller]),
    );
    expect(result).toMatchObject(refused(11, 'signature_digest_mismatch'));
  });

  test('a signed digest without a sha-256 member', async () => {
    const wire = { headers: { 'content-digest': 'sha-512=:AAAA:' } };
    expect(await authenticate(bench(found(sellerKey)), wire)).toMatchObject(
      refused(11, 'signature_digest_mismatch'),
    );
  });

  test('comes after the signature', async () => {
    const delivery = deliveryOf(signedHeaders(signer), { rawBody: new Uint8Array() });
    const result = await authenticateSignature(
      bench(found(strangerKey)).context,
      requestOf(delivery, [seller]),
    );
    expect(result).toMatchObject({ check: 10 });
  });

  test('applies to an empty body too', async () => {
    const wire = { body: new Uint8Array() };
    expect(await authenticate(bench(found(sellerKey)), wire)).toMatchObject({ kind: 'authentic' });
  });
});

describe('a kid that two senders publish (verification.md §5.6)', () => {
  const both = [other, seller];
  const deliver = (published: Published) => {
    const at = bench(published);
    return { at, result: authenticate(at, {}, {}, both) };
  };

  test('the one whose key verifies is the sender, whatever their order', async () => {
    for (const candidates of [
      [otherKey, sellerKey],
      [sellerKey, otherKey],
    ]) {
      expect(await deliver({ found: { candidates } }).result).toMatchObject({
        kind: 'authentic',
        sender: seller,
      });
    }
  });

  test.each([
    ['revoked', () => 'revoked' as const],
    ['stale', () => 'stale' as const],
    [
      'not to be had',
      () => {
        throw new Fault('keys_unavailable', 'list');
      },
    ],
  ])('another sender’s list that is %s does not block the one that verifies', async (_, list) => {
    const { result } = deliver({ ...found(otherKey, sellerKey), revocation: { [other.agentUrl]: list } });
    expect(await result).toMatchObject({ kind: 'authentic', sender: seller });
  });

  test("another sender's key of another purpose does not block the one that verifies", async () => {
    const { result } = deliver(found(await wrongPurpose(other), sellerKey));
    expect(await result).toMatchObject({ kind: 'authentic', sender: seller });
  });

  test("another sender's key of another purpose does not shadow one that was not fetched yet", async () => {
    const { result } = deliver({
      ...found(await wrongPurpose(other)),
      replaced: { candidates: [sellerKey] },
    });
    expect(await result).toMatchObject({ kind: 'authentic', sender: seller });
  });

  test('when none verifies the latest failure is reported', async () => {
    const purpose = await wrongPurpose(other);
    const invalid = await deliver(found(purpose, strangerKey)).result;
    expect(invalid).toMatchObject(refused(10, 'signature_invalid'));
    const revocation = { [seller.agentUrl]: () => 'revoked' as const };
    const revoked = await deliver({ ...found(strangerKey, purpose), revocation }).result;
    expect(revoked).toMatchObject(refused(9, 'signature_key_revoked'));
  });

  test('when one could not be decided the answer is 503, never 401', async () => {
    const stale = { [other.agentUrl]: () => 'stale' as const };
    for (const candidates of [
      [otherKey, strangerKey],
      [strangerKey, otherKey],
    ]) {
      expect(await deliver({ found: { candidates }, revocation: stale }).result).toMatchObject({
        kind: 'unavailable',
        code: 'webhook_signature_revocation_stale',
      });
    }
    const open = { candidates: [strangerKey], undecided: ['other: no answer'] };
    await expect(deliver({ found: open }).result).rejects.toMatchObject({ code: 'keys_unavailable' });
    const thrown = new Fault('keys_unavailable', 'list');
    const faulty = {
      [other.agentUrl]: () => {
        throw thrown;
      },
    };
    await expect(deliver({ ...found(otherKey, strangerKey), revocation: faulty }).result).rejects.toBe(
      thrown,
    );
  });

  test("a list is waited for only once the signature has verified under its sender's key", async () => {
    const never = new Promise<never>(() => undefined);
    const silent = { [other.agentUrl]: () => never };
    for (const candidates of [
      [otherKey, sellerKey],
      [sellerKey, otherKey],
    ]) {
      const { result } = deliver({ found: { candidates }, revocation: silent });
      expect(await result).toMatchObject({ kind: 'authentic', sender: seller });
    }
    const forged = await deliver({ ...found(otherKey, strangerKey), revocation: silent }).result;
    expect(forged).toMatchObject(refused(10, 'signature_invalid'));
  });

  test.each([
    ['revoked', refused(9, 'signature_key_revoked')],
    ['stale', { kind: 'unavailable', code: 'webhook_signature_revocation_stale' }],
  ] as const)('and then decides: %s', async (state, expected) => {
    const revocation = { [seller.agentUrl]: () => Promise.resolve(state) };
    expect(await deliver({ ...found(sellerKey), revocation }).result).toMatchObject(expected);
  });

  test('a key that two publish and one has revoked belongs to the other', async () => {
    const { sender: _, ...key } = sellerKey;
    const revocation = { [other.agentUrl]: () => Promise.resolve('revoked' as const) };
    const { result } = deliver({ ...found({ ...key, sender: other }, sellerKey), revocation });
    expect(await result).toMatchObject({ kind: 'authentic', sender: seller });
  });

  test('a list that fails while it is not needed has no effect', async () => {
    const revocation = { [other.agentUrl]: () => Promise.reject(new Fault('keys_unavailable', 'list')) };
    const { result } = deliver({ ...found(otherKey, sellerKey), revocation });
    expect(await result).toMatchObject({ kind: 'authentic', sender: seller });
  });

  test('at a URL of one sender its own list comes first, as check 9 does', async () => {
    const at = bench({
      ...found(strangerKey),
      revocation: { [seller.agentUrl]: async () => 'revoked' as const },
    });
    expect(await authenticate(at, {}, {}, [seller])).toMatchObject(refused(9, 'signature_key_revoked'));
  });

  test('a kid that one of them has revoked is still asked of the other', async () => {
    const { at, result } = deliver({
      ...found(otherKey),
      replaced: { candidates: [sellerKey] },
      revocation: { [other.agentUrl]: () => 'revoked' },
    });
    expect(await result).toMatchObject({ kind: 'authentic', sender: seller });
    expect(at.asked).toEqual(['find', 'findReplaced']);
  });
});

describe('a key that its sender uses for the first time (verification.md §2.36)', () => {
  const both = [other, seller];
  const deliver = (published: Published, wire: Wire = {}) => authenticate(bench(published), wire, {}, both);
  const asked: string[] = [];
  const claimed = (candidate: Candidate, why?: string): Candidate => ({
    ...candidate,
    firstUse: async () => {
      asked.push(candidate.sender.agentUrl);
      return why;
    },
  });
  const unowned = { kind: 'unavailable', code: 'keys_unavailable', check: 7, detail: 'not its own' };

  test('is accepted when it is its own', async () => {
    expect(await deliver(found(claimed(sellerKey)))).toMatchObject({ kind: 'authentic', sender: seller });
  });

  test('is 503 when it is not, or not yet known to be, its own', async () => {
    expect(await deliver(found(claimed(sellerKey, 'not its own')))).toEqual(unowned);
  });

  test('is attributed to another candidate that owns it, in either order', async () => {
    const copied = claimed(await candidateOf(other, signer.jwk), 'not its own');
    for (const own of [sellerKey, claimed(sellerKey)]) {
      for (const candidates of [
        [copied, own],
        [own, copied],
      ]) {
        expect(await deliver(found(...candidates))).toMatchObject({ kind: 'authentic', sender: seller });
      }
    }
    const replaced = { candidates: [claimed(sellerKey)] };
    expect(await deliver({ ...found(copied), replaced })).toMatchObject({
      kind: 'authentic',
      sender: seller,
    });
    expect(await deliver(found(copied, strangerKey))).toEqual(unowned);
    expect(await deliver({ ...found(strangerKey), replaced: { candidates: [copied] } })).toEqual(unowned);
  });

  test('is checked with the others only once a signature of it has verified', async () => {
    asked.length = 0;
    await deliver(found(claimed(strangerKey), claimed(await wrongPurpose(other)), sellerKey));
    await deliver({ ...found(claimed(strangerKey, 'not its own')), replaced: {} });
    expect(asked).toEqual([]);
  });

  test('is not checked with the others by a trial of another URL', async () => {
    asked.length = 0;
    const url = 'https://elsewhere.example/';
    const verified: unknown[] = [];
    const setUp: SetUpWatch = {
      verified: () => undefined,
      unexplained: new Map(),
      outsideWindow: async () => undefined,
      signedElsewhere: async (_request, candidates, verifies) => {
        const target = canonicalTargetUri(url);
        if (typeof target !== 'string') verified.push(await verifies(target, candidates));
        return undefined;
      },
    };
    const at = bench(found(claimed(sellerKey)), { setUp });
    expect(await authenticate(at, { url }, {}, both)).toMatchObject(refused(10, 'signature_invalid'));
    expect(verified[0]).toMatchObject({ sender: seller });
    expect(asked).toEqual([]);
  });
});

describe('any single bit flipped in a signed part is refused', () => {
  const headers = signedHeaders(signer, { components: [...FIVE, 'x-extra'], headers: { 'x-extra': 'a, b' } });
  const at = bench(found(sellerKey));
  const flip = (bytes: Uint8Array, bit: number) =>
    bytes.map((byte, i) => (i === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte));
  const outcome = (lines: Record<string, string>, rawBody: Uint8Array) =>
    authenticateSignature(at.context, requestOf(deliveryOf(lines, { rawBody }), [seller]));

  test('no delivery with a flipped bit is authentic', async () => {
    expect(await outcome(headers, BODY)).toMatchObject({ kind: 'authentic' });
  });

  test.each(['signature-input', 'signature', 'content-digest', 'content-type', 'x-extra'])(
    '%s',
    async (name) => {
      const line = Buffer.from(headers[name] ?? '', 'latin1');
      await fc.assert(
        fc.asyncProperty(fc.nat(line.length * 8 - 1), async (bit) => {
          const value = Buffer.from(flip(line, bit)).toString('latin1');
          // White space at either end is no part of a field's value (RFC 9110 §5.5).
          fc.pre(value.trim() === value);
          expect(await outcome({ ...headers, [name]: value }, BODY)).toMatchObject({ kind: 'refused' });
        }),
        { numRuns: 200 },
      );
    },
  );

  test('the body', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(BODY.length * 8 - 1), async (bit) => {
        expect(await outcome(headers, flip(BODY, bit))).toMatchObject({ check: 11 });
      }),
    );
  });

  test('the target', async () => {
    const path = Buffer.from('hooks/proto');
    await fc.assert(
      fc.asyncProperty(fc.nat(path.length * 8 - 1), async (bit) => {
        const changed = Buffer.from(flip(path, bit)).toString('latin1');
        fc.pre(/^[a-z0-9/]+$/i.test(changed));
        const target = canonicalTargetUri(`https://buyer.example/${changed}?tenant=7`);
        const request = requestOf(deliveryOf(headers), [seller], { target });
        expect(await authenticateSignature(at.context, request)).toMatchObject({ check: 10 });
      }),
    );
  });
});

describe('a delivery that may be for several bases (verification.md §4.16)', () => {
  const OTHER = 'https://other-base.example/hooks/proto';
  const others = (senders = [seller]) => ({
    others: async () => [{ target: canonicalTargetUri(OTHER), senders }],
  });
  const from = (host: string): ReturnType<typeof deliveryOf> =>
    deliveryOf({ ...signedHeaders(signer, { url: OTHER }), host });

  test('a key that was replaced is asked for once, and tried for each', async () => {
    const at = bench(
      { found: { candidates: [strangerKey] }, replaced: { candidates: [sellerKey] } },
      { hostCheck: 'off' },
    );
    const request = requestOf(from('proxy.example'), [seller], others());
    expect(await authenticateSignature(at.context, request)).toMatchObject({
      kind: 'authentic',
      target: { targetUri: OTHER },
    });
    expect(at.asked).toEqual(['find', 'findReplaced']);
  });

  test('senders that differ there are asked for their own keys', async () => {
    const at = bench({ found: { candidates: [otherKey] } }, { hostCheck: 'off' });
    const request = requestOf(from('proxy.example'), [seller], others([other]));
    await authenticateSignature(at.context, request);
    expect(at.asked).toEqual(['find', 'find', 'findReplaced', 'findReplaced']);
  });

  test.each([
    ['its own', 'other-base.example', 'authentic'],
    ['that of the first', 'buyer.example', 'unavailable'],
    ['another', 'proxy.example', 'unavailable'],
  ])('it is judged by the Host of its own URL: %s', async (_, host, kind) => {
    const at = bench({ found: { candidates: [sellerKey] } });
    const request = requestOf(from(host), [seller], others());
    expect(await authenticateSignature(at.context, request)).toMatchObject({ kind });
    expect(at.alarms.map(({ code }) => code)).toEqual(kind === 'authentic' ? [] : ['host_rewritten']);
  });

  test('keys that cannot be had at one of them leave it open', async () => {
    const at = bench({ found: { candidates: [], undecided: ['https://other.example/mcp'] } });
    const request = requestOf(from('other-base.example'), [seller], others([other]));
    await expect(authenticateSignature(at.context, request)).rejects.toMatchObject({
      code: 'keys_unavailable',
    });
  });
});
