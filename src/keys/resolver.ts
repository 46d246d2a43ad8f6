import type { Logger, RaiseAlarm } from '../alarms.ts';
import type { Protocol } from '../protocol.ts';
import type { SenderEntry } from '../senders.ts';
import { createLocate } from './agent-location.ts';
import { brandJsonKind } from './brand-json.ts';
import type { CacheLimits } from './cache-state.ts';
import type { KeyResolver, Transport } from './contract.ts';
import { createDocumentCache } from './document-cache.ts';
import { MAX_LIFE_MS } from './freshness.ts';
import { gather } from './gather.ts';
import type { EngineSource } from './jwks.ts';
import { createKeySearch } from './key-search.ts';
import { createPins, isPinned } from './pins.ts';
import { createRevocationCheck, REVOCATION_LIST } from './revocation.ts';
import { createSenderKeys } from './sender-keys.ts';

export interface KeyLimits extends CacheLimits {
  /** Ms for one fetch, and for all the fetching that one delivery waits for. */
  readonly deadlineMs: number;
  /** Fetches at a time for one delivery. */
  readonly width: number;
  /** Senders whose documents one delivery may have fetched. */
  readonly perDelivery: number;
  /** Ms for which other senders are waited for once one has the key. */
  readonly graceMs: number;
}

export interface KeyResolverOptions {
  readonly protocol: Protocol;
  /** Imports keys; a function is asked when the first key is needed. */
  readonly engine: EngineSource;
  readonly transport: Transport;
  /** Unix ms. */
  readonly now: () => number;
  /** Development: http and private addresses. */
  readonly allowLoopback: boolean;
  readonly raiseAlarm: RaiseAlarm;
  readonly logger: Logger;
  /** What differs from `KEY_LIMITS`. */
  readonly limits?: Partial<KeyLimits>;
}

/** verification.md, section 5. */
export const KEY_LIMITS: KeyLimits = {
  hardLimitMs: MAX_LIFE_MS,
  cooldownMs: 30_000,
  patienceMs: 2_000,
  maxDocuments: 10_000,
  deadlineMs: 10_000,
  width: 8,
  perDelivery: 32,
  graceMs: 250,
};

/** Who signed (verification.md, section 5), from documents that are fetched and cached here, and from pins. */
export function createKeyResolver(options: KeyResolverOptions): KeyResolver {
  const { engine, now, allowLoopback } = options;
  const limits: KeyLimits = { ...KEY_LIMITS, ...options.limits };
  // An owner's hook that throws must not break a fetch that many deliveries wait for.
  const raiseAlarm: RaiseAlarm = (alarm) => {
    try {
      options.raiseAlarm(alarm);
    } catch (error) {
      options.logger.error({ err: error, alarm: alarm.code }, 'onAlarm threw');
    }
  };
  const cache = createDocumentCache({ ...options, raiseAlarm, limits, deadlineMs: limits.deadlineMs });
  const pins = createPins(engine);
  const locate = createLocate({ allowLoopback, raiseAlarm });
  const keys = createSenderKeys(cache, brandJsonKind(allowLoopback), locate);
  const prefetch = async (sender: SenderEntry): Promise<object> => {
    if (!isPinned(sender)) await keys.current(sender);
    const list = sender.revocation?.url;
    if (list !== undefined) await cache.current(REVOCATION_LIST, list);
    return {};
  };
  return {
    ...createKeySearch({ cache, keys, pins, engine, now, limits }),
    revocation: createRevocationCheck({ cache, now, raiseAlarm }),
    warm: async (senders) => {
      const signing = senders.filter((sender) => sender.auth.scheme === 'signature');
      for (const sender of signing) if (isPinned(sender)) await pins.importAll(sender);
      // Not awaited: a seller that is down must not keep a receiver from starting. It never rejects.
      void gather(signing, prefetch, { width: limits.width, graceMs: limits.graceMs });
    },
    stop: () => {
      cache.stop();
    },
  };
}
