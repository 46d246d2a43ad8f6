import type { Jwk } from '../../../src/sender/sign.ts';
import type { RetryLimits } from '../../../src/stores/index.ts';
import type { Break } from './breaks.ts';
import type { KindName, QueueLocation } from '../../queues/kinds.ts';
import type { StoreLocation } from './stores.ts';

export type Mode = 'inline' | 'inbox';

/** What a process does. In mode `inline` every one is a door. */
export type Role = 'door' | 'worker' | 'both';

/** What a process is told when it starts. */
export interface ProcessOptions {
  readonly place: StoreLocation;
  readonly mode: Mode;
  readonly role: Role;
  /** File to which its handlers append. */
  readonly ledger: string;
  readonly agentUrl: string;
  readonly publicUrl: string;
  readonly publicJwk: Jwk;
  readonly leaseMs: number;
  readonly waitMs: number;
  /** When an event is DEAD; never, by default. */
  readonly retry?: Pick<RetryLimits, 'attempts' | 'crashes'>;
  readonly breaks?: Break;
  /** It has registrations, and takes what other channels told at `/observe`; a worker is in each, in both modes. */
  readonly observes?: true;
  /** It calls sellers at `/order`, repeats calls, and has registrations in place of the one sender. Observes, too. */
  readonly buys?: Buys;
  /** Its handlers hand events to a queue, as their effect. */
  readonly queue?: QueuePlace;
  /** Folder of another build of the package, which it runs. */
  readonly build?: string;
}

export interface QueuePlace {
  readonly kind: KindName;
  readonly at: QueueLocation;
}

/** How a process makes calls. */
export interface Buys {
  /** Of its webhooks. */
  readonly baseUrl: string;
  /** Until another process repeats a call. */
  readonly callMs: number;
  /** A mistake that the checker is checked with: it calls first, and registers what it has called afterwards. */
  readonly registersLate?: true;
  /** It polls. */
  readonly polls?: Polls;
  /** It moves what sellers were told, at `/moves`. */
  readonly moves?: Moves;
}

/** How a process moves what sellers were told. */
export interface Moves {
  /** File with a `World`, read when a process starts. */
  readonly world: string;
  /** A mistake that the checker is checked with. */
  readonly breaks?: MoveBreak;
}

/** What all processes have, from the next start on. */
export interface World {
  /** By how much their clocks are ahead. Ms. */
  readonly offsetMs: number;
  /** `baseUrl`. */
  readonly bases: readonly string[];
  /** How often a process dies at each point, of all processes together. */
  readonly deaths: number;
  /** The points; absent: all. */
  readonly points?: readonly string[];
}

export type MoveBreak =
  /** A seller is told of renewed credentials before any process can read them. */
  | 'tells-before-durable'
  /** It retires the former URL as soon as an update is acknowledged. */
  | 'retires-early'
  /** What was not answered is sent under another key. */
  | 'second-key'
  /** `submitted` counts as done. */
  | 'trusts-submitted'
  /** An update of an old revision counts as refused. */
  | 'names-conflicts'
  /** Deliveries to the former URL are 404 as soon as an update is acknowledged. */
  | 'forgets-at-ack'
  /** A repeat is not the same byte for byte. */
  | 'other-bytes'
  /** As many updates at once as there are. */
  | 'no-places';

/** How a process polls; times in ms. */
export interface Polls {
  readonly fastMs: number;
  readonly slowMs: number;
  readonly callMs: number;
  readonly perSeller: number;
  /** A mistake that the checker is checked with: no task has a lease, or none is known to have ended. */
  readonly breaks?: 'no-lease' | 'no-end';
}

/** It serves. `port`: 0 where it has no door. */
export interface Ready {
  readonly port: number;
}

/**
 * A moment of a handler: before its effect, inside of `ctx.transaction` once the effect is written, or after the effect.
 * Without a transaction `within` is after the effect.
 */
export type Moment = 'before' | 'within' | 'after';

/** What an event tells its handler to do, in `context`. What befalls its handler does so once. */
export interface Orders {
  readonly inTransaction: boolean;
  readonly takesMs: number;
  /** Goes on until there is a file of this name beside the ledger; where there is a queue, once it has the event. */
  readonly until?: string;
  /** Kills its process on every run, once it has taken its time. */
  readonly isPoison?: boolean;
  /** Throws, once. */
  readonly fails?: Exclude<Moment, 'before'>;
  /** Kills its process, once. */
  readonly dies?: Moment;
  /** Stops its process, once, until it is let go on. */
  readonly pauses?: Exclude<Moment, 'after'>;
}
