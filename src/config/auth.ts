import { ConfigError } from '../errors.ts';
import type { AuthPolicy, SenderAuth } from '../senders.ts';
import { onlyKnown } from './validate.ts';

/** contract.md §4.3: legacy credentials have at least so many characters. */
const MIN_SECRET_LENGTH = 32;

function secrets(where: string, current: unknown, previous: unknown): readonly string[] {
  const given = previous === undefined ? [current] : [current, previous];
  return given.map((secret) => {
    if (typeof secret !== 'string' || secret.length < MIN_SECRET_LENGTH) {
      throw new ConfigError(`${where}: must be a string of at least ${MIN_SECRET_LENGTH} characters.`);
    }
    if (new Set(secret).size === 1) {
      throw new ConfigError(
        `${where}: is one character, repeated, which anybody can guess. Give a random one, e.g. of crypto.randomUUID().`,
      );
    }
    if (secret !== secret.trim() || /^bearer\s/i.test(secret)) {
      throw new ConfigError(
        `${where}: has white space around it, or the word Bearer in front. Give the credential alone.`,
      );
    }
    return secret;
  });
}

/** How a sender is registered. @throws ConfigError for anything but one legacy scheme with usable credentials. */
export function authPolicy(where: string, auth: SenderAuth | undefined): AuthPolicy {
  if (auth === undefined) return { scheme: 'signature' };
  const names = Object.keys(auth ?? {});
  if (names.length === 1 && 'hmac' in auth && auth.hmac) {
    onlyKnown(`${where}.hmac`, auth.hmac, { secret: true, previousSecret: true });
    return {
      scheme: 'hmac',
      secrets: secrets(`${where}.hmac`, auth.hmac.secret, auth.hmac.previousSecret),
    };
  }
  if (names.length === 1 && 'bearer' in auth && auth.bearer) {
    onlyKnown(`${where}.bearer`, auth.bearer, { token: true, previousToken: true });
    return {
      scheme: 'bearer',
      tokens: secrets(`${where}.bearer`, auth.bearer.token, auth.bearer.previousToken),
    };
  }
  throw new ConfigError(
    `${where}: give { hmac: { secret } } or { bearer: { token } }, or leave auth out for signatures (the default).`,
  );
}
