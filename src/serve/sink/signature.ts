// Signs attempts to send an event as Standard Webhooks require (serve.md §2.4). The HTTP sink uses it; the reader of
// the configuration checks secrets with it.
import { createHmac, createSecretKey } from 'node:crypto';
import { ConfigError } from '../../index.ts';

/** The smallest and the largest number of bytes of a secret (serve.md §2.4). */
const [LEAST, MOST] = [24, 64];
const MOST_SECRETS = 2;

const PREFIX = 'whsec_';

const EXAMPLE = `Make one with: node -p "'${PREFIX}' + crypto.randomBytes(32).toString('base64')"`;

/**
 * Returns the bytes of a secret of Standard Webhooks, `whsec_…`.
 * @throws ConfigError if the text is no such secret; the message contains no part of it.
 */
export function secretBytes(secret: string): Uint8Array {
  if (!secret.startsWith(PREFIX)) {
    throw new ConfigError(`secret: does not begin with "${PREFIX}". ${EXAMPLE}`);
  }
  const text = secret.slice(PREFIX.length);
  const bytes = Buffer.from(text, 'base64');
  // `Buffer` ignores characters that are not base64, so the result is compared with the text.
  if (bytes.toString('base64') !== text) {
    throw new ConfigError(`secret: is not base64 after "${PREFIX}". ${EXAMPLE}`);
  }
  if (bytes.length < LEAST || bytes.length > MOST) {
    throw new ConfigError(`secret: has ${bytes.length} bytes, not ${LEAST} to ${MOST}. ${EXAMPLE}`);
  }
  return bytes;
}

/** The headers that Standard Webhooks define. */
export interface SignedHeaders {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
}

/** Signs one attempt with every secret, so that the receiver can verify with any one of them. */
export type SignAttempt = (id: string, body: Uint8Array, nowMs: number) => SignedHeaders;

/**
 * Makes the signer of Standard Webhooks (serve.md §2.4).
 * @param secrets one or two, newest first.
 * @throws ConfigError if there are none or too many, or one is invalid.
 */
export function signerOf(secrets: readonly string[]): SignAttempt {
  if (secrets.length === 0 || secrets.length > MOST_SECRETS) {
    throw new ConfigError(
      `secrets: there are ${secrets.length}. Give one, or two while one replaces the other.`,
    );
  }
  const keys = secrets.map((secret) => createSecretKey(secretBytes(secret)));
  return (id, body, nowMs) => {
    const timestamp = String(Math.floor(nowMs / 1000));
    const signatures = keys.map((key) => {
      const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
      return `v1,${mac.digest('base64')}`;
    });
    return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
  };
}
