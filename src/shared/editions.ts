// The table of protocol editions: each row says what is accepted and how some cases are answered
// (verification.md §2.17).
// Looked up once per sender; code takes the row and never compares names.

import { ConfigError } from './errors.ts';
import { EITHER_PURPOSE, type Protocol, WEBHOOKS_ALONE } from './wire-names.ts';

/**
 * An edition of the protocol, by its version. As the option `edition` of a receiver or sender it restricts what is
 * accepted, and decides some answers.
 */
export type EditionName = '3.0' | '3.1' | '3.2' | '3.3';

/** One row of policy: code takes the row and never looks at `name`. */
export interface Edition {
  /** The name; in the row for no edition, the edition whose answers it has. */
  readonly name: EditionName;
  /**
   * Values of `<protocol>_use` whose keys may sign webhooks; absent if those of the protocol's name count.
   */
  readonly keyPurposes?: readonly string[];
  /**
   * Comparison of the agent's entry in brand.json: by the exact `url`, by that first, or by its canonical
   * form alone.
   */
  readonly agentMatch: 'exact' | 'exact-first' | 'canonical';
  /**
   * Effect of keys that publishers pin (verification.md §5.5). `decide`: they alone count. `decide-told`: the
   * same, and a pinned key that the seller's JWKS lacks is reported. `narrow`: they narrow the JWKS and add
   * nothing.
   */
  readonly publisherPins: 'decide' | 'decide-told' | 'narrow';
  /**
   * True if the registrable domain is asked for a brand.json that the agent's host answers with 404
   * (verification.md §5.1).
   */
  readonly asksRegistrableDomain: boolean;
  /**
   * Effect of a brand.json that the seller declares (verification.md §5.1a): none, in addition to the
   * well-known path, or instead of it.
   */
  readonly declaredPlace: 'ignored' | 'added' | 'alone';
  /**
   * The answer to another payload under the same `idempotency_key`: `duplicate` answers 2xx and drops it,
   * `conflict` answers 409.
   */
  readonly changedPayload: 'duplicate' | 'conflict';
  /** The compared form for "changed": the raw bytes, or the canonical JSON (RFC 8785). */
  readonly fingerprint: 'raw' | 'canonical';
  /** The answer to an identical delivery during the first one: wait for it, or 503 at once. */
  readonly inFlight: 'wait' | 'unavailable';
  /**
   * The fate of a second terminal status of a task, under another key: applied, or 409 if its content
   * differs.
   */
  readonly secondTerminal: 'applied' | 'refused';
  /** The `operation_id` of a task envelope: 3.0 does not have the member. */
  readonly operationId: 'optional' | 'expected';
}

type Discovery = 'agentMatch' | 'publisherPins' | 'asksRegistrableDomain' | 'declaredPlace';
type Answers = Omit<Edition, 'name' | 'keyPurposes' | Discovery>;

/** Discovery before edition 3.3. */
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

/** The row for no edition: it narrows nothing that nobody asked for, and answers as the contract says. */
const NO_EDITION: Edition = {
  name: '3.0',
  agentMatch: 'exact-first',
  publisherPins: 'decide-told',
  asksRegistrableDomain: true,
  declaredPlace: 'added',
  ...OLDER,
  operationId: 'optional',
};

/** Values of `<protocol>_use` whose keys may sign webhooks under this protocol name. */
export function purposesOf(
  { keyPurposes }: Pick<Edition, 'keyPurposes'>,
  protocol: Protocol,
): readonly string[] {
  return keyPurposes ?? protocol.keyPurposes;
}

/** The earliest edition in which keys of this purpose may sign webhooks; undefined if none accepts it. */
export function editionAccepting(purpose: string): EditionName | undefined {
  return Object.values(EDITIONS).find(({ keyPurposes }) => keyPurposes.includes(purpose))?.name;
}

/** The edition of conformance vectors that name none. */
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
