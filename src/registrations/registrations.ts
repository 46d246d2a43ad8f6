// Puts registrations together: checks the options, makes each part, and returns all methods as one object.
// `createRegistrations` calls it. The code for subscriptions, and for moves and checks of URLs, is loaded when first
// used.
import { flag, MAX_TIMER_MS, oneOf, onlyKnown, requireLogger, wholeNumber } from '../config/validate.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Observe } from '../events/observation.ts';
import { type EventRegistrations, OF_REGISTRATIONS } from '../events/event-registration.ts';
import { alarmRaiser, consoleLogger, safeLogger } from '../shared/logging.ts';
import type { Readiness } from '../config/receiver-options.ts';
import type { Sender } from '../config/sender-entry.ts';
import { CAPABILITIES, capabilitiesOf, type WithCapabilities } from './capabilities.ts';
import { adoptIn, type Adoption, requireAdoption } from './adopt.ts';
import { baseUrlsOf, publicUrlsOf } from './base-urls.ts';
import {
  givenCaller,
  requireAgentUrl,
  requireCaller,
  requireName,
  requireQuery,
  requireReportingAlone,
  requireRequest,
  requireSellerAlone,
} from './option-checks.ts';
import type { Given, JsonObject } from './answer-json.ts';
import { ofEvent, tokenOfEvent } from './of-event.ts';
import type { OperationName, OperationSeen } from './operation.ts';
import type { OperationPage, OperationQuery } from './list-operations.ts';
import type { Operation, OperationRequest } from './operations.ts';
import { operationsOf } from './operations.ts';
import {
  type AnyonesRegistration,
  type Registration,
  type RegistrationContext,
  registrationOf,
} from './registration.ts';
import { requireTheirs } from './receiver-link.ts';
import { type Reporting, reportingWebhook, requireReporting } from './request.ts';
import {
  REGISTRATIONS_OPTIONS,
  registrationsIn,
  type RegistrationsOptions,
  type RegistrationsParts,
} from './registrations-options.ts';
import { secretsOf } from './secrets.ts';
import { subscriptionAnswers } from './subscriptions/receiver-side.ts';
import type {
  SubscriptionPage,
  SubscriptionQuery,
  SubscriptionRemoval,
  SubscriptionRequest,
  SubscriptionSeen,
} from './subscriptions/subscription-types.ts';
import { type Damage, deleteRows } from './operation-rows.ts';
import { requestInvalid, type Seller, sellerIn, signsReports } from './seller.ts';
import { countingRefused } from './refused-answers.ts';
import { routesOf } from './routes.ts';
import { teller } from './repeater-news.ts';
import { repeaterOf } from './retry-loop.ts';
import { RENEW_AFTER_MS } from './told/own-routes.ts';
import type { RegistrationMoves } from './told/move-types.ts';
import { WATCHED_TASKS, type WithWatchedTasks } from './watch-task.ts';
import type { RegistrationUrls } from './told/state-types.ts';
import { urlsOf } from './told/urls.ts';
import { once } from '../shared/single-flight.ts';
import { startStop } from '../shared/start-stop.ts';
import { tryFor } from '../shared/time-limits.ts';
import { toldIdentity } from '../stores/identity.ts';

