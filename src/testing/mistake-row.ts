import type { RefusedCode } from '../shared/codes.ts';

/*
 * The form of a row of the table of wrong deliveries, and what rows are written with. Rows are data: they import nothing
 * that a receiver runs, so that vectors can be made of them (`scripts/vectors`) by a signer that shares nothing with `src`.
 */

/** A place that makes deliveries of the table: `seller` is `createFakeSeller` and what is built on it. */
export type MistakeUse = 'probe' | 'seller' | 'vectors' | 'fuzz';

/** A part of a delivery. Two mistakes of one part may undo each other; those of two parts stand side by side. */
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

/** By the names that `signDelivery` gives. */
export type Headers = Readonly<Record<string, HeaderLines>>;

/** The good delivery that a mistake is put into. */
export interface Given {
  readonly url: string;
  readonly body: Uint8Array;
  /** Of its signature, as a JWK has it. */
  readonly keyid: string;
  readonly nonce: string;
  /** Unix seconds, by the sender's clock. */
  readonly now: number;
  /** Name in wire identifiers, e.g. `proto`. */
  readonly protocol: string;
  /** The receiver's `maxBodyBytes`. */
  readonly maxBodyBytes: number;
  /** One of several forms of the mistake; the first, but where forms are drawn. */
  readonly pick: <T>(forms: readonly T[]) => T;
}

/** The difference from the good delivery; what is absent stays. */
export interface Altered {
  /** The bytes that are signed. */
  readonly body?: string | Uint8Array;
  /** Replace those of the same name before it is signed. */
  readonly headers?: Headers;
  readonly method?: string;
  /** In which signature and digest are written. `base64url`. */
  readonly alphabet?: 'base64';
  /** What is covered; one with parameters is written as on the wire. */
  readonly components?: readonly string[];
  /** Replace parameters by their text on the wire; undefined leaves one out. */
  readonly params?: Readonly<Record<string, string | undefined>>;
  /** Values that are signed in place of those that are sent, by component. */
  readonly signedAs?: Readonly<Record<string, string>>;
  /** Signs with another key of the same algorithm, under the `keyid` of the one that is published. */
  readonly forged?: boolean;
  /** What becomes of the signature's bytes. */
  readonly signature?: (bytes: Uint8Array) => Uint8Array;
  /** What becomes of the headers after it was signed. */
  readonly sent?: (headers: Headers) => Headers;
  /** What becomes of the body after it was signed. */
  readonly sentBody?: (bytes: Uint8Array) => Uint8Array;
}

/** One wrong delivery: what is wrong with it, how it is answered, and how it is made. */
export interface WrongDelivery {
  /** What is sent, as a sentence. */
  readonly sends: string;
  readonly status: 400 | 401 | 405 | 413 | 415;
  /** Of `WWW-Authenticate` for 401, of the body for 400; a 405, 413 or 415 has none in it. */
  readonly code: RefusedCode;
  /** The check of verification.md §2 that finds it; absent for what is found before all of them, or behind. */
  readonly check?: number;
  readonly part: MistakePart;
  /** Who makes it. Absent: everyone. */
  readonly by?: readonly MistakeUse[];
  /** The key that signs. Absent: any that may. */
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

/** A row with these members in place of its own. */
export const but = (row: WrongDelivery, more: Partial<WrongDelivery>): WrongDelivery => ({ ...row, ...more });

/** One more form of what another row has: a receiver is probed with one of them. */
export const detail = (row: WrongDelivery): WrongDelivery => ({ ...row, by: ['seller', 'vectors', 'fuzz'] });

/** A row for the clock, or the lines of a header, that only these two can set. */
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

/** The `pick` of those who draw nothing. */
export const firstOf: Given['pick'] = <T>(forms: readonly T[]): T => forms[0] as T;

/** The difference that a row makes to a good delivery. */
export const alteredBy = ({ made }: WrongDelivery, given: Given): Altered =>
  typeof made === 'function' ? made(given) : made;

/** A mistake in the body that is signed: senders of the legacy schemes make it too. */
export const needsNoSignature = ({ part, check }: WrongDelivery): boolean => part === 'body' && check !== 11;

/** The code that its sender can read in the answer. */
export const toldCode = ({ status, code }: WrongDelivery): RefusedCode | undefined =>
  status === 400 || status === 401 ? code : undefined;
