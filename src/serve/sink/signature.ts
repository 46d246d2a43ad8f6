import { createHmac } from 'node:crypto';
import { ConfigError } from '../../index.ts';

/** Bytes of a secret (serve.md §2.4). */
const [LEAST, MOST] = [24, 64];
const MOST_SECRETS = 2;

const PREFIX = 'whsec_';

const EXAMPLE = `Make one with: node -p "'${PREFIX}' + crypto.randomBytes(32).toString('base64')"`;

/**
 * The bytes of a secret of Standard Webhooks, `whsec_…`.
 * @throws ConfigError where it is none; the message has nothing of it.
 */
export function secretBytes(secret: string): Uint8Array {
  if (!secret.startsWith(PREFIX)) {
    throw new ConfigError(`secret: does not begin with "${PREFIX}". ${EXAMPLE}`);
  }
  const text = secret.slice(PREFIX.length);
  const bytes = Buffer.from(text, 'base64');
  // `Buffer` passes over what is no base64.
  if (bytes.toString('base64') !== text) {
    throw new ConfigError(`secret: is not base64 after "${PREFIX}". ${EXAMPLE}`);
  }
  if (bytes.length < LEAST || bytes.length > MOST) {
    throw new ConfigError(`secret: has ${bytes.length} bytes, not ${LEAST} to ${MOST}. ${EXAMPLE}`);
  }
  return bytes;
}

/** Headers of Standard Webhooks. */
export interface SignedHeaders {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
}

/** Signs one attempt: by every secret, so that the receiver of it may have either. */
export type SignAttempt = (id: string, body: Uint8Array, nowMs: number) => SignedHeaders;

/**
 * By Standard Webhooks (serve.md §2.4).
 * @param secrets one or two, newest first.
 * @throws ConfigError where there are none, too many, or one that is none.
 */
export function signerOf(secrets: readonly string[]): SignAttempt {
  if (secrets.length === 0 || secrets.length > MOST_SECRETS) {
    throw new ConfigError(
      `secrets: there are ${secrets.length}. Give one, or two while one replaces the other.`,
    );
  }
  const keys = secrets.map(secretBytes);
  return (id, body, nowMs) => {
    const timestamp = String(Math.floor(nowMs / 1000));
    const signatures = keys.map((key) => {
      const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
      return `v1,${mac.digest('base64')}`;
    });
    return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
  };
}