/** Registers your calls to sellers, so that each webhook finds its call. Made by `createRegistrations`. */
export interface Registrations extends EventRegistrations, RegistrationMoves, RegistrationUrls {
  /** The value for `ReceiverOptions.publicUrl`: everything below `baseUrl`; a list if `baseUrl` has several URLs. */
  readonly publicUrl: string | readonly string[];
  /** For `ReceiverOptions.senders`: returns the seller of a URL. Rejects with a Fault if the store is unavailable. */
  readonly senders: (url: URL) => Sender[] | Promise<Sender[]>;
  /**
   * Registers an operation (a call to a seller) before the call is made. The operation is durable when the promise
   * resolves.
   * @throws RegistrationError (rejects)
   */
  readonly create: (request: Given<OperationRequest>) => Promise<Registration>;
  /**
   * Returns the `reporting_webhook` for `create_media_buy`, with a URL of yours that is given to this seller alone. It
   * contains HMAC credentials, because every edition before 3.3 requires credentials. Reports are then accepted with
   * HMAC or with a signature. If the seller's edition, given or declared, is 3.3 or later, no credentials are needed
   * and none are contained.
   */
  readonly reportingWebhook: (seller: Seller, reporting: Reporting) => Promise<JsonObject>;
  /**
   * Takes over what a seller already has: a URL that it sends to, a running task, or a running media buy.
   * @returns the operation that the task or the media buy now has; undefined for a URL alone.
   * @throws RegistrationError; ConfigError for a URL that cannot be adopted.
   */
  readonly adopt: (adoption: Adoption) => Promise<OperationSeen | undefined>;
  /**
   * Deletes all that is stored about a seller: its URLs, operations, polled tasks and subscriptions. The seller is not
   * notified, so unsubscribe first.
   */
  readonly forget: (agentUrl: string) => Promise<void>;
  /** Returns one operation; undefined if it is unknown. */
  readonly get: (of: OperationName) => Promise<OperationSeen | undefined>;
  /** Returns a page of operations, ordered by agent URL and operation id. */
  readonly list: (query?: OperationQuery) => Promise<OperationPage>;
  /**
   * Subscribes to notifications that no call registers: those of an account, or of the whole agent (`exclusive: true`).
   * It first reads the seller's set (list) of subscriptions, and keeps the entries of other subscribers. If a
   * subscription with the same `ref` and event types exists, the set is sent only if the seller lacks that
   * subscription. Other event types change the subscription.
   *
   * The subscription is durable before it is sent. If a process stops in between, `start` in any process finishes the
   * work.
   * @returns the subscription. `pending`: the seller has not confirmed the subscription yet, and `start` asks again.
   * @throws RegistrationError; SellerError if the seller refused the subscription; any error of the call.
   */
  readonly subscribe: (request: Given<SubscriptionRequest>) => Promise<SubscriptionSeen>;
  /** Removes a subscription. Does nothing if the subscription is unknown. @throws as `subscribe` */
  readonly unsubscribe: (of: Given<SubscriptionRemoval>) => Promise<void>;
  readonly subscriptions: {
    /** Returns a page of subscriptions. */
    readonly list: (query?: SubscriptionQuery) => Promise<SubscriptionPage>;
  };
  /**
   * Starts the background work, in any number of processes:
   *
   * - Repeats calls that were not settled, with the same bytes and `idempotency_key`. A call that is refused or cannot
   *   be repeated raises an alarm.
   * - Finishes pending changes of subscriptions, and checks all subscriptions once a day.
   * - Makes the calls of `apply`. Retires URLs with renewed credentials once no delivery has come to them for some
   *   time.
   *
   * It resolves when the work has begun. If the work already runs, a further call has no effect. You may call `start`
   * again after `stop`.
   * @throws ConfigError (rejects) without `call`, or if no receiver of this process has these registrations.
   */
  readonly start: () => Promise<void>;
  /**
   * Stops the work of `start`, and resolves when the running calls have ended. A further call has no effect. The store
   * stays open for its receiver.
   */
  readonly stop: () => Promise<void>;
  /** Same as `stop`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
  /**
   * Checks the store and the secrets, and resolves like the receiver's `ready`. While the store is unreachable, it
   * tries again until `startMs` is over. It rejects with ConfigError if a URL, or a call that has not ended, needs a
   * secret that is not in `secrets`.
   */
  readonly ready: () => Promise<Readiness>;
  /**
   * Encrypts all stored texts with the newest secret. Call it any number of times, while everything runs. Rows that
   * cannot be read are skipped, and a log line names the first of them.
   */
  readonly rewrap: () => Promise<Rewrapped>;
}

/** The result of `registrations.rewrap`, which encrypts stored texts anew with the newest secret. */
export interface Rewrapped extends Damage {
  /** The number of texts that were encrypted again. */
  readonly rewrapped: number;
  /** The number of URLs and tokens in use that older secrets made. Unless it is 0, keep those secrets in `secrets`. */
  readonly needed: number;
}

/** The default of `callMs`. It is longer than HTTP clients and proxies commonly wait (60 s). */
const CALL_MS = 120_000;
const START_MS = 30_000;
/** The share of `callMs` after which a repeated call is aborted, before another process may repeat it. */
const DEADLINE_SHARE = 0.75;
/** The default of `retentionMs`. It is longer than two months of 31 days, because reports may come monthly. */
const RETENTION_MS = 70 * 86_400_000;
const MAX_OPEN = 10_000;
/** The time limit for all requests about one seller's capabilities together. Ms. */
const CAPABILITIES_MS = 20_000;

