// One chunk for the code that few deliveries need, loaded on demand by the receiver and the verifier.

/**
 * Explanations of refusals (after the answer), trials of our own set-up, proofs of control, tokens beside a
 * signature, several bases, retired URLs.
 */
export { createBodySampling, noteRefusal } from './refused.ts';
export { retiredOr } from './retired-url.ts';
export { answerChallenge } from '../stages/challenge-stage.ts';
export { clockTrial } from '../stages/clock-trial.ts';
export { checkToken, registeredToken } from '../stages/notification-token.ts';
export { selectAmong } from '../stages/several-bases.ts';
export { refuseStray } from '../stages/stray.ts';
export { reencoded, urlTrial } from '../stages/url-trial.ts';
