/**
 * One chunk for what few deliveries need: what the owner is told of a refusal (each is answered before), what is tried if
 * it may be our own fault, a proof of control, a token beside a signature; and for several bases, or retired URLs.
 */
export { createBodySampling, noteRefusal } from './refused.ts';
export { retiredOr } from './retired-url.ts';
export { answerChallenge } from '../stages/challenge-stage.ts';
export { clockTrial } from '../stages/clock-trial.ts';
export { checkToken, registeredToken } from '../stages/notification-token.ts';
export { selectAmong } from '../stages/several-bases.ts';
export { refuseStray } from '../stages/stray.ts';
export { reencoded, urlTrial } from '../stages/url-trial.ts';
