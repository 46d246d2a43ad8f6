// One chunk for the code that few deliveries need, loaded on demand by the receiver and the verifier.

/**
 * Exports for rare cases: reports of refusals (after the answer), and trials that look for mistakes in the receiver's
 * own settings. Also proofs of control, tokens in addition to a signature, several base URLs and retired URLs.
 */
export { createBodySampling, noteRefusal } from './refused.ts';
export { retiredOr } from './retired-url.ts';
export { answerChallenge } from '../stages/challenge-stage.ts';
export { clockTrial } from '../stages/clock-trial.ts';
export { checkToken, registeredToken } from '../stages/notification-token.ts';
export { selectAmong } from '../stages/several-bases.ts';
export { refuseStray } from '../stages/stray.ts';
export { reencoded, urlTrial } from '../stages/url-trial.ts';
