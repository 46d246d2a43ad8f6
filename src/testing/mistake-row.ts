// Defines a row of the table of wrong deliveries, and helpers for the files mistakes-*.ts, which have the rows. Rows
// import no code that a receiver runs. So `scripts/vectors` can make conformance test cases of them with a signer that
// shares no code with `src`.
import type { RefusedCode } from '../shared/codes.ts';

/**
 * A program that makes deliveries of the table. `seller` is `createFakeSeller` and what is built on it; `vectors` are
 * the conformance test cases.
 */
export type MistakeUse = 'probe' | 'seller' | 'vectors' | 'fuzz';

/**
 * The part of a delivery that a mistake changes. Two mistakes in the same part may undo each other; mistakes in two
 * parts do not.
 */
export type MistakePart =
  | 'method'
  | 'type'
  | 'encoding'
  | 'body'
  | 'digest'
  | 'key'
  | 'parameters'
  | 'components'
  | 'signature'
  | 'url'
  | 'host'
  | 'scheme';

/**
 * The key that a mistake is signed with: a key of that algorithm, one published for another purpose (`other`), or a
 * revoked one.
 */
export type MistakeKey = 'ed25519' | 'p256' | 'other' | 'revoked';

/** The value of a header, the values of its lines, or undefined if the header is absent. */
export type HeaderLines = string | readonly string[] | undefined;

/** The headers of a delivery, by the names that `signDelivery` writes. */
export type Headers = Readonly<Record<string, HeaderLines>>;

/** The correct delivery into which a mistake is put. */
export interface Given {
  readonly url: string;
  readonly body: Uint8Array;
  /** The id of the key that signs (`kid` of its JWK). */
  readonly keyid: string;
  readonly nonce: string;
  /** The time of the sender's clock, Unix seconds. */
  readonly now: number;
  /** The protocol name in wire identifiers, e.g. `proto`. */
  readonly protocol: string;
  /** The receiver's option `maxBodyBytes`. */
  readonly maxBodyBytes: number;
  /** Chooses one of several forms of the mistake. The fuzzer draws at random; all others take the first. */
  readonly pick: <T>(forms: readonly T[]) => T;
}

/** The changes that turn a correct delivery into a wrong one. An absent member changes nothing. */
export interface Altered {
  /** The body to sign, in place of the correct one. */
  readonly body?: string | Uint8Array;
  /** Headers to set before signing, in place of those with the same names. */
  readonly headers?: Headers;
  readonly method?: string;
  /** The Base64 alphabet of the signature and the digest. Default: `base64url`. */
  readonly alphabet?: 'base64';
  /**
   * The components that the signature covers, e.g. `@method`. A component with parameters is written as on the wire.
   */
  readonly components?: readonly string[];
  /** Signature parameters to replace, as text on the wire. Undefined omits the parameter. */
  readonly params?: Readonly<Record<string, string | undefined>>;
  /** The values to sign, by component, in place of the values that are sent. */
  readonly signedAs?: Readonly<Record<string, string>>;
  /** True to sign with a new key of the same algorithm, under the `keyid` of the published key. */
  readonly forged?: boolean;
  /** Changes the bytes of the finished signature. */
  readonly signature?: (bytes: Uint8Array) => Uint8Array;
  /** Changes the headers after signing. */
  readonly sent?: (headers: Headers) => Headers;
  /** Changes the body after signing. */
  readonly sentBody?: (bytes: Uint8Array) => Uint8Array;
}

/** A row of the table: a mistake, the way to make it, and the answer that a receiver must give. */
export interface WrongDelivery {
  /** A sentence that says what is wrong with the delivery. */
  readonly sends: string;
  readonly status: 400 | 401 | 405 | 413 | 415;
  /**
   * The error code: in `WWW-Authenticate` of a 401, or in the body of a 400. Answers of 405, 413 and 415 do not contain
   * it.
   */
  readonly code: RefusedCode;
  /**
   * The number of the check in verification.md §2 that finds the mistake. Absent if the mistake is found before or
   * after all checks.
   */
  readonly check?: number;
  readonly part: MistakePart;
  /** The programs that can make this delivery. Absent: all. */
  readonly by?: readonly MistakeUse[];
  /** The key to sign with. Absent: any published signing key. */
  readonly key?: MistakeKey;
  readonly made: Altered | ((given: Given) => Altered);
}

export type Rows = Readonly<Record<string, WrongDelivery>>;

/** The components that every signature must cover (contract.md §5.5). */
export const FIVE: readonly string[] = [
  '@method',
  '@target-uri',
  '@authority',
  'content-type',
  'content-digest',
];

/** Returns a row with some of its members replaced by those in `more`. */
export const but = (row: WrongDelivery, more: Partial<WrongDelivery>): WrongDelivery => ({ ...row, ...more });

/** Marks a row as a variant of another row. The probe, which tests a receiver over HTTP, sends only that other row. */
export const detail = (row: WrongDelivery): WrongDelivery => ({ ...row, by: ['seller', 'vectors', 'fuzz'] });

/**
 * Marks a row that needs a certain clock, or several lines of a header. Only the vectors (conformance test cases) and
 * the fuzzer can set these.
 */
export const narrow = (row: WrongDelivery): WrongDelivery => ({ ...row, by: ['vectors', 'fuzz'] });

type Made = WrongDelivery['made'];

/** Makes a helper for rows that a certain check refuses with 401. */
export const refusedBy =
  (check: number, code: RefusedCode, part: MistakePart) =>
  (sends: string, made: Made): WrongDelivery => ({ sends, status: 401, code, check, part, made });

/** Makes a change that rewrites one header of a signed delivery as text. */
export const rewritten =
  (name: string, change: (value: string) => HeaderLines): NonNullable<Altered['sent']> =>
  (headers) => ({ ...headers, [name]: change(String(headers[name])) });

export const dropped =
  (...names: readonly string[]): NonNullable<Altered['sent']> =>
  (headers) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));

/** Makes a function that rewrites the Base64 text between the colons of a header value. */
export const bytes =
  (change: (base64: string) => string) =>
  (value: string): string =>
    value.replace(/:([^:]*):/, (_, base64: string) => `:${change(base64)}:`);

export const textOf = (body: Uint8Array): string => new TextDecoder().decode(body);

/** Takes the first form of a mistake, for programs that do not draw at random. */
export const firstOf: Given['pick'] = <T>(forms: readonly T[]): T => forms[0] as T;

/** Returns the changes that a row makes to a correct delivery. */
export const alteredBy = ({ made }: WrongDelivery, given: Given): Altered =>
  typeof made === 'function' ? made(given) : made;

/**
 * True for a mistake in the body that sellers with HMAC or a bearer token can make too. Mistakes that check 11 finds
 * are excluded: that check compares a digest, and such deliveries have none.
 */
export const needsNoSignature = ({ part, check }: WrongDelivery): boolean => part === 'body' && check !== 11;

/** Returns the error code that the sender can read in the answer. Undefined if the answer contains no code. */
export const toldCode = ({ status, code }: WrongDelivery): RefusedCode | undefined =>
  status === 400 || status === 401 ? code : undefined;
