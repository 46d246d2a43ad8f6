import type { Logger, RaiseAlarm } from '../alarms.ts';
import type { Answer, Copy } from './document.ts';
import type { FetchRules } from './safe-fetch.ts';

export interface CacheLimits {
  /** Ms a copy may serve after its fetch began while refreshes fail. */
  readonly hardLimitMs: number;
  /** Ms between two refetches of one URL beyond its copies' own life. */
  readonly cooldownMs: number;
  /** Ms that a delivery waits for the refresh of a copy that may still serve. */
  readonly patienceMs: number;
  readonly maxDocuments: number;
}

export interface CacheOptions extends FetchRules {
  /** Unix ms. */
  readonly now: () => number;
  readonly limits: CacheLimits;
  readonly raiseAlarm: RaiseAlarm;
  readonly logger: Logger;
  /** In [0, 1): spreads background refreshes. `Math.random` where absent. */
  readonly random?: () => number;
  /**
   * Whether callers may wait for a fetch that another caller began. False where a request owns its I/O (workerd): a
   * promise dies with the request that made it, so each fetches for itself and only results are kept. True where absent.
   */
  readonly sharedFetches?: boolean;
}

/** What the cache knows of one URL. */
export interface Entry<T> {
  copy: Copy<T> | undefined;
  failure: Failure | undefined;
  /**
   * When the last refetch began that somebody asked for beyond the copy's own life, whatever became of it, or the fetch
   * of a first copy that lacked what was wanted; Unix ms.
   */
  refetched: number | undefined;
  /** When the last fetch began, whatever it was for; Unix ms. */
  began: number | undefined;
  /** The fetch that others may wait for. */
  running: Running<T> | undefined;
}

interface Failure {
  readonly reason: string;
  /** Unix ms. */
  readonly at: number;
  readonly backOffMs: number;
  /** In a row. */
  readonly count: number;
  /** The first of them, Unix ms. */
  readonly since: number;
}

export interface Running<T> {
  readonly began: number;
  readonly order: number;
  readonly controller: AbortController;
  /** Never rejects. */
  readonly answer: Promise<Answer<T>>;
}

export interface CacheState {
  readonly options: CacheOptions;
  /** Least recently used first. */
  readonly entries: Map<string, Entry<unknown>>;
  order: number;
  stopped: boolean;
}
