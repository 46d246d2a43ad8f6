// Checks the options `auth` and `notificationToken` of a sender, and turns them into policies (verification.md §6.2,
// §6.8, §6.9). The code that reads the list of senders calls this. Code that sends webhooks checks its secrets by
// `requireSecret`.
import { isFieldName } from '../auth/rfc9421/signature-base.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { AuthPolicy, NotificationToken, Sender, SenderEntry } from './sender-entry.ts';
import { oneOf, onlyKnown, refuseRepeated } from './validate.ts';

/** The least number of characters of a legacy credential (contract.md §4.3). */
const MIN_SECRET_LENGTH = 32;

/** The least number of characters that sellers accept in `push_notification_config.token`. */
const MIN_TOKEN_LENGTH = 16;

/**
 * Requires a credential, a string of at least `least` characters. @throws ConfigError if it is shorter or no string.
 */
export function requireSecret(
  where: string,
  secret: unknown,
  least: number = MIN_SECRET_LENGTH,
): asserts secret is string {
  if (typeof secret === 'string' && secret.length >= least) return;
  throw new ConfigError(`${where}: must be a string of at least ${least} characters.`);
}

function secrets(
  where: string,
  current: unknown,
  previous: unknown,
  least = MIN_SECRET_LENGTH,
): readonly string[] {
  const credentials = previous === undefined ? [current] : [current, previous];
  return credentials.map((secret) => {
    requireSecret(where, secret, least);
    refuseRepeated(where, secret);
    if (secret !== secret.trim() || /^bearer\s/i.test(secret)) {
      throw new ConfigError(
        `${where}: has white space around it, or the word Bearer in front. Give the credential alone.`,
      );
    }
    return secret;
  });
}

/** Header fields that HTTP, signatures or the other schemes use themselves: none may carry the bearer token. */
const TAKEN = /^(?:authorization|signature|signature-input|content-.*|connection|host|transfer-encoding)$/;

function tokenHeader(where: string, header: unknown, protocols: Protocols): { readonly header?: string } {
  if (header === undefined) return {};
  const name = typeof header === 'string' ? header.toLowerCase() : '';
  if (
    !isFieldName(name) ||
    TAKEN.test(name) ||
    protocols.some((own) => name === own.hmacSignatureHeader || name === own.hmacTimestampHeader)
  ) {
    throw new ConfigError(`${where}.header: must be a field of its own, e.g. 'X-A2A-Notification-Token'.`);
  }
  return { header: name };
}

/**
 * Returns the policy for the option `auth`. @throws ConfigError for anything but one kind of authentication with usable
 * credentials.
 */
export function authPolicy(where: string, auth: Sender['auth'], protocols: Protocols): AuthPolicy {
  if (auth === undefined) return { scheme: 'signature' };
  const names = Object.keys(auth ?? {});
  if (names.length === 1 && 'reports' in auth && auth.reports) {
    const { secret, previousSecret } = auth.reports;
    onlyKnown(`${where}.reports`, auth.reports, { secret: true, previousSecret: true });
    return { scheme: 'signature', reportSecrets: secrets(`${where}.reports`, secret, previousSecret) };
  }
  if (names.length === 1 && 'hmac' in auth && auth.hmac) {
    onlyKnown(`${where}.hmac`, auth.hmac, { secret: true, previousSecret: true });
    return {
      scheme: 'hmac',
      secrets: secrets(`${where}.hmac`, auth.hmac.secret, auth.hmac.previousSecret),
    };
  }
  if (names.length === 1 && 'bearer' in auth && auth.bearer) {
    const { token, previousToken, header } = auth.bearer;
    onlyKnown(`${where}.bearer`, auth.bearer, { token: true, previousToken: true, header: true });
    return {
      scheme: 'bearer',
      tokens: secrets(`${where}.bearer`, token, previousToken),
      ...tokenHeader(`${where}.bearer`, header, protocols),
    };
  }
  throw new ConfigError(
    `${where}: give { hmac: { secret } }, { bearer: { token } } or { reports: { secret } }, or leave auth out for signatures (the default).`,
  );
}

/**
 * Returns the policy for the option `notificationToken`.
 * @throws ConfigError for an unusable token. Also for a sender with a bearer token, which serves the same purpose.
 */
export function tokenPolicy(
  where: string,
  value: NotificationToken | undefined,
  { scheme }: AuthPolicy,
): Pick<SenderEntry, 'notificationToken'> {
  if (value === undefined) return {};
  if (typeof value !== 'object' || value === null || scheme === 'bearer') {
    throw new ConfigError(
      `${where}: must be an object like { token }, for a sender that signs. For another one write auth: { bearer: { token, header } }.`,
    );
  }
  const { token, previousToken, onMismatch } = value;
  onlyKnown(where, value, { token: true, previousToken: true, onMismatch: true });
  return {
    notificationToken: {
      tokens: secrets(where, token, previousToken, MIN_TOKEN_LENGTH),
      onMismatch: oneOf(`${where}.onMismatch`, onMismatch, ['warn', 'refuse']) ?? 'warn',
    },
  };
}
