// Connects the parts of this folder: `createKeyResolver` finds keys and revocations for deliveries (verification.md
// §5).
// Loaded on demand by `on-demand.ts`. The command `explain` uses it directly, the test vectors only `KEY_LIMITS`.

import type { RaiseAlarm } from '../shared/alarms.ts';
import type { SafeLogger } from '../shared/logging.ts';
import type { Instruments } from '../receiver/instruments.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import { requestsMayShare } from '../shared/single-flight.ts';
import type { Store } from '../stores/store.ts';
import type { Schedule } from '../shared/time-limits.ts';
import { type AdmissionPressure, createPressureGauge } from './admission-pressure.ts';
import { createLocator } from './agent-location.ts';
import { brandJsonKind } from './brand-json.ts';
import type { KeyRequest, KeyResolver, KeySearch, NameLookUp, KeyFetch, Candidate } from './key-resolver.ts';
import { createDeclarations } from './declarations.ts';
import { createDocumentCache } from './document-cache.ts';
import type { CacheLimits, DocumentKind } from './document.ts';
import { MAX_LIFE_MS } from './lifetimes.ts';
import { type EngineSource, JWKS, type KeySet } from './jwks.ts';
import { createKeyOwners, type KeyOwners, type KeyOwnersContext } from './key-owners.ts';
import { createKeyRecords } from './key-records.ts';
import { createKeySearch, gather } from './key-search.ts';
import { defaultFetch } from './net/document-fetch.ts';
import { createPinPurposes } from './pin-purpose.ts';
import { createPins, isPinned, type PinnedSender, type Pins } from './pins.ts';
import { createPlaces } from './places.ts';
import { createPublisherPins } from './publisher-pins.ts';
import { createRevocations, strictest } from './revocation.ts';
import { createDeliveryBudgets } from './safe-fetch.ts';
import { createSenderKeys } from './sender-keys.ts';
import { createSenderSearch } from './sender-search.ts';

interface FirstUse {
  /** The JWKS document kind, which also records when each key was first seen. */
  readonly jwks: DocumentKind<KeySet>;
  /**
   * Returns the search result. Each candidate whose key is not known to be its sender's own gets the function
   * `firstUse`.
   */
  readonly guard: (search: KeySearch, request: KeyRequest) => KeySearch;
  /** True if the candidate's key is known to belong to the candidate's sender alone, among the senders of one URL. */
  readonly isOwn: (candidate: Candidate, senders: readonly SenderEntry[]) => boolean;
}

/**
 * Checks a key before a sender uses it for the first time (verification.md §2.36). A registered seller could publish
 * another seller's key as its own, so the keys of the URL's other senders are checked.
 */
export function createFirstUse(context: () => KeyOwnersContext): FirstUse {
  let made: KeyOwners | undefined;
  const owners = (): KeyOwners => (made ??= createKeyOwners(context()));
  const isOwn = (candidate: Candidate, senders: readonly SenderEntry[]): boolean =>
    isAlone(candidate, senders) || made?.isOwn(candidate, senders) === true;
  return {
    isOwn,
    jwks: { ...JWKS, onReplaced: (copy, before) => made?.onReplaced(copy, before) },
    guard: (search, request) => {
      const { candidates } = search;
      const owns = (candidate: Candidate): boolean => isOwn(candidate, request.senders);
      if (candidates.every(owns)) return search;
      made?.noteShared(candidates, request);
      const firstUse = async (candidate: Candidate): Promise<string | undefined> =>
        owners().firstUse(candidate, request);
      return {
        ...search,
        candidates: candidates.map((candidate) =>
          owns(candidate) ? candidate : { ...candidate, firstUse: () => firstUse(candidate) },
        ),
      };
    },
  };
}

/**
 * True if all entries have one agent URL. There are several entries for one sender if its keys are searched at several
 * URLs.
 */
const isAlone = ({ sender }: Candidate, senders: readonly SenderEntry[]): boolean =>
  senders.every(({ agentUrl }) => agentUrl === sender.agentUrl);

