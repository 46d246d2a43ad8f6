/**
 * One chunk for what is loaded with `start`, or with the first call about subscriptions, moves or URLs: who registers calls alone needs
 * none of it.
 */
export { subscriptionsOf } from './subscriptions/subscriptions.ts';
export { checkedPage, tellDrift } from './told/check.ts';
export { registeredMoves } from './told/registered-moves.ts';
export { retire } from './told/retire.ts';
export { stateOf } from './told/state.ts';
