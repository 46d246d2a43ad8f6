/** What became of a document's bytes. `reason` is for the owner's log and quotes nothing of the document. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T; readonly warning?: string }
  | { readonly ok: false; readonly reason: string };

/** How long a copy is used without asking again, in ms: what the server's `Cache-Control` may choose between. */
export interface LifeRules {
  readonly minMs: number;
  readonly maxMs: number;
  /** Where the server says nothing. */
  readonly silentMs: number;
}

/** What a server gave to ask it by whether a copy is still the document (RFC 9110 §8.8). */
export interface Validators {
  readonly etag?: string;
  readonly lastModified?: string;
}

/** One kind of key document: how large it may be, how it is read, how long a copy serves. */
export interface DocumentKind<T> {
  /** For logs and alarms, e.g. `JWKS`. */
  readonly name: string;
  readonly maxBytes: number;
  /** Ms after the fetch began for which a copy may serve while refreshes fail; the cache's own limit where absent. */
  readonly hardLimitMs?: number;
  /** `KEY_DOCUMENT_LIFE` where absent. */
  readonly life?: LifeRules;
  /** Never throws. */
  parse(bytes: Uint8Array, url: string): Parsed<T>;
  /** Why `value`, sound as it looks, must not take the place of the copy in force. Never throws. */
  spoils?(value: T, inForce: T): string | undefined;
  /** Unix ms at which the next copy is due, where the document says so itself; else `Cache-Control` decides. */
  dueAt?(value: T, began: number): number;
  /** A copy takes the place of another, which may be past its hard limit. Never throws. */
  landed?(copy: Copy<T>, before: Copy<T> | undefined): void;
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
  /** Unix ms from which its next use begins a refresh in the background; none where absent. */
  readonly refreshAt?: number;
  readonly validators?: Validators;
  /**
   * The server did not send the document again but said that it had not changed (304), or a cache on the way sent what
   * it held. Good enough to serve on; too little to call a key unknown: validators can be as coarse as a second, caches
   * half an hour behind, and a wrong "unknown" ends an event.
   */
  readonly indirect?: boolean;
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
  /** Whoever asks does so too seldom for the cooldown, and leaves it to others as it is. */
  readonly evenIfCooling?: boolean;
}

/** For whom documents are had, and how far that goes. */
export interface Leave {
  /** Agent URL of the seller whose documents they are. */
  readonly seller: string;
  /** Asked right before a fetch is begun; false: this caller may begin no more. */
  mayFetch(): boolean;
  /** Ms for which this caller still waits. A fetch that it no longer waits for goes on to its own limits. */
  waitMs(): number;
}

/** For whatever no delivery waits for: bounded by the limits of each fetch alone. */
export function freeLeave(seller: string): Leave {
  return { seller, mayFetch: () => true, waitMs: () => Number.POSITIVE_INFINITY };
}
