import type { Entry } from './entries.ts';

/** What happened at the seller, in order. */
export type Line =
  | { readonly what: 'asked'; readonly call: number; readonly operation: string; readonly args: Args }
  | { readonly what: 'answered'; readonly call: number; readonly reply: Reply }
  | { readonly what: 'set'; readonly set: string; readonly entries: readonly Entry[] }
  | {
      readonly what: 'proof';
      readonly set: string;
      readonly subscriberId: string;
      /** 1, or 2 where the first was not answered as it has to be. */
      readonly attempt: number;
      readonly status?: number;
      readonly isProven: boolean;
    }
  | {
      readonly what: 'event';
      readonly set: string;
      readonly subscriberId: string;
      readonly type: string;
      readonly key: string;
      readonly status?: number;
    };

export type Args = Readonly<Record<string, unknown>>;

/** What a call is answered, or that its connection ends. */
export type Reply =
  | { readonly kind: 'result'; readonly value: Record<string, unknown> }
  | { readonly kind: 'error'; readonly error: SaidError }
  | { readonly kind: 'nothing' };

export interface SaidError {
  readonly code: string;
  readonly message: string;
  readonly recovery?: 'transient' | 'correctable' | 'terminal';
  readonly field?: string;
  /** Seconds. */
  readonly retry_after?: number;
}

/** Ends a call with an error of the protocol. */
export class Refused extends Error {
  readonly error: SaidError;

  constructor(code: string, message: string, more: Partial<SaidError> = {}) {
    super(message);
    this.error = { code, message, ...more };
  }
}
