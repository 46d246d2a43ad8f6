// Makes and sends deliveries of the fake seller, with retries: signed, or with HMAC or a bearer token; correct, or with
// a mistake. It also sends proofs of control (challenges to the owner of the URL). Dev and `send` use parts of it.
import { parseStrictObject } from '../codec/strict-json.ts';
import { onlyKnown } from '../config/validate.ts';
import { createHashes } from '../crypto/hashes.ts';
import { ConfigError } from '../shared/errors.ts';
import type { ChallengeAuth, ChallengeBody } from '../events/challenge.ts';
import { payloadBytes } from '../sender/signed-delivery.ts';
import {
  bearerDelivery,
  type Jwk,
  type PayloadInput,
  signDelivery,
  type SignDeliveryOptions,
  type SignedDelivery,
  signHmac,
} from '../sender/sign.ts';
import type { SenderAuth } from '../config/sender-entry.ts';
import { mistakenBody, mistakenDelivery, type MistakeMeans } from './mistaken-delivery.ts';
import { MISTAKES, WRONG_DELIVERIES } from './mistakes.ts';
import type { Members } from './payloads.ts';
import { requireKeyName, type SellerKeys } from './seller-keys.ts';
import { type Attempt, DEFAULT_RETRY, post, type RetryPolicy, untilFinal } from './seller-post.ts';
import type { DeliverOptions, FakeSeller, FakeSellerOptions } from './seller-types.ts';

function deliveryAuth(auth: SenderAuth | undefined): ChallengeAuth {
  if (!auth) return { mode: 'rfc9421' };
  const [mode, credential] =
    'hmac' in auth ? ['HMAC-SHA256', auth.hmac.secret] : ['Bearer', auth.bearer.token];
  return { mode, credential_fingerprint: createHashes().sha256Hex(new TextEncoder().encode(credential)) };
}

/**
 * Makes the body of a proof of control, which has a fresh challenge for the receiver to echo. `changes` replace members
 * at the top level.
 */
export function sampleChallenge(
  agentUrl: string,
  auth: SenderAuth | undefined,
  changes: Members = {},
): ChallengeBody {
  return {
    type: 'webhook.challenge',
    challenge: `chl_${crypto.randomUUID()}`,
    account_id: 'acc_1',
    subscriber_id: 'sub_1',
    seller_agent_url: agentUrl,
    delivery_auth: deliveryAuth(auth),
    event_types: ['creative.status_changed', 'impairment'],
    ...changes,
  };
}

/** True if the body of an answer is exactly the echo of a challenge: an object with the member `challenge` alone. */
export function echoes(body: string, challenge: unknown): boolean {
  const answer = parseStrictObject(new TextEncoder().encode(body));
  return answer.ok && answer.value['challenge'] === challenge && Object.keys(answer.value).length === 1;
}

/**
 * Makes the method `challenge` of a fake seller. It posts a proof of control (a challenge to the owner of the URL)
 * once. The body is signed by default, even if the seller's deliveries use HMAC or a bearer token.
 */
export function challenging(
  agentUrl: string,
  auth: SenderAuth | undefined,
  { sign, send }: Pick<FakeSeller, 'sign' | 'send'>,
): FakeSeller['challenge'] {
  return async (changes, options = {}) => {
    const body = sampleChallenge(agentUrl, auth, changes);
    const delivery = await sign(body, { auth: 'signature', ...options });
    const attempt = await send(delivery, options);
    const verified = attempt.outcome === 'success' && echoes(attempt.body, body.challenge);
    return { verified, attempt };
  };
}

/** The input from which one delivery is made. */
interface DeliveryRecipe {
  readonly url: string;
  readonly payload: PayloadInput;
  readonly key: Jwk;
  /** The seller's keys, for mistakes that require a certain key. */
  readonly keys?: MistakeMeans['keys'];
  readonly protocol: string;
  readonly now: () => number;
  readonly auth: SenderAuth | undefined;
  readonly mistake: string | undefined;
  readonly sign: Partial<SignDeliveryOptions> | undefined;
}

/** Makes one delivery with a fresh nonce, and with the mistake if one is named. */
export async function makeDelivery(recipe: DeliveryRecipe): Promise<SignedDelivery> {
  const { url, payload, key, keys, protocol, now, auth, mistake, sign } = recipe;
  const row = mistake === undefined ? undefined : WRONG_DELIVERIES[mistake];
  // The body may be malformed on purpose, to see how the receiver answers it.
  const options = { url, body: payloadBytes(payload), protocol, now, allowMalformed: true };
  if (auth) {
    const mistaken = row && mistakenBody(row, options);
    const delivery = legacy(auth, { ...options, body: mistaken?.body ?? options.body });
    return { ...delivery, body: mistaken?.sent(delivery.body) ?? delivery.body };
  }
  const signed: SignDeliveryOptions = { ...options, key, ...sign };
  const delivery = row
    ? await mistakenDelivery(row, signed, { ...(keys && { keys }) })
    : await signDelivery(signed);
  // A mistake may sign a delivery for a wrong URL, but the delivery is still posted to the right one.
  return { ...delivery, url };
}

