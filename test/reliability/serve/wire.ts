/** What the sink's process is told when it starts. */
export interface SinkOptions {
  /** Of 127.0.0.1, the same after every kill. */
  readonly port: number;
  /** File to which it appends what it was given. */
  readonly journal: string;
  /** `whsec_…` */
  readonly secret: string;
  readonly breaks?: SinkBreak;
}

/** Mistakes of a sink, with which the judge is checked. */
export type SinkBreak =
  /** One event in ten is answered and not written. */
  | 'forgets'
  /** It answers first, and writes a moment later: what a kill meets in between is gone. */
  | 'answers-first'
  /** Of what comes together it writes the last one first, once it has answered. */
  | 'writes-backwards';

/** It listens. */
export interface SinkReady {
  readonly port: number;
}

/** An event that verified, as the sink has it on disk. */
export interface Arrival {
  readonly what: 'arrival';
  /** The delivery id. */
  readonly id: string;
  /** The idempotency key. */
  readonly key: string;
  readonly type: string;
  /** Of a status: its task. */
  readonly subject?: string;
  /** Of a status: when it was reached, ISO 8601. */
  readonly time?: string;
  /** SHA-256 of `data`. */
  readonly dataHash: string;
  /** Unix ms on the sink's clock. */
  readonly arrivedAt: number;
  readonly pid: number;
}

/** A request that did not verify, or is no event. */
export interface Refused {
  readonly what: 'refused';
  readonly error: string;
  readonly pid: number;
}

export type JournalLine = Arrival | Refused;
