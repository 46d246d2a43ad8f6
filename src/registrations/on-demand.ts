// Exports the parts that are loaded only with `start`, or with the first call about subscriptions, moves or URLs. They
// form one separate chunk, so that a process which only registers calls does not load them.
export { subscriptionsOf } from './subscriptions/subscriptions.ts';
export { checkedPage, tellDrift } from './told/check.ts';
export { registeredMoves } from './told/registered-moves.ts';
export { retire } from './told/retire.ts';
export { stateOf } from './told/state.ts';
