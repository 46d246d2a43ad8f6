// Exports names of `src/dev` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { calledSellers } from './called-seller.ts';
export type { CalledSellers, ScenarioKit } from './contract.ts';
export { createDeliveryLog } from './delivery-log.ts';
export { type Dev, type DevOptions, startDev } from './dev.ts';
export { createEvents } from './events.ts';
export { SCENARIOS } from './scenarios.ts';
export type {
  CallEvent,
  CaptureList,
  DeliveryFull,
  DeliveryRow,
  DevError,
  DevEvents,
  DevScheme,
  DevSeller,
  DevState,
  ScenarioRun,
  SendRequest,
  Told,
} from './wire.ts';
