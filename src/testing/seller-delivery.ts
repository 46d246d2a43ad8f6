import { parseStrictObject } from '../codec/strict-json.ts';
import { oneOf, onlyKnown } from '../config/validate.ts';
import { createHashes } from '../crypto/hashes.ts';
import { ConfigError } from '../errors.ts';
import type { ChallengeAuth, ChallengeBody } from '../events/challenge.ts';
import { payloadBytes } from '../sender/delivery.ts';
import {
  bearerDelivery,
  type Jwk,
  type PayloadInput,
  signDelivery,
  type SignDeliveryOptions,
  type SignedDelivery,
  signHmac,
} from '../sender/sign.ts';
import type { SenderAuth } from '../senders.ts';
import { type Mistake, MISTAKES } from './mistakes.ts';
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

/** The body of a proof of control, with a fresh challenge. `changes` go to its top level. */
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

function echoes(body: string, challenge: unknown): boolean {
  const answer = parseStrictObject(new TextEncoder().encode(body));
  return answer.ok && answer.value['challenge'] === challenge && Object.keys(answer.value).length === 1;
}

/** Always signed, whatever the seller's deliveries are authenticated by, and posted once. */
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

/** Everything that one delivery is made of. */
interface DeliveryRecipe {
  readonly url: string;
  readonly payload: PayloadInput;
  readonly key: Jwk;
  readonly protocol: string;
  readonly now: () => number;
  readonly auth: SenderAuth | undefined;
  readonly mistake: Mistake | undefined;
  readonly sign: Partial<SignDeliveryOptions> | undefined;
}

function authenticated(recipe: DeliveryRecipe, body: Uint8Array): SignedDelivery | Promise<SignedDelivery> {
  const { url, key, protocol, now, auth, mistake, sign } = recipe;
  // What a receiver makes of a body is the receiver's to show.
  const allowMalformed = true;
  if (auth && 'hmac' in auth) {
    return signHmac({ url, body, secret: auth.hmac.secret, protocol, now, allowMalformed });
  }
  if (auth) return bearerDelivery({ url, body, ...auth.bearer });
  const options: SignDeliveryOptions = { url, body, key, protocol, now, allowMalformed };
  const spoilt = mistake && MISTAKES[mistake].sign?.(options);
  return signDelivery({ ...options, ...spoilt, ...sign });
}

/** Makes one delivery, with a fresh nonce, and puts the mistake into it where one is asked for. */
export async function makeDelivery(recipe: DeliveryRecipe): Promise<SignedDelivery> {
  const spoiling = recipe.mistake && MISTAKES[recipe.mistake];
  const bytes = payloadBytes(recipe.payload);
  const signed = await authenticated(recipe, spoiling?.body?.(bytes) ?? bytes);
  // A wrong URL is signed, and not posted to.
  const delivery = { ...signed, url: recipe.url };
  return spoiling?.sent?.(delivery) ?? delivery;
}

/** A misspelt one would send a delivery with nothing wrong with it. */
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

const RETRY_NAMES = Object.fromEntries(Object.keys(DEFAULT_RETRY).map((name) => [name, true as const]));

function policyOf(options: FakeSellerOptions, changes: Partial<RetryPolicy> = {}): RetryPolicy {
  const policy = { ...DEFAULT_RETRY, ...options.retry, ...changes };
  onlyKnown('retry', policy, RETRY_NAMES);
  return policy;
}

/** Signing and sending, with the seller's defaults. */
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
    oneOf('mistake', mistake, Object.keys(MISTAKES) as Mistake[]);
    if (typeof name === 'string') requireKeyName(name);
    const key = typeof name === 'string' ? keys[name].privateJwk : name;
    return makeDelivery({ url, payload, key, protocol, now, auth, mistake, sign });
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
    // Serialised once: every attempt carries the same bytes.
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
