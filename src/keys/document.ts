/** What became of a document's bytes. `reason` is for the owner's log and quotes nothing of the document. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T; readonly warning?: string }
  | { readonly ok: false; readonly reason: string };

/** One kind of key document: how large it may be, how it is read, how long a copy serves. */
export interface DocumentKind<T> {
  /** For logs and alarms, e.g. `JWKS`. */
  readonly name: string;
  readonly maxBytes: number;
  /** Ms after the fetch began for which a copy may serve while refreshes fail; the cache's own limit where absent. */
  readonly hardLimitMs?: number;
  /** Never throws. */
  parse(bytes: Uint8Array, url: string): Parsed<T>;
  /** Unix ms at which the next copy is due, where the document says so itself; else `Cache-Control` decides. */
  dueAt?(value: T, began: number): number;
}

/** A document as one fetch brought it. */
export interface Copy<T> {
  readonly value: T;
  /** When its fetch began, Unix ms. */
  readonly began: number;
  /** Place of its fetch among all that the cache began: decides "before or after" where the clock cannot. */
  readonly order: number;
  /** Unix ms until which it is used without asking again. */
  readonly freshUntil: number;
  /** Unix ms until which it may serve while refreshes fail. */
  readonly hardUntil: number;
}

/** A usable copy, or why there is none. */
export type Answer<T> =
  { readonly ok: true; readonly copy: Copy<T> } | { readonly ok: false; readonly reason: string };

/** What a caller needs of a copy that is fetched again beyond its own life. */
export interface Wish<T> {
  /** The copy has what is looked for. */
  wanted(copy: Copy<T>): boolean;
  /** The copy is recent enough to say that there is no such thing. */
  decisive(copy: Copy<T>): boolean;
}

/** Asked right before a fetch is begun; false: this caller may begin no more. */
export type MayFetch = () => boolean;