interface KeyLimits extends CacheLimits {
  /** Time limit of one fetch, in ms. */
  readonly deadlineMs: number;
  /**
   * The total time in ms for which one delivery waits for documents. After that, a running fetch continues, so that
   * its result serves the seller's retry.
   */
  readonly deliveryMs: number;
  /**
   * The same limit as `deliveryMs`, for runtimes where a fetch ends with its request. There a fetch that is not waited
   * for leaves no result for the retry.
   */
  readonly ownFetchMs: number;
  /** The maximum number of senders whose documents are fetched at the same time for one delivery. */
  readonly width: number;
  /** The maximum number of senders and publishers whose documents one delivery may fetch. */
  readonly perDelivery: number;
  /** The time in ms for which other senders are waited for after a first sender was found to have the key. */
  readonly graceMs: number;
}

export interface KeyResolverOptions {
  readonly protocols: Protocols;
  /** The crypto engine that imports keys, or a function that returns it when the first key is needed. */
  readonly engine: EngineSource;
  /** The function that fetches key documents. Default: `defaultFetch`. */
  readonly fetch?: KeyFetch | undefined;
  /** The way in which host names are looked up, unless `fetch` is given. */
  readonly dns?: NameLookUp | undefined;
  /** Thresholds above which new key ids raise an alarm; none if absent. */
  readonly thresholds?: AdmissionPressure;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  /** For development: allows http and private addresses. */
  readonly allowLoopback: boolean;
  readonly raiseAlarm: RaiseAlarm;
  readonly logger: SafeLogger;
  /** The receiver's hooks for measurements; `fetched` is called when a fetch of a key document has ended. */
  readonly instruments?: Pick<Instruments, 'fetched'>;
  /** Values that replace those of `KEY_LIMITS`. */
  readonly limits?: Partial<KeyLimits>;
  /** Returns a random number in [0, 1), by which background refreshes are spread over time. Default: `Math.random`. */
  readonly random?: () => number;
  /**
   * The store of key thumbprints and sellers' declarations. Without a store, or with one that keeps no rows,
   * thumbprints stay in this process.
   */
  readonly store?: Pick<Store, 'registrations'> | undefined;
  /** Timers for polling. They never keep the process alive. */
  readonly schedule?: Schedule;
}

/** Limits of verification.md §5.4, §5.7, §5.13, §5.18 and §5.21. */
export const KEY_LIMITS: KeyLimits = {
  hardLimitMs: MAX_LIFE_MS,
  cooldownMs: 30_000,
  patienceMs: 2_000,
  // Enough for five documents (brand.json, JWKS, three revocation lists) of each of 10,000 senders.
  maxDocuments: 50_000,
  maxBytes: 512 * 1_048_576,
  deadlineMs: 10_000,
  deliveryMs: 2_000,
  ownFetchMs: 8_000,
  width: 8,
  perDelivery: 32,
  graceMs: 250,
};

/** Wraps the owner's alarm hook: an error in the hook must not break a fetch that many deliveries wait for. */
function harmlessAlarm({ raiseAlarm, logger }: KeyResolverOptions): RaiseAlarm {
  return (alarm) => {
    try {
      raiseAlarm(alarm);
    } catch (error) {
      logger.error({ err: error, alarm: alarm.code }, 'onAlarm threw');
    }
  };
}

async function importPins(sender: PinnedSender, pins: Pins, raiseAlarm: RaiseAlarm): Promise<void> {
  for (const message of await pins.importAll(sender)) {
    raiseAlarm({ code: 'key_document_invalid', sender: sender.agentUrl, document: 'pins', message });
  }
}

/**
 * Creates the key resolver, which finds the signer's keys in pins and in documents (verification.md §5). It fetches
 * and caches the documents.
 */