function legacy(
  auth: SenderAuth,
  { url, body, protocol, now, allowMalformed }: Omit<SignDeliveryOptions, 'key'>,
): SignedDelivery {
  if (!('hmac' in auth)) return bearerDelivery({ url, body, ...auth.bearer });
  const { secret } = auth.hmac;
  return signHmac({
    url,
    body,
    secret,
    protocol,
    ...(now && { now }),
    allowMalformed: allowMalformed === true,
  });
}

/** The options that `deliver` knows. All others are refused: a misspelt `mistake` would send a correct delivery. */
const DELIVER_NAMES: Readonly<Record<keyof DeliverOptions, true>> = {
  url: true,
  to: true,
  key: true,
  auth: true,
  mistake: true,
  sign: true,
  retry: true,
  onAttempt: true,
};

/**
 * Requires that `name` is a mistake in `MISTAKES`. @throws ConfigError for any other name, which would leave the
 * delivery correct.
 */
function requireMistake(name: string | undefined): void {
  if (name === undefined || Object.hasOwn(MISTAKES, name)) return;
  throw new ConfigError(
    `mistake: ${JSON.stringify(name)} is not a name in MISTAKES of proto-webhooks/testing. Expected one, e.g. tampered-body.`,
  );
}

const RETRY_NAMES = Object.fromEntries(Object.keys(DEFAULT_RETRY).map((name) => [name, true as const]));

function policyOf(options: FakeSellerOptions, changes: Partial<RetryPolicy> = {}): RetryPolicy {
  const policy = { ...DEFAULT_RETRY, ...options.retry, ...changes };
  onlyKnown('retry', policy, RETRY_NAMES);
  return policy;
}

/** Makes the methods of a fake seller that sign and send. `options` are the seller's defaults. */
export function deliveries(
  agentUrl: string,
  options: FakeSellerOptions,
  keys: SellerKeys['keys'],
  signal: AbortSignal,
): Pick<FakeSeller, 'sign' | 'send' | 'deliver' | 'challenge'> {
  const { protocol = 'proto', now = Date.now } = options;
  const signFor = async (
    method: 'sign' | 'deliver' | 'challenge',
    payload: PayloadInput,
    overrides: DeliverOptions,
  ): Promise<SignedDelivery> => {
    onlyKnown(method, overrides, DELIVER_NAMES);
    const url = overrides.url ?? options.url;
    if (url === undefined)
      throw new ConfigError(`url: give the webhook URL to createFakeSeller or ${method}.`);
    const auth = overrides.auth === 'signature' ? undefined : (overrides.auth ?? options.auth);
    const { mistake, sign, key: name = 'ed25519' } = overrides;
    requireMistake(mistake);
    if (typeof name === 'string') requireKeyName(name);
    const own = { ed25519: keys.ed25519.privateJwk, p256: keys.p256.privateJwk };
    const key = typeof name === 'string' ? own[name] : name;
    return makeDelivery({ url, payload, key, keys: own, protocol, now, auth, mistake, sign });
  };

  const sign: FakeSeller['sign'] = (payload, overrides = {}) => signFor('sign', payload, overrides);

  const sendOnce = async (
    delivery: SignedDelivery,
    attempt: number,
    overrides: DeliverOptions,
  ): Promise<Attempt> => {
    const to = overrides.to ?? options.to;
    const { timeoutMs } = policyOf(options, overrides.retry);
    const result = await post(delivery, { timeoutMs, signal, ...(to !== undefined && { to }) });
    return { attempt, delivery, ...result };
  };

  const deliver: FakeSeller['deliver'] = async (payload, overrides = {}) => {
    // The payload is serialised once, so that every attempt carries the same bytes.
    const bytes = payloadBytes(payload);
    const attempt = async (number: number): Promise<Attempt> => {
      const made = await sendOnce(await signFor('deliver', bytes, overrides), number, overrides);
      overrides.onAttempt?.(made);
      return made;
    };
    return untilFinal(attempt, policyOf(options, overrides.retry), signal);
  };

  const send: FakeSeller['send'] = async (delivery, overrides = {}) => {
    onlyKnown('send', overrides, DELIVER_NAMES);
    return sendOnce(delivery, 1, overrides);
  };
  return {
    sign,
    send,
    deliver,
    challenge: challenging(agentUrl, options.auth, {
      sign: (body, overrides = {}) => signFor('challenge', body, overrides),
      send,
    }),
  };
}
