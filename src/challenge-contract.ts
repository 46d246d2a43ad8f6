import type { Logger } from './alarms.ts';
import type { WebhookChallenge } from './events/challenge.ts';

/** What `onChallenge` gets beside the challenge. */
export interface ChallengeContext {
  /** Agent URL of the verified sender. */
  readonly sender: string;
  /** Aborts after 5 s, when the answer comes too late. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Says whether a seller may activate its subscription. Anything but `true` is no. */
export type OnChallenge = (challenge: WebhookChallenge, ctx: ChallengeContext) => boolean | Promise<boolean>;
