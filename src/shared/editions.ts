import { ConfigError } from './errors.ts';
import { EITHER_PURPOSE, type Protocol, WEBHOOKS_ALONE } from './wire-names.ts';

/**
 * An edition of the protocol, by its version. As the option `edition` of a receiver or sender it restricts what is
 * accepted, and decides some answers.
 */
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
