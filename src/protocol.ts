import { ConfigError } from './errors.ts';

/** Every wire identifier that carries the protocol's own name (verification.md §1.2). */
export interface Protocol {
  readonly name: string;
  /** RFC 9421 `tag` parameter, e.g. `proto/webhook-signing/v1`. */
  readonly signatureTag: string;
  /** JWK member that states a key's purpose, e.g. `proto_use`. */
  readonly purposeMember: string;
  /** Lower-case header names of the legacy HMAC scheme, e.g. `x-proto-signature`. */
  readonly hmacSignatureHeader: string;
  readonly hmacTimestampHeader: string;
  /** Member of a task result that carries the protocol's error, e.g. `proto_error`. */
  readonly errorMember: string;
  /** Member that carries the protocol's version, e.g. `proto_version`. */
  readonly versionMember: string;
  /** Path of an operator's revocation list, e.g. `/.well-known/proto-revocations.json`. */
  readonly revocationsPath: string;
}

export const DEFAULT_PROTOCOL = 'proto';

/**
 * Derives every identifier from the protocol's name.
 * @param name `[a-z][a-z0-9-]*`; `proto` unless the sellers use another name.
 * @throws ConfigError for any other name.
 */
export function protocolFor(name: string = DEFAULT_PROTOCOL): Protocol {
  if (typeof name !== 'string' || !/^[a-z][a-z0-9-]*$/.test(name)) {
    throw new ConfigError(
      `protocol: ${JSON.stringify(name)} is not a protocol name. Use lower-case letters, digits and hyphens, starting with a letter, e.g. protocol: 'proto'.`,
    );
  }
  return {
    name,
    signatureTag: `${name}/webhook-signing/v1`,
    purposeMember: `${name}_use`,
    hmacSignatureHeader: `x-${name}-signature`,
    hmacTimestampHeader: `x-${name}-timestamp`,
    errorMember: `${name}_error`,
    versionMember: `${name}_version`,
    revocationsPath: `/.well-known/${name}-revocations.json`,
  };
}
