// Every identifier in requests and documents that contains the protocol's name, derived from that name
// (verification.md §1.1 to §1.3).
// Used by signing, checks, keys and events; no other file spells such an identifier.

import { ConfigError } from './errors.ts';

/** One name of the protocol, with every identifier that contains it (verification.md §1.2). */
export interface Protocol {
  readonly name: string;
  /** RFC 9421 `tag` parameter, e.g. `proto/webhook-signing/v1`. */
  readonly signatureTag: string;
  /** JWK member that states a key's purpose, e.g. `proto_use`. */
  readonly purposeMember: string;
  /** Values of the purpose member whose keys may sign webhooks if no edition is set (verification.md §2.17). */
  readonly keyPurposes: readonly string[];
  /** Lower-case header names of the legacy HMAC scheme, e.g. `x-proto-signature`. */
  readonly hmacSignatureHeader: string;
  readonly hmacTimestampHeader: string;
  /** Member of a task result that carries the protocol's error, e.g. `proto_error`. */
  readonly errorMember: string;
  /** Member that carries the protocol's version, e.g. `proto_version`. */
  readonly versionMember: string;
  /**
   * The paths of an operator's revocation lists: the list with the protocol's name in its path, e.g.
   * `/.well-known/proto-revocations.json`, and the list for all keys of the operator.
   */
  readonly revocationsPaths: readonly [own: string, governance: string];
}

export const DEFAULT_PROTOCOL = 'proto';

/** The known protocol names: the contract's name, and the name that sellers of AdCP write (verification.md §1.1). */
const KNOWN_NAMES = [DEFAULT_PROTOCOL, 'adcp'] as const;

/** Purposes of keys that may sign webhooks before edition 3.1. */
export const WEBHOOKS_ALONE: readonly string[] = ['webhook-signing'];
/**
 * Purposes of keys that may sign webhooks from edition 3.1 on: the purpose that new signers use, and a deprecated one.
 */
export const EITHER_PURPOSE: readonly string[] = ['webhook-signing', 'request-signing'];

/**
 * The accepted protocol names, the contract's first. They are never mixed: a delivery that uses one name is checked
 * with that name's identifiers only (verification.md §1.3).
 */
export type Protocols = readonly [Protocol, ...Protocol[]];

/**
 * Returns the accepted names: both known ones, or only the given one.
 * @throws ConfigError for text that is not a name.
 */
export function protocolsFor(name?: string): Protocols {
  const [first, ...others] = KNOWN_NAMES;
  return name === undefined ? [protocolFor(first), ...others.map(protocolFor)] : [protocolFor(name)];
}

/** Calls `find` for each accepted protocol name in order, and returns the first result that is not undefined. */
export function firstNamed<T>(
  protocols: Protocols,
  find: (protocol: Protocol) => T | undefined,
): T | undefined {
  for (const protocol of protocols) {
    const found = find(protocol);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Derives every identifier from one name of the protocol.
 * @param name `[a-z][a-z0-9-]*`; the contract's by default.
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
    keyPurposes: name === 'adcp' ? EITHER_PURPOSE : WEBHOOKS_ALONE,
    hmacSignatureHeader: `x-${name}-signature`,
    hmacTimestampHeader: `x-${name}-timestamp`,
    errorMember: `${name}_error`,
    versionMember: `${name}_version`,
    revocationsPaths: [`/.well-known/${name}-revocations.json`, '/.well-known/governance-revocations.json'],
  };
}
