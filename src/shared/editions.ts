// The table of protocol editions: each row states what is accepted, and how some cases are answered
// (verification.md §2.17). Looked up once per sender; other code uses the row and never compares names.

import { ConfigError } from './errors.ts';
import { EITHER_PURPOSE, type Protocol, WEBHOOKS_ALONE } from './wire-names.ts';

/**
 * An edition of the protocol, by its version. As the option `edition` of a receiver or sender it restricts what is
 * accepted, and decides some answers.
 */
export type EditionName = '3.0' | '3.1' | '3.2' | '3.3';

/**
 * An edition of the protocol: one row of the table of editions. Other code reads the rules in it, and never compares
 * its `name`.
 */
export interface Edition {
  /** The name of the edition. In the row `NO_EDITION`, it is the edition whose answers that row gives. */
  readonly name: EditionName;
  /** Values of `<protocol>_use` whose keys may sign webhooks. If absent, `Protocol.keyPurposes` is used. */
  readonly keyPurposes?: readonly string[];
  /**
   * The way to find the agent's entry in brand.json. `exact`: by the exact `url`. `exact-first`: by the exact `url`, or
   * else by its canonical form. `canonical`: by the canonical form alone.
   */
  readonly agentMatch: 'exact' | 'exact-first' | 'canonical';
  /**
   * Effect of keys that publishers pin (verification.md §5.5). `decide`: only pinned keys are used. `decide-told`:
   * the same, and a pinned key that the seller's JWKS lacks raises an alarm. `narrow`: pins restrict the JWKS and
   * add no key.
   */
  readonly publisherPins: 'decide' | 'decide-told' | 'narrow';
  /**
   * True if the registrable domain's brand.json is fetched when the agent's host answers 404 (verification.md
   * §5.1).
   */
  readonly asksRegistrableDomain: boolean;
  /**
   * Effect of a brand.json URL that the seller declares (verification.md §5.1a). It is ignored, used in addition to
   * the well-known URL, or used instead of it.
   */
  readonly declaredPlace: 'ignored' | 'added' | 'alone';
  /**
   * The answer to a different payload with the same `idempotency_key`. `duplicate` answers 2xx and drops the new
   * payload; `conflict` answers 409.
   */
  readonly changedPayload: 'duplicate' | 'conflict';
  /** The form in which payloads are compared for a change: the raw bytes, or the canonical JSON (RFC 8785). */
  readonly fingerprint: 'raw' | 'canonical';
  /** The answer to an identical delivery while the first one is handled: the first one's answer, or immediately 503. */
  readonly inFlight: 'wait' | 'unavailable';
  /**
   * The treatment of a second terminal status of a task, under another idempotency key. It is applied, or answered 409
   * if its content differs.
   */
  readonly secondTerminal: 'applied' | 'refused';
  /** Presence of `operation_id` in a task envelope. Edition 3.0 does not define this member. */
  readonly operationId: 'optional' | 'expected';
}

type Discovery = 'agentMatch' | 'publisherPins' | 'asksRegistrableDomain' | 'declaredPlace';
type Answers = Omit<Edition, 'name' | 'keyPurposes' | Discovery>;

/** The rules for finding keys before edition 3.3. */
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

/** All editions, the oldest first. */
export const EDITION_NAMES = Object.keys(EDITIONS) as readonly EditionName[];

/**
 * The row for receivers and senders without an edition. It accepts whatever some edition accepts, and answers as
 * edition 3.0 does.
 */
const NO_EDITION: Edition = {
  name: '3.0',
  agentMatch: 'exact-first',
  publisherPins: 'decide-told',
  asksRegistrableDomain: true,
  declaredPlace: 'added',
  ...OLDER,
  operationId: 'optional',
};

/** Returns the values of `<protocol>_use` whose keys may sign webhooks under this protocol name. */
export function purposesOf(
  { keyPurposes }: Pick<Edition, 'keyPurposes'>,
  protocol: Protocol,
): readonly string[] {
  return keyPurposes ?? protocol.keyPurposes;
}

/**
 * Returns the earliest edition in which keys of this purpose may sign webhooks; undefined if no edition accepts the
 * purpose.
 */
export function editionAccepting(purpose: string): EditionName | undefined {
  return Object.values(EDITIONS).find(({ keyPurposes }) => keyPurposes.includes(purpose))?.name;
}

/** The edition of conformance vectors that do not name one. */
export const DEFAULT_EDITION: EditionName = '3.0';

/**
 * Returns the row of an edition. Without a name, returns the row that accepts whatever any edition accepts.
 * @throws ConfigError, naming `where`, for an unknown name.
 */
export function editionFor(name?: EditionName, where = 'edition'): Edition {
  if (name === undefined) return NO_EDITION;
  if (!Object.hasOwn(EDITIONS, name)) {
    const known = Object.keys(EDITIONS).join(', ');
    throw new ConfigError(`${where}: ${JSON.stringify(name)} is not known. Use one of ${known}.`);
  }
  return EDITIONS[name];
}