/** Checks the options, and makes registrations from them. @throws ConfigError if an option is wrong. */
export function registrationsOf(options: RegistrationsOptions, parts: RegistrationsParts): Registrations {
  onlyKnown('createRegistrations', options, REGISTRATIONS_OPTIONS);
  const registrations = registrationsIn(options.store);
  const allowLoopback = flag('allowLoopback', options.allowLoopback);
  const baseUrls = baseUrlsOf(options);
  const secrets = secretsOf(options.secrets, parts.hashes);
  const renewAfterMs = wholeNumber('renewAfterMs', options.renewAfterMs, RENEW_AFTER_MS);
  const isAuto = oneOf('renew', options.renew, ['auto', 'manual'] as const) === 'auto';
  const shared = { registrations, secrets, renewAfterMs, ...parts };
  const routes = routesOf({ ...shared, baseUrls, allowLoopback });
  const startMs = wholeNumber('startMs', options.startMs, START_MS, 0, MAX_TIMER_MS);
  const callMs = wholeNumber('callMs', options.callMs, CALL_MS, 1, MAX_TIMER_MS);
  requireLogger(options.logger);
  if (options.onAlarm !== undefined && typeof options.onAlarm !== 'function') {
    throw new ConfigError('onAlarm: is not a function. Give (alarm) => …, or leave it out.');
  }
  const retentionMs = wholeNumber('retentionMs', options.retentionMs, RETENTION_MS);
  let logger = safeLogger(options.logger ?? consoleLogger());
  let raise = alarmRaiser(logger, options, Date.now);
  const { call, store } = options;
  if (call !== undefined) requireCaller(call);
  let observe: Observe | undefined;
  const context = (): RegistrationContext => ({
    operations,
    logger,
    raise: (alarm) => raise(alarm),
    observe: () => observe,
    learn: (seller) => {
      const question = capabilities.ask(seller, stopping.signal).finally(() => asking.delete(question));
      asking.add(question);
    },
  });
  const operations = operationsOf({
    ...shared,
    routes,
    callMs,
    retentionMs,
    maxOpen: wholeNumber('maxOpen', options.maxOpen, MAX_OPEN),
  });
  const counted = (registration: AnyonesRegistration): Registration =>
    countingRefused(registration, {
      seller: call,
      registrations,
      hashes: parts.hashes,
      retentionMs,
      raise: (alarm) => raise(alarm),
    });
  const capabilities = capabilitiesOf({
    call,
    rows: registrations,
    hashes: parts.hashes,
    now: parts.now,
    limitMs: Math.min(callMs, CAPABILITIES_MS),
  });
  const watched: WithWatchedTasks & WithCapabilities = {
    [WATCHED_TASKS]: { rows: registrations, hashes: parts.hashes, retentionMs, call },
    [CAPABILITIES]: capabilities,
  };
  const onDemand = once(() => import('./on-demand.ts'));
  const subscriptions = once(async () =>
    (await onDemand()).subscriptionsOf({
      ...shared,
      routes,
      call,
      allowLoopback,
      holdMs: callMs,
      raise: (alarm) => raise(alarm),
      warn: (fields, message) => logger.warn(fields, message),
    }),
  );
  /** Returns the protocol version that the seller declared; undefined if the owner gives one in `seller.edition`. */
  const declaredEdition = async ({ agentUrl, edition }: Seller): Promise<string | undefined> =>
    edition === undefined ? (await capabilities.of(agentUrl)).edition : undefined;
  const asking = new Set<Promise<void>>();
  let stopping = new AbortController();
  let repeating: Promise<unknown> | undefined;
  const own = {
    publicUrl: publicUrlsOf(baseUrls),
    senders: Object.assign(routes.senders, { [OF_REGISTRATIONS]: true }),
  };
  const callAgain = (operation: Operation, signal: AbortSignal): Promise<unknown> =>
    counted(registrationOf(operation, { ...context(), isUnattended: true })).call({ signal });
  const repeater = repeaterOf({
    due: (max) => operations.due(max, []),
    make: callAgain,
    tell: (news) => teller(logger, (alarm) => raise(alarm))(news),
    sleep: parts.sleep,
    deadlineMs: Math.ceil(callMs * DEADLINE_SHARE),
  });
  const moves = once(async () =>
    (await onDemand()).registeredMoves({
      ...shared,
      routes,
      operations,
      call,
      bases: baseUrls,
      make: callAgain,
      warn: (fields, message) => logger.warn(fields, message),
      raise: (alarm) => raise(alarm),
      deadlineMs: Math.ceil(callMs * DEADLINE_SHARE),
      holdMs: callMs,
      reread: routes.reread,
      isAuto,
    }),
  );
  const begin = async (): Promise<void> => {
    givenCaller('registrations.start', call);
    if (!observe) throw new ConfigError(NO_RECEIVER);
    if (stopping.signal.aborted) stopping = new AbortController();
    const { signal } = stopping;
    const loops = [repeater, await subscriptions(), await moves()];
    repeating = Promise.all(loops.map(({ run }) => run(signal)));
  };
  const end = async (): Promise<void> => {
    stopping.abort(new DOMException('The registrations stop.', 'AbortError'));
    await repeating;
    await Promise.all(asking);
  };
  const { start, stop } = startStop(begin, end);
  return {
    ...watched,
    ...own,
    requireTheirs: (receiver) => requireTheirs({ ...own, registrations }, receiver),
    ...urlsOf({
      ...shared,
      routes,
      base: routes.base,
      raise: (alarm) => raise(alarm),
      call,
      callMs: Math.ceil(callMs * DEADLINE_SHARE),
    }),
    ofEvent: ofEvent(operations, { secrets, hashes: parts.hashes }),
    ...subscriptionAnswers(registrations),
    tokenOf: tokenOfEvent(operations, { secrets, hashes: parts.hashes }),
    ended: async ({ sender, taskId }) => {
      if (taskId !== '') await operations.endWatch(sender, taskId);
    },
    observeBy: (receiverObserve, raiseAlarm, receiverLogger) => {
      observe = receiverObserve;
      if (options.logger === undefined && receiverLogger) logger = safeLogger(receiverLogger);
      if (options.onAlarm === undefined) raise = raiseAlarm;
    },
    create: async (request) => {
      requireRequest(request);
      return counted(registrationOf(await operations.create(request as OperationRequest), context()));
    },
    reportingWebhook: async (seller, reporting) => {
      requireSellerAlone('reportingWebhook', seller);
      requireReportingAlone(reporting);
      requireReporting(reporting);
      const { scheme } = reporting;
      const isEither = scheme === undefined && !signsReports(seller, await declaredEdition(seller));
      return reportingWebhook(
        await (isEither ? routes.reportsRouteOf(seller) : routes.routeOf(seller, scheme)),
        reporting,
      );
    },
    plan: async (request) => (await moves()).plan(request),
    apply: async (plan, how) => (await moves()).apply(plan, how),
    subscribe: async (request) => (await subscriptions()).subscribe(request as SubscriptionRequest),
    unsubscribe: async (of) => (await subscriptions()).unsubscribe(of as SubscriptionRemoval),
    subscriptions: { list: async (query) => (await subscriptions()).list(query) },
    adopt: async (adoption) => {
      requireAdoption(adoption, allowLoopback);
      const { url, taskId, mediaBuyId } = adoption;
      if (url !== undefined) await routes.adopt(sellerIn(adoption), url);
      return taskId === undefined && mediaBuyId === undefined
        ? undefined
        : adoptIn({ ...shared, routes, retentionMs }, adoption);
    },
    forget: async (url) => {
      const agentUrl = requireAgentUrl(url);
      await routes.forget(agentUrl);
      await operations.forget(agentUrl);
      await deleteRows(registrations, 'subscription', agentUrl);
      await deleteRows(registrations, 'move', agentUrl);
    },
    get: async (of) => operations.get(requireName(of)),
    list: async (query = {}) => {
      requireQuery(query);
      return operations.list(query).catch((error: unknown) => {
        throw requestInvalid(error);
      });
    },
    start: async (...given: readonly unknown[]) => {
      if (given.length > 0) {
        throw new ConfigError(
          'registrations.start: takes no argument. Give the client once: createRegistrations({ call, … }).',
        );
      }
      await start();
    },
    stop,
    [Symbol.asyncDispose]: stop,
    ready: async () => {
      const [urls, calls] = await tryFor(startMs, () =>
        Promise.all([routes.unreadable(), operations.unreadable()]),
      );
      if (urls + calls === 0) return { storeId: await toldIdentity(store, (alarm) => raise(alarm)) };
      throw new ConfigError(
        `secrets: ${urls} URLs of sellers and ${calls} calls that have not ended need a secret that is no longer in the list. Add it at the end.`,
      );
    },
    rewrap: async () => {
      const [ofRoutes, ofCalls] = [await routes.rewrap(), await operations.rewrap()];
      const damaged = ofRoutes.damaged + ofCalls.damaged;
      const firstDamaged = [...ofRoutes.firstDamaged, ...ofCalls.firstDamaged];
      if (damaged > 0) {
        const { kind, id, error } = firstDamaged[0] ?? {};
        logger.error(
          { damaged, kind, id, error },
          `rewrap: ${damaged} rows could not be encrypted again and are unchanged; the first: ${error?.message}`,
        );
      }
      return {
        rewrapped: ofRoutes.rewrapped + ofCalls.rewrapped,
        needed: ofRoutes.needed + ofCalls.needed,
        damaged,
        firstDamaged,
      };
    },
  };
}

const NO_RECEIVER =
  'registrations.start: no receiver of this process has these registrations, so an answer that ends its call would reach no handler. Give them to createReceiver first: createReceiver({ registrations, … }).';