export function createKeyResolver(options: KeyResolverOptions): KeyResolver {
  const { engine, now, allowLoopback, thresholds = {} } = options;
  const limits: KeyLimits = { ...KEY_LIMITS, ...options.limits };
  const raiseAlarm = harmlessAlarm(options);
  const { deadlineMs, width, graceMs, cooldownMs, perDelivery } = limits;
  const deliveryMs = requestsMayShare() ? limits.deliveryMs : limits.ownFetchMs;
  const declarations = createDeclarations(options);
  const places = createPlaces({ declarations, allowLoopback, raiseAlarm });
  const budgets = createDeliveryBudgets({ now, perDelivery, deliveryMs });
  const budgetOf: typeof budgets = (request) => budgets(places.whole(request));
  const fetchUrl = options.fetch ?? defaultFetch(allowLoopback, options.dns);
  const shared = { ...options, fetch: fetchUrl, raiseAlarm, limits, deadlineMs, budgetOf };
  const cache = createDocumentCache(shared);
  const pins = createPins(engine, options.protocols);
  const locator = createLocator({ allowLoopback, raiseAlarm, now });
  const brandJson = brandJsonKind(allowLoopback);
  const records = createKeyRecords(options);
  const firstUse = createFirstUse(() => ({ ...shared, cache, keys, publishers, records }));
  const kinds = { brandJson, jwks: firstUse.jwks };
  const keys = createSenderKeys(cache, kinds, locator, records.published);
  const revocations = createRevocations({
    ...shared,
    startOf: locator.startOf,
    documents: cache,
    brandJson,
    keys,
  });
  const publishers = createPublisherPins({
    cache,
    allowLoopback,
    raiseAlarm,
    now,
    width,
    noteKeys: records.published,
  });
  const purposes = createPinPurposes({ protocols: options.protocols, raiseAlarm });
  const each = createSenderSearch({
    keys,
    placesOf: places.of,
    pins,
    publishers,
    purposes,
    engine,
    now,
    cooldownMs,
    raiseAlarm,
  });
  const gauge = createPressureGauge({ thresholds, now, raiseAlarm });
  const finish = (found: KeySearch, request: KeyRequest): KeySearch => {
    for (const { sender, key } of found.candidates) gauge.note(sender.agentUrl, key.kid);
    return firstUse.guard(found, places.everywhere(places.whole(request)));
  };
  const prefetch = async (sender: SenderEntry): Promise<object> => {
    await places.ready([sender], () => deadlineMs);
    const [first = sender] = places.of(sender);
    await each.warm(first);
    await revocations.warm(first);
    return {};
  };
  const search = createKeySearch({ cache, each, limits, budgetOf, finish, now });
  return {
    find: (keyid, request) => {
      const waitMs = (): number => budgetOf(request).waitMs();
      const find = (): KeySearch | Promise<KeySearch> =>
        places.find(request, (part) => search.find(keyid, part), waitMs);
      const ready = places.ready(request.senders, waitMs);
      return ready === undefined ? find() : ready.then(find);
    },
    findReplaced: (keyid, request, tried) => search.findReplaced(keyid, places.everywhere(request), tried),
    whose: (keyid, senders) => search.whose(keyid, senders?.flatMap(places.of)),
    revocation: (sender, keyid, request) => {
      const all = places.of(sender);
      if (all.length <= 1) return revocations.check(all[0] ?? sender, keyid, request);
      return Promise.all(all.map(async (place) => revocations.check(place, keyid, request))).then(strictest);
    },
    verified: (candidate, { senders }) => {
      const { sender, key } = candidate;
      // Senders with pins in the configuration need no record, because they certainly own those keys. For other
      // senders, a key is recorded only if it is known to be the sender's own.
      if (isPinned(sender) || !firstUse.isOwn(candidate, senders.flatMap(places.of))) return;
      records.verified(sender.agentUrl, key.kid, key.jwk, isAlone(candidate, senders));
    },
    freshUntil: async (sender) =>
      isPinned(sender) ? undefined : (await keys.cached(places.of(sender)[0] ?? sender))?.copy.freshUntil,
    pressure: gauge.state,
    warm: async (senders) => {
      const signing = senders.filter((sender) => sender.auth.scheme === 'signature');
      for (const sender of signing.filter(isPinned)) await importPins(sender, pins, raiseAlarm);
      // The fetches are not awaited, because a receiver must start even if a seller is down. `gather` never rejects.
      void gather(signing, prefetch, { width, graceMs });
    },
    stop: () => {
      revocations.stop();
      cache.stop();
    },
    resume: () => {
      cache.resume();
      revocations.resume();
    },
  };
}
