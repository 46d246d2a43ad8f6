// Exports names of `src/registrations` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { answerIn, isContradicted, refusalIn, taskUnknownIn } from './answer.ts';
export { askedReports, spansOf } from './asked-reports.ts';
export { CALLER_OPTIONS, callerOf } from './caller.ts';
export { capabilitiesOf, declaredBy } from './capabilities.ts';
export { argumentsText, checkedRef, contextText } from './answer-json.ts';
export { rowOf, type Stored, storedIn } from './operation.ts';
export { type Operation, type Operations, operationsOf } from './operations.ts';
export { registrationOf } from './registration.ts';
export { registrationsOf } from './registrations.ts';
export { LOOK_MS, type RepeaterNews, repeaterOf } from './retry-loop.ts';
export {
  agentConfiguration,
  agentRequest,
  reportingWebhook,
  requireReporting,
  requireRoom,
  toolArguments,
} from './request.ts';
export { freePlace, takePlace } from './places.ts';
export { ROUTE_KEPT_MS } from './remembered-routes.ts';
export { REFRESH_MS } from './adopted-urls.ts';
export { type Routes, routesOf } from './routes.ts';
export {
  makeRouteToken,
  operationToken,
  type RandomBytes,
  readRouteToken,
  routeTokenOf,
  seal,
  type SealedPlace,
  secretIdOf,
  secretsOf,
  unseal,
} from './secrets.ts';
export { type BuyStream, buyStreamIn } from './streams.ts';
export { type GivenUrl, givenIn } from './told/url-row.ts';
export { isQuiet, type LeavableUrl, leftAt, quietAt } from './told/quiet.ts';
export {
  endedWatch,
  SELLER_ROW_ID,
  WATCHED_TASKS,
  type WatchedTasks,
  watchIn,
  type WithWatchedTasks,
} from './watch-task.ts';
export {
  newSubscriberId,
  setName,
  setRow,
  type Subscription,
  type SubscriptionSet,
} from './subscriptions/set-row.ts';
