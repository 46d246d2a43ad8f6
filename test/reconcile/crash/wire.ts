import type { Event } from '../../../src/events/index.ts';
import type { AccountQuery, ReportSchedule } from '../../../src/reconcile/index.ts';
import type { JsonObject } from '../../../src/registrations/index.ts';
import type { StoreLocation } from '../../reliability/processes/stores.ts';
import type { Call } from '../market/traffic.ts';

/* What the market and the processes of the buyer tell each other. */

export const URL = 'https://buyer.example/webhooks/proto';

/** What a process of the buyer is told at first. */
export interface Buying {
  readonly place: StoreLocation;
  readonly mode: 'inline' | 'inbox';
  /** Unix ms. */
  readonly now: number;
  readonly secret: string;
  readonly senders: readonly { readonly agentUrl: string; readonly key: Record<string, unknown> }[];
  readonly buys: readonly { readonly id: string; readonly schedule: ReportSchedule }[];
  /** Of this process among those that were started, from 0. */
  readonly index: number;
  readonly wrongly?: Wrongly;
}

/** Processes that are wrong: the market has to notice each of them. */
export interface Wrongly {
  /** From this one on they end by themselves when they start. */
  readonly endFrom?: number;
  /** They end by themselves when they are asked for the account. */
  readonly endAtAccount?: true;
  /** The store of each is away so many times when it is asked for the account, or for records. */
  readonly away?: number;
}

/** What it is asked to do. */
export type Asked =
  | { readonly what: 'deliver'; readonly body: string; readonly headers: Record<string, string> }
  | { readonly what: 'call'; readonly agentUrl: string; readonly call: Call; readonly answer: object }
  | { readonly what: 'account'; readonly query: AccountQuery }
  /** How many media buys are to be looked at by now. */
  | { readonly what: 'due' }
  | { readonly what: 'list'; readonly state: 'queued' | 'leased' | 'dead' }
  | { readonly what: 'inspect'; readonly agentUrl: string; readonly key: string };

export type Question =
  | {
      readonly what: 'call';
      readonly agentUrl: string;
      readonly operation: string;
      readonly args: JsonObject;
    }
  | { readonly what: 'handle'; readonly event: Event };

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
  /** The code of the error: of a SellerError, or of a fault. */
  readonly code?: string;
}

export type Told =
  | { readonly kind: 'ready' }
  | { readonly kind: 'time'; readonly now: number }
  | { readonly kind: 'question'; readonly id: number; readonly question: Question }
  | ({ readonly kind: 'answer' } & Answer)
  | { readonly kind: 'asked'; readonly id: number; readonly asked: Asked }
  | ({ readonly kind: 'done' } & Answer);
