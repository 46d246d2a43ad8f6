import { ConfigError } from './errors.ts';

/** One name of the protocol, with every wire identifier that carries it (verification.md §1.2). */
export interface Protocol {
  readonly name: string;
  /** RFC 9421 `tag` parameter, e.g. `proto/webhook-signing/v1`. */
  readonly signatureTag: string;
  /** JWK member that states a key's purpose, e.g. `proto_use`. */
  readonly purposeMember: string;
  /** Its values whose keys may sign webhooks, where no edition is set (verification.md §2.17). */
  readonly keyPurposes: readonly string[];
  /** Lower-case header names of the legacy HMAC scheme, e.g. `x-proto-signature`. */
  readonly hmacSignatureHeader: string;
  readonly hmacTimestampHeader: string;
  /** Member of a task result that carries the protocol's error, e.g. `proto_error`. */
  readonly errorMember: string;
  /** Member that carries the protocol's version, e.g. `proto_version`. */
  readonly versionMember: string;
  /** Paths of an operator's revocation lists: its own, e.g. `/.well-known/proto-revocations.json`, and the one of all its keys. */
  readonly revocationsPaths: readonly [own: string, governance: string];
}

export const DEFAULT_PROTOCOL = 'proto';

/** The contract's name, and the one that the sellers of AdCP write (verification.md §1.1). */
const KNOWN_NAMES = [DEFAULT_PROTOCOL, 'adcp'] as const;

const WEBHOOKS_ALONE: readonly string[] = ['webhook-signing'];
/** From edition 3.1 on: what new signers use, and what is deprecated. */
const EITHER_PURPOSE: readonly string[] = ['webhook-signing', 'request-signing'];

/**
 * The names that are accepted, the contract's first. Each is whole: what a delivery says by one name is judged by that
 * one's identifiers alone (verification.md §1.3).
 */
export type Protocols = readonly [Protocol, ...Protocol[]];

/**
 * The accepted names: both that are known, or the one that is given.
 * @throws ConfigError for what is not a name.
 */
export function protocolsFor(name?: string): Protocols {
  const [first, ...others] = KNOWN_NAMES;
  return name === undefined ? [protocolFor(first), ...others.map(protocolFor)] : [protocolFor(name)];
}

/** The first that is there, by the name that comes first. */
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

/** Editions of the protocol that sellers in production speak (verification.md §2.17). */
export type EditionName = '3.0' | '3.1' | '3.2' | '3.3';

/** One row of policy: code takes the row and never looks at `name`. */
export interface Edition {
  /** Of the row with no edition: the one whose answers it has. */
  readonly name: EditionName;
  /** Values of `<protocol>_use` whose keys may sign webhooks; absent: those of the protocol's name. */
  readonly keyPurposes?: readonly string[];
  /** How the agent's entry in brand.json is told: by `url` as it is, by that first, or by its canonical form alone. */
  readonly agentMatch: 'exact' | 'exact-first' | 'canonical';
  /**
   * What keys that publishers pin do (verification.md §5.5): `decide` alone; the same, and one that the seller's JWKS lacks
   * is told; `narrow` the JWKS and add nothing.
   */
  readonly publisherPins: 'decide' | 'decide-told' | 'narrow';
  /** The registrable domain is asked for the brand.json that the agent's host answers with 404 (verification.md §5.1). */
  readonly asksRegistrableDomain: boolean;
  /** The brand.json that the seller declares (verification.md §5.1a): beside the one at the well-known path, or in its place. */
  readonly declaredPlace: 'ignored' | 'added' | 'alone';
  /** Same `idempotency_key`, other payload: `duplicate` answers 2xx and drops it, `conflict` answers 409. */
  readonly changedPayload: 'duplicate' | 'conflict';
  /** What "changed" compares: the raw bytes, or the canonical JSON (RFC 8785). */
  readonly fingerprint: 'raw' | 'canonical';
  /** An identical delivery while the first is still in progress: wait for it, or 503 at once. */
  readonly inFlight: 'wait' | 'unavailable';
  /** A second terminal status of a task, under another key: applied, or 409 where it says something else. */
  readonly secondTerminal: 'applied' | 'refused';
  /** `operation_id` of a task envelope: 3.0 does not have the member. */
  readonly operationId: 'optional' | 'expected';
}

type Discovery = 'agentMatch' | 'publisherPins' | 'asksRegistrableDomain' | 'declaredPlace';
type Answers = Omit<Edition, 'name' | 'keyPurposes' | Discovery>;

/** Before edition 3.3. */
const EARLIER: Pick<Edition, Discovery> = {
  agentMatch: 'exact',
  publisherPins: 'decide',
  asksRegistrableDomain: false,
  declaredPlace: 'added',
};

const OLDER: Answers = {
  changedPayload: 'duplicate',
  fingerprint: 'raw',
  inFlight: 'wait',
  secondTerminal: 'applied',
  operationId: 'expected',
};
const NEWER: Answers = {
  changedPayload: 'conflict',
  fingerprint: 'canonical',
  inFlight: 'unavailable',
  secondTerminal: 'refused',
  operationId: 'expected',
};

const EDITIONS: Record<EditionName, Edition & Required<Pick<Edition, 'keyPurposes'>>> = {
  '3.0': {
    name: '3.0',
    keyPurposes: WEBHOOKS_ALONE,
    ...EARLIER,
    declaredPlace: 'ignored',
    ...OLDER,
    operationId: 'optional',
  },
  '3.1': { name: '3.1', keyPurposes: EITHER_PURPOSE, ...EARLIER, ...OLDER },
  '3.2': { name: '3.2', keyPurposes: EITHER_PURPOSE, ...EARLIER, ...NEWER },
  '3.3': {
    name: '3.3',
    keyPurposes: EITHER_PURPOSE,
    agentMatch: 'canonical',
    publisherPins: 'narrow',
    asksRegistrableDomain: true,
    declaredPlace: 'alone',
    ...NEWER,
  },
};

/** All of them, the oldest first. */
export const EDITION_NAMES = Object.keys(EDITIONS) as readonly EditionName[];

/** Nothing is narrowed that nobody asked for; what is answered is the contract's. */
const NO_EDITION: Edition = {
  name: '3.0',
  agentMatch: 'exact-first',
  publisherPins: 'decide-told',
  asksRegistrableDomain: true,
  declaredPlace: 'added',
  ...OLDER,
  operationId: 'optional',
};

/** Values of `<protocol>_use` whose keys may sign webhooks of this name. */
export function purposesOf(
  { keyPurposes }: Pick<Edition, 'keyPurposes'>,
  protocol: Protocol,
): readonly string[] {
  return keyPurposes ?? protocol.keyPurposes;
}

/** The earliest edition in which keys of this purpose may sign webhooks; undefined where none has it. */
export function editionAccepting(purpose: string): EditionName | undefined {
  return Object.values(EDITIONS).find(({ keyPurposes }) => keyPurposes.includes(purpose))?.name;
}

/** Of conformance vectors that name none. */
export const DEFAULT_EDITION: EditionName = '3.0';

/**
 * The row of an edition; without a name the row that accepts what any of them does.
 * @throws ConfigError, naming `where`, for a name that the table lacks.
 */
export function editionFor(name?: EditionName, where = 'edition'): Edition {
  if (name === undefined) return NO_EDITION;
  if (!Object.hasOwn(EDITIONS, name)) {
    const known = Object.keys(EDITIONS).join(', ');
    throw new ConfigError(`${where}: ${JSON.stringify(name)} is not known. Use one of ${known}.`);
  }
  return EDITIONS[name];
}
