import type { JsonObject } from '../../codec/members.ts';

/** One delivery as somebody captured it, and no more than the capture has. */
export interface Capture {
  readonly form: 'raw HTTP' | 'HAR entry' | 'curl command' | 'vector';
  /** Upper case as captured. */
  readonly method: string;
  /** Absolute, or undefined where the capture has only a request target. */
  readonly url: string | undefined;
  /** Request target as captured, e.g. `/hook?x=1`. */
  readonly target: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array;
  /** It was refused by its headers, and its body was not read. */
  readonly bodyless?: true;
  /** Unix ms, where the capture says when. */
  readonly receivedAt?: number;
  /** Of a vector all of it: it says who may send, too. */
  readonly vector?: JsonObject;
  /** What was done to read it that could matter. */
  readonly notes: readonly string[];
}
