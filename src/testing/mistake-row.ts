// Defines a row of the table of wrong deliveries, and the helpers that write rows. The files mistakes-*.ts write
// them. Rows are data and import nothing that a receiver runs. So `scripts/vectors` can make vectors of them by a
// signer that shares nothing with `src`.
import type { RefusedCode } from '../shared/codes.ts';

/** A place that makes deliveries of the table: `seller` is `createFakeSeller` and what is built on it. */
export type MistakeUse = 'probe' | 'seller' | 'vectors' | 'fuzz';

/** A part of a delivery. Two mistakes of one part may undo each other; those of two parts do not. */
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

/** A key that a mistake needs: one of that algorithm, published for another purpose, or revoked. */
export type MistakeKey = 'ed25519' | 'p256' | 'other' | 'revoked';

/** A header's value, its lines, or none. */
export type HeaderLines = string | readonly string[] | undefined;

/** Headers of a delivery, by the names that `signDelivery` gives. */
export type Headers = Readonly<Record<string, HeaderLines>>;

/** The good delivery that a mistake is put into. */
export interface Given {
  readonly url: string;
  readonly body: Uint8Array;
  /** The key id of its signature, as a JWK has it. */
  readonly keyid: string;
  readonly nonce: string;
  /** The time of the sender's clock, Unix seconds. */
  readonly now: number;
  /** The name in wire identifiers, e.g. `proto`. */
  readonly protocol: string;
  /** The receiver's `maxBodyBytes`. */
  readonly maxBodyBytes: number;
  /** Chooses one of several forms of the mistake: the first, unless forms are drawn at random. */
  readonly pick: <T>(forms: readonly T[]) => T;
}

/** The difference from the good delivery; an absent member changes nothing. */
export interface Altered {
  /** The bytes that are signed. */
  readonly body?: string | Uint8Array;
  /** Headers that replace those of the same name before it is signed. */
  readonly headers?: Headers;
  readonly method?: string;
  /** The alphabet of signature and digest. Default: `base64url`. */
  readonly alphabet?: 'base64';
  /** The covered components; one with parameters is written as on the wire. */
  readonly components?: readonly string[];
  /** Parameters that replace its own, as text on the wire; undefined omits one. */
  readonly params?: Readonly<Record<string, string | undefined>>;
  /** Values that are signed in place of the sent ones, by component. */
  readonly signedAs?: Readonly<Record<string, string>>;
  /** True to sign with another key of the same algorithm, under the `keyid` of the published one. */
  readonly forged?: boolean;
  /** Changes the bytes of the signature. */
  readonly signature?: (bytes: Uint8Array) => Uint8Array;
  /** Changes the headers after it was signed. */
  readonly sent?: (headers: Headers) => Headers;
  /** Changes the body after it was signed. */
  readonly sentBody?: (bytes: Uint8Array) => Uint8Array;
}

/** One wrong delivery: its mistake, the answer to it, and the way to make it. */
export interface WrongDelivery {
  /** The defect of the delivery, as a sentence. */
  readonly sends: string;
  readonly status: 400 | 401 | 405 | 413 | 415;
  /**
   * The code in `WWW-Authenticate` of a 401, or in the body of a 400. The answers 405, 413 and 415 do not contain it.
   */
  readonly code: RefusedCode;
  /**
   * The check of verification.md §2 that finds it. Absent for a mistake that is found before all checks, or after
   * them.
   */
  readonly check?: number;
  readonly part: MistakePart;
  /** The places that make this delivery. Absent: all. */
  readonly by?: readonly MistakeUse[];
  /** The key that signs. Absent: any key that may sign. */
  readonly key?: MistakeKey;
  readonly made: Altered | ((given: Given) => Altered);
}

export type Rows = Readonly<Record<string, WrongDelivery>>;

/** The components that the profile fixes (contract.md §5.5). */
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

/** Marks a row that needs a clock, or header lines, that only vectors and the fuzzer can set. */
export const narrow = (row: WrongDelivery): WrongDelivery => ({ ...row, by: ['vectors', 'fuzz'] });

type Made = WrongDelivery['made'];

/** A maker of rows that a check refuses with 401. */
export const refusedBy =
  (check: number, code: RefusedCode, part: MistakePart) =>
  (sends: string, made: Made): WrongDelivery => ({ sends, status: 401, code, check, part, made });

/** A header of the signed delivery, rewritten as text. */
export const rewritten =
  (name: string, change: (value: string) => HeaderLines): NonNullable<Altered['sent']> =>
  (headers) => ({ ...headers, [name]: change(String(headers[name])) });

export const dropped =
  (...names: readonly string[]): NonNullable<Altered['sent']> =>
  (headers) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));

/** The byte sequence between the colons, rewritten as text. */
export const bytes =
  (change: (base64: string) => string) =>
  (value: string): string =>
    value.replace(/:([^:]*):/, (_, base64: string) => `:${change(base64)}:`);

export const textOf = (body: Uint8Array): string => new TextDecoder().decode(body);

/** The `pick` of callers that draw nothing. */
export const firstOf: Given['pick'] = <T>(forms: readonly T[]): T => forms[0] as T;

/** The difference that a row makes to a good delivery. */
export const alteredBy = ({ made }: WrongDelivery, given: Given): Altered =>
  typeof made === 'function' ? made(given) : made;

/**
 * True for a mistake in the body that is signed: senders of the legacy schemes make it too. Check 11 compares
 * digests, which they lack.
 */
export const needsNoSignature = ({ part, check }: WrongDelivery): boolean => part === 'body' && check !== 11;

/** The code that its sender can read in the answer. */
export const toldCode = ({ status, code }: WrongDelivery): RefusedCode | undefined =>
  status === 400 || status === 401 ? code : undefined;
