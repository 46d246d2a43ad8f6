import type { Outcome } from './outcome.ts';

/**
 * What `receiver.open` gives for headers that passed: the body is wanted. Used once. It ends by itself where it is not
 * ended within `bodyDeadlineMs`.
 */
export interface Ticket {
  readonly kind: 'ticket';
  /**
   * The next bytes of the body, exactly as received; they are kept as they are, so do not change them.
   * @returns false: no more is wanted, `outcome` says why. Stop reading.
   */
  readonly add: (chunk: Uint8Array) => boolean;
  /**
   * The body is whole: check 11, the store, the handler. Gives `outcome`; where it ended before, that one.
   * @throws ConfigError (rejects) after `abort`.
   */
  readonly end: () => Promise<Outcome>;
  /** The sender is gone: nothing is left of it. Behind an end: nothing. */
  readonly abort: () => void;
  /** How it ended, whatever ended it; undefined: aborted. Never rejects. */
  readonly outcome: Promise<Outcome | undefined>;
}
