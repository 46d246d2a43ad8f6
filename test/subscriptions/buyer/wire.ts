import type { StoreLocation } from '../../reliability/processes/stores.ts';

/* What a test and the processes of the buyer tell each other. */

/** What a process of the buyer is told at first. */
export interface Buying {
  readonly place: StoreLocation;
  /** Of the front, with the path of webhooks. */
  readonly baseUrl: string;
  /** Of the seller, for a process of its own. */
  readonly token: string;
  /** Of the store's clock, ms. */
  readonly offsetMs: number;
  readonly callMs: number;
}

/** Members of `registrations.subscribe` and `unsubscribe`. */
export interface Wish {
  readonly agentUrl: string;
  readonly account?: Readonly<Record<string, unknown>>;
  readonly ref: string;
  readonly eventTypes?: readonly string[];
  readonly scheme?: 'signature' | 'HMAC-SHA256' | 'Bearer';
  readonly exclusive?: boolean;
  readonly credentials?: Readonly<Record<string, string>>;
}

/** A subscription as `registrations.subscriptions.list` shows it. */
export interface Seen {
  readonly ref: string;
  readonly subscriberId: string;
  readonly eventTypes: readonly string[];
  readonly scheme: string;
  readonly state: 'pending' | 'active' | 'refused' | 'lost' | 'removing';
  readonly reason?: string;
}

export interface AlarmSeen {
  readonly code: string;
  readonly message: string;
}

/** What a handler was given. */
export interface Handled {
  readonly key: string;
  readonly subscription?: {
    readonly subscriberId: string;
    readonly accountId?: string;
    readonly ref?: string;
  };
}

/** What a process is asked to do. */
export type Asked =
  | { readonly what: 'subscribe' | 'unsubscribe'; readonly wish: Wish }
  | { readonly what: 'list' | 'forget'; readonly agentUrl: string }
  /** From now on its steps are counted: it dies at this one, the first is 0. */
  | { readonly what: 'arm'; readonly diesAt: number }
  /** `registrations.start()`, and `stop()`. */
  | { readonly what: 'start' | 'stop' }
  | { readonly what: 'clock'; readonly offsetMs: number }
  /** The steps that were passed since `arm`. */
  | { readonly what: 'passed' }
  | { readonly what: 'alarms' }
  | { readonly what: 'handled' };

export interface Answer {
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly code?: string; readonly message: string };
}

export type Told =
  | { readonly kind: 'ready'; readonly port: number }
  | { readonly kind: 'asked'; readonly id: number; readonly asked: Asked }
  | ({ readonly kind: 'done'; readonly id: number } & Answer);
