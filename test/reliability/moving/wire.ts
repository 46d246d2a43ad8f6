/*
 * What the seller's process is told, and what it writes down. Types alone: it shares no code with the buyer, nor with who judges.
 */

/** How a media buy's seller takes its updates. */
export type Manner =
  | 'done'
  /** Done and answered after a while, within the time that the buyer waits. */
  | 'late'
  /** Done when the buyer waits no longer; its repeat is answered. */
  | 'too-late'
  /** The first request is never answered, and nothing is done. */
  | 'hangs'
  /** The connection of the first request ends before anything is done, or after. */
  | 'ends-before'
  | 'ends-after'
  /** Its revision has become another one. */
  | 'conflict'
  /** The first request is done, without an answer; its repeat is an update of an old revision. */
  | 'forgetful'
  /** A task that is completed: told by a webhook and by polls, or by polls alone. */
  | 'submitted'
  | 'silent'
  /** A task that fails. */
  | 'fails'
  | 'refuses';

/** One of the buyer's sellers. */
export interface MovingAgent {
  /** First segment of its path. */
  readonly name: string;
  /** Of its media buys, in turn. */
  readonly manners: readonly Manner[];
  /** So many events of a channel go to the former URL after an update was acknowledged. */
  readonly lags: number;
  /** The credentials that it uses for all URLs of the buyer: those that it was told last, or first. Absent: each URL has its own. */
  readonly keeps?: 'newest' | 'first';
}

export interface MovingSellerOptions {
  /** 0: any that is free. */
  readonly port: number;
  /** Of its log and its keys. */
  readonly folder: string;
  readonly seed: number;
  readonly agents: readonly MovingAgent[];
  /** The longest time between two events of a media buy, ms. */
  readonly everyMs: number;
  /** The buyer waits so long for an answer. Ms. */
  readonly waitMs: number;
}

export type Channel = 'reports' | 'push';

/** Media buys by agent and number: `buy-17`. */
export interface OfBuy {
  readonly agent: string;
  readonly buy: string;
}

/** A line of the seller's log; `at`: Unix ms on its clock, which is moved with the buyer's. */
export type MovingLine = { readonly at: number } & (
  | ({
      readonly what: 'asked';
      readonly id: string;
      readonly operation: string;
      /** Of an update: its request key, the SHA-256 of all that it says, and the pid of who asks. */
      readonly key?: string;
      readonly says?: string;
      readonly by?: number;
    } & OfBuy)
  | { readonly what: 'answered'; readonly id: string; readonly said: string }
  /** The connection ended without an answer, on either side. */
  | { readonly what: 'gone'; readonly id: string }
  /** It sends to these URLs from now on: by a request, whose update is acknowledged. */
  | ({ readonly what: 'has'; readonly key: string } & OfBuy & { readonly [C in Channel]?: string })
  | ({
      readonly what: 'ended';
      readonly key: string;
      readonly taskId: string;
      readonly status: string;
    } & OfBuy)
  /** An event is begun. `task`: it tells the end of one. `isLast`: it is sent once, whatever it is answered. */
  | ({
      readonly what: 'event';
      readonly key: string;
      readonly url: string;
      readonly task?: string;
      readonly isLast?: boolean;
    } & OfBuy)
  | ({
      readonly what: 'post';
      readonly key: string;
      readonly url: string;
      readonly answered?: number;
    } & OfBuy)
);
