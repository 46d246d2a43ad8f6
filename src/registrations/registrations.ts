import { AnswerRefusedError } from '../calls/refused-answer.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { Alarm, Logger, RaiseAlarm } from '../shared/alarms.ts';
import { flag, MAX_TIMER_MS, onlyKnown, requireLogger, wholeNumber } from '../config/validate.ts';
import { ConfigError, isOfKind, textOf } from '../shared/errors.ts';
import type { Observe } from '../events/observation.ts';
import { type EventRegistrations, OF_REGISTRATIONS } from '../events/event-registration.ts';
import { alarmRaiser, consoleLogger, safeLogger, type SafeLogger } from '../shared/logging.ts';
import type { Sender } from '../config/sender-entry.ts';
import type { Store, StoreRegistrations } from '../stores/store.ts';
import { CAPABILITIES, capabilitiesOf, type WithCapabilities } from './capabilities.ts';
import { adoptIn, type Adoption, requireAdoption } from './adopt.ts';
import { SellerError } from './answer.ts';
import {
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
import type { OperationRequest } from './operations.ts';
import { operationsOf } from './operations.ts';
import {
  type CallSeller,
  type Registration,
  type RegistrationContext,
  registrationOf,
} from './registration.ts';
import { requireTheirs } from './receiver-link.ts';
import { type Reporting, reportingWebhook, requireReporting } from './request.ts';
import { type RandomBytes, secretsOf } from './secrets.ts';
import type { Damage } from './operation-rows.ts';
import { requestInvalid, type Seller, sellerIn, signsReports } from './seller.ts';
import { countingRefused } from './refused-answers.ts';
import { routesOf } from './routes.ts';
import type { Repeater, RepeaterNews } from './retry-loop.ts';
import { repeaterOf } from './retry-loop.ts';
import { WATCHED_TASKS, type WithWatchedTasks } from './watch-task.ts';
import { isError } from '../shared/realms.ts';
import { tryFor } from '../shared/time-limits.ts';

/** What a buyer has registered with sellers. */
export interface Registrations extends EventRegistrations {
  /** `ReceiverOptions.publicUrl`: everything below `baseUrl`. */
  readonly publicUrl: string;
  /** `ReceiverOptions.senders`: the seller of a URL. Rejects with a Fault while the store is unavailable. */
  readonly senders: (url: URL) => Sender[] | Promise<Sender[]>;
  /** Durable when it resolves. @throws RegistrationError */
  readonly create: (request: Given<OperationRequest>) => Promise<Registration>;
  /**
   * `reporting_webhook` for `create_media_buy`, on a URL of the seller's own. With HMAC credentials, since every edition before
   * 3.3 requires some: reports are accepted there by HMAC or signed. Without them where `seller.edition` is 3.3 or later.
   */
  readonly reportingWebhook: (seller: Seller, reporting: Reporting) => Promise<JsonObject>;
  /**
   * Takes over what a seller does already: a URL that it sends to, a task that is under way, a media buy that runs.
   * @returns the operation that the task or the media buy has now; undefined for a URL alone.
   * @throws RegistrationError; ConfigError for a URL that cannot be adopted.
   */
  readonly adopt: (adoption: Adoption) => Promise<OperationSeen | undefined>;
  /** Deletes all rows of a seller. */
  readonly forget: (agentUrl: string) => Promise<void>;
  /** One operation; undefined if it is not known. */
  readonly get: (of: OperationName) => Promise<OperationSeen | undefined>;
  /** Page by page, by agent URL and operation_id. */
  readonly list: (query?: OperationQuery) => Promise<OperationPage>;
  /**
   * Repeats calls that were not settled, in any number of processes: the same bytes, under the same request key. A call
   * that is refused, or cannot be repeated, is an alarm.
   */
  readonly start: (options: { readonly call: CallSeller }) => void;
  /** Begins no more calls; resolves when the running ones have ended. */
  readonly stop: () => Promise<void>;
  /** `stop`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
  /** Tries for `startMs` while the store cannot be reached. Rejects with ConfigError where URLs, or calls that have not ended, need a secret that is not in `secrets`. */
  readonly ready: () => Promise<void>;
  /**
   * Encrypts all stored texts under the newest secret, any number of times, while everything runs. `needed` counts what still
   * needs an older secret: URLs that sellers have, and tokens of operations that have not ended. Damaged rows are skipped:
   * `damaged` counts them, and a log line names the first.
   */
  readonly rewrap: () => Promise<Rewrapped>;
}

/** What `rewrap` did. */
export interface Rewrapped extends Damage {
  /** Texts that were encrypted again. */
  readonly rewrapped: number;
  /** URLs and tokens made by an older secret, which has to stay in `secrets`. */
  readonly needed: number;
}

/** Options of `createRegistrations`. */
export interface RegistrationsOptions {
  readonly store: Store;
  /** Sellers get URLs below it, e.g. `https://buyer.example/webhooks`. */
  readonly baseUrl: string;
  /** The newest first, each at least 32 random characters. An undefined one, of an unset environment variable, is a ConfigError. */
  readonly secrets: readonly (string | undefined)[];
  /** http, for development. */
  readonly allowLoopback?: boolean | undefined;
  /** How long a call may take before another process repeats it. Ms; 120 000. */
  readonly callMs?: number | undefined;
  /** Ms for which `ready()` tries again while the store cannot be reached. 30 000; 0: one try. */
  readonly startMs?: number | undefined;
  /** How long an operation is known after its end, and after each report on its media buy. Ms; 70 days: two monthly reports. */
  readonly retentionMs?: number | undefined;
  /**
   * Operations of one seller that have not ended; at more, `create` rejects with `too_many_open`. 10 000. Not counted each time:
   * each process may exceed it by 100.
   */
  readonly maxOpen?: number | undefined;
  /** As of `createReceiver`: warnings and errors go to the console by default. */
  readonly logger?: Logger | undefined;
  /** `answer_refused`, `operation_orphaned`, `operation_refused`: calls that have failed. Default: the receiver's. */
  readonly onAlarm?: ((alarm: Alarm) => void) | undefined;
}

const KNOWN: Readonly<Record<keyof RegistrationsOptions, true>> = {
  store: true,
  baseUrl: true,
  secrets: true,
  allowLoopback: true,
  callMs: true,
  startMs: true,
  retentionMs: true,
  maxOpen: true,
  logger: true,
  onAlarm: true,
};

/** Parts that differ between runtimes, and that tests replace. */
export interface RegistrationsParts {
  readonly hashes: Hashes;
  readonly randomBytes: RandomBytes;
  readonly newId: () => string;
  readonly now: () => number;
  /** Resolves early where the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** Longer than HTTP clients and proxies commonly wait (60 s). */
const CALL_MS = 120_000;
const START_MS = 30_000;
/** The share of `callMs` after which a repeated call is aborted. */
const DEADLINE_SHARE = 0.75;
/** Above two months of 31 days, for reports that come monthly. */
const RETENTION_MS = 70 * 86_400_000;
const MAX_OPEN = 10_000;
/** For the question what a seller declares. Ms. */
const CAPABILITIES_MS = 20_000;

/** @throws ConfigError */
export function registrationsOf(options: RegistrationsOptions, parts: RegistrationsParts): Registrations {
  onlyKnown('createRegistrations', options, KNOWN);
  const registrations = registrationsIn(options.store);
  const allowLoopback = flag('allowLoopback', options.allowLoopback);
  const baseUrl = baseUrlOf(options);
  const secrets = secretsOf(options.secrets, parts.hashes);
  const shared = { registrations, secrets, ...parts };
  const routes = routesOf({ ...shared, baseUrl, allowLoopback });
  const startMs = wholeNumber('startMs', options.startMs, START_MS, 0, MAX_TIMER_MS);
  const callMs = wholeNumber('callMs', options.callMs, CALL_MS, 1, MAX_TIMER_MS);
  requireLogger(options.logger);
  if (options.onAlarm !== undefined && typeof options.onAlarm !== 'function') {
    throw new ConfigError('onAlarm: is not a function. Give (alarm) => …, or leave it out.');
  }
  const retentionMs = wholeNumber('retentionMs', options.retentionMs, RETENTION_MS);
  const logger = safeLogger(options.logger ?? consoleLogger());
  let raise = alarmRaiser(logger, options, Date.now);
  let repeater: Repeater | undefined;
  let isStopped = false;
  let observe: Observe | undefined;
  const context = (): RegistrationContext => ({
    operations,
    logger,
    raise: (alarm) => raise(alarm),
    observe: () => observe,
    learn: (call, seller) => {
      const question = capabilities.ask(call, seller, stopping.signal).finally(() => asking.delete(question));
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
  const counted = (registration: Registration): Registration =>
    countingRefused(registration, {
      registrations,
      hashes: parts.hashes,
      retentionMs,
      raise: (alarm) => raise(alarm),
    });
  const capabilities = capabilitiesOf({
    rows: registrations,
    hashes: parts.hashes,
    now: parts.now,
    limitMs: Math.min(callMs, CAPABILITIES_MS),
  });
  const watched: WithWatchedTasks & WithCapabilities = {
    [WATCHED_TASKS]: { rows: registrations, hashes: parts.hashes, retentionMs },
    [CAPABILITIES]: capabilities,
  };
  /** Not looked up where the owner says it. */
  const declaredEdition = async ({ agentUrl, edition }: Seller): Promise<string | undefined> =>
    edition === undefined ? (await capabilities.of(agentUrl)).edition : undefined;
  const asking = new Set<Promise<void>>();
  const stopping = new AbortController();
  const own = {
    publicUrl: `${baseUrl}/*`,
    senders: Object.assign(routes.senders, { [OF_REGISTRATIONS]: true }),
  };
  const stop = async (): Promise<void> => {
    isStopped = true;
    stopping.abort(new DOMException('The registrations stop.', 'AbortError'));
    await repeater?.stop();
    await Promise.all(asking);
  };
  return {
    ...watched,
    ...own,
    requireTheirs: (receiver) => requireTheirs({ ...own, registrations }, receiver),
    ofEvent: ofEvent(operations, { secrets, hashes: parts.hashes }),
    tokenOf: tokenOfEvent(operations, { secrets, hashes: parts.hashes }),
    ended: async ({ sender, taskId }) => {
      if (taskId !== '') await operations.endWatch(sender, taskId);
    },
    observeBy: (receiverObserve, raiseAlarm) => {
      observe = receiverObserve;
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
    adopt: async (adoption) => {
      requireAdoption(adoption, allowLoopback);
      const { url, taskId, mediaBuyId } = adoption;
      if (url !== undefined) await routes.adopt(sellerIn(adoption), url);
      return taskId === undefined && mediaBuyId === undefined
        ? undefined
        : adoptIn({ ...shared, retentionMs }, adoption);
    },
    forget: async (url) => {
      const agentUrl = requireAgentUrl(url);
      await routes.forget(agentUrl);
      await operations.forget(agentUrl);
    },
    get: async (of) => operations.get(requireName(of)),
    list: async (query = {}) => {
      requireQuery(query);
      return operations.list(query).catch((error: unknown) => {
        throw requestInvalid(error);
      });
    },
    start: (startOptions) => {
      if (typeof startOptions === 'function') {
        throw new ConfigError('start: is a function. Give it by its name: start({ call }).');
      }
      onlyKnown('start', startOptions, { call: true });
      const { call } = startOptions;
      requireCaller(call);
      if (isStopped)
        throw new ConfigError('start: was stopped before. Make new registrations to start again.');
      if (!observe) {
        throw new ConfigError(
          'start: no receiver of this process has these registrations, so that an answer which ends its call would reach no handler. Give them to createReceiver first: createReceiver({ registrations, … }).',
        );
      }
      repeater ??= repeaterOf({
        due: (max) => operations.due(max, []),
        make: (operation, signal) =>
          counted(registrationOf(operation, { ...context(), isUnattended: true })).call(call, signal),
        tell: teller(logger, (alarm) => raise(alarm)),
        sleep: parts.sleep,
        deadlineMs: Math.ceil(callMs * DEADLINE_SHARE),
      });
      repeater.start();
    },
    stop,
    [Symbol.asyncDispose]: stop,
    ready: async () => {
      const [urls, calls] = await tryFor(startMs, () =>
        Promise.all([routes.unreadable(), operations.unreadable()]),
      );
      if (urls + calls === 0) return;
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

/** @throws ConfigError if the store has no registrations. */
function registrationsIn(store: Store): StoreRegistrations {
  if (store?.registrations) return store.registrations;
  const which =
    typeof store?.name === 'string'
      ? `the ${store.name} store has no registrations`
      : `store: ${textOf(store)} is not a store`;
  throw new ConfigError(`createRegistrations: ${which}. Use a store of this package.`);
}

/** Reports a repeated call: an alarm if it is over, else a log line. A refusal was told where it was kept. */
function teller(logger: SafeLogger, raise: RaiseAlarm): (news: RepeaterNews) => Promise<void> {
  return async (news) => {
    if (news.kind === 'orphaned') {
      const { agentUrl: sender, operationId, taskType, ref } = news.operation;
      raise({
        code: 'operation_orphaned',
        message: `Whether ${taskType} was done is not known: the call was not answered, and cannot be repeated. Ask the seller.`,
        sender,
        operationId,
        taskType,
        ...(ref !== undefined && { ref }),
      });
      return;
    }
    const { error } = news;
    // It was told of where it was counted.
    if (isOfKind(error, AnswerRefusedError)) return;
    const message = isError(error) ? error.message : 'The thrown value is not an Error.';
    if (news.kind === 'store') {
      logger.warn(
        { error },
        `Registrations: the store could not be asked which calls are to be repeated. ${message}`,
      );
      return;
    }
    if (error instanceof SellerError && error.recovery !== 'transient') return;
    const { agentUrl: sender, operationId } = news.operation;
    logger.warn({ sender, operationId, error }, `A call is repeated later: it was not answered. ${message}`);
  };
}

function baseUrlOf({ baseUrl, allowLoopback = false }: RegistrationsOptions): string {
  const fix = "Give e.g. baseUrl: 'https://buyer.example/webhooks'.";
  const url = typeof baseUrl === 'string' && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  const isBare = url && !/[?#*]/.test(baseUrl) && url.username === '' && url.password === '';
  if (!isBare) {
    throw new ConfigError(`baseUrl: ${JSON.stringify(baseUrl)} is not a URL without a query. ${fix}`);
  }
  if (url.protocol !== 'https:' && !(allowLoopback && url.protocol === 'http:')) {
    throw new ConfigError(
      `baseUrl: ${JSON.stringify(baseUrl)} is not https. ${fix} For development on http set allowLoopback: true.`,
    );
  }
  return url.href.replace(/\/+$/, '');
}
