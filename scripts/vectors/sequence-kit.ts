import type { Json } from './kit.ts';
import type { Signing } from './sign.ts';

/** One delivery. `payload`s are signed with a nonce of their own at the step's time. */
export interface Step {
  readonly name: string;
  /** Seconds after `reference_now`. 0. */
  readonly at?: number;
  readonly payload?: Json | string;
  readonly signing?: Signing;
  /** Not signed: these headers, and `payload`. */
  readonly unsigned?: Readonly<Record<string, string>>;
  /** The request of an earlier step, byte for byte. */
  readonly again?: string;
  readonly handler?: 'fails';
  readonly expected: Json;
}

export interface Sequence {
  readonly name: string;
  readonly description: string;
  readonly edition?: string;
  readonly receiver?: Json;
  /** Members of the sender, beside its keys. */
  readonly sender?: Json;
  readonly steps: readonly Step[];
}

export const accepted = (more: Json = {}): Json => ({
  status: 200,
  kind: 'accepted',
  code: null,
  handled: true,
  ...more,
});
export const refused = (code: string, check?: number | string): Json => ({
  status: 401,
  kind: 'refused',
  code,
  ...(check !== undefined && { check }),
  www_authenticate: `Signature error="${code}"`,
  handled: false,
});
