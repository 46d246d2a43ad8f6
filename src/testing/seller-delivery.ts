import { payloadBytes } from '../sender/delivery.ts';
import {
  bearerDelivery,
  signDelivery,
  signHmac,
  type Jwk,
  type PayloadInput,
  type SignDeliveryOptions,
  type SignedDelivery,
} from '../sender/sign.ts';
import type { SenderAuth } from '../senders.ts';
import { MISTAKES, type Mistake } from './mistakes.ts';

/** Everything that one delivery is made of. */
export interface DeliveryRecipe {
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

/** Makes one delivery, with a fresh nonce, and spoils it where a mistake is asked for. */
export async function makeDelivery(recipe: DeliveryRecipe): Promise<SignedDelivery> {
  const spoiling = recipe.mistake && MISTAKES[recipe.mistake];
  const bytes = payloadBytes(recipe.payload);
  const signed = await authenticated(recipe, spoiling?.body?.(bytes) ?? bytes);
  // A wrong URL is signed, and not posted to.
  const delivery = { ...signed, url: recipe.url };
  return spoiling?.sent?.(delivery) ?? delivery;
}
