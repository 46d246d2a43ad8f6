// Computes the number of replicas that must confirm a write, and checks that it is enough for the durability `failover`
// (admission.md §7.3, §9.5).
// Made by redis-backend.ts; read by the session and the pipeline.
import { ConfigError, Fault } from '../../shared/errors.ts';
import type { Durability } from '../store.ts';

/**
 * The time without a report after which a replica is not counted, even if its connection has not timed out. A replica
 * reports to its primary each second. S.
 */
const GONE_S = 10;

/**
 * Counts the replicas that are connected to a primary and report to it, by `INFO replication`:
 * `slave0:ip=…,port=…,state=online,offset=…,lag=…`. A replica that has reconnected is counted once.
 */
export function attachedIn(info: string): number {
  const places = new Set<string>();
  for (const [, text = ''] of info.matchAll(/^slave\d+:(.*)$/gm)) {
    const fields = new Map(text.split(',').map((field) => field.split('=', 2) as [string, string]));
    const isThere = fields.get('state') === 'online' && Number(fields.get('lag') ?? 0) <= GONE_S;
    if (isThere) places.add(`${fields.get('ip')} ${fields.get('port')}`);
  }
  return places.size;
}

/** The smallest and the largest number of replicas that are connected to one primary. */
export interface Attached {
  /** The number of replicas of the primary that has the fewest. */
  readonly least: number;
  /** The number of replicas of the primary that has the most. */
  readonly most: number;
}

/**
 * Makes the advice for reaching `failover` on servers whose disk settings already suffice.
 *
 * @param replicas the number of replicas that must confirm a write.
 */
function replicaAdvice(replicas: number, { least, most }: Attached): string {
  const found = `waitReplicas is ${replicas}, and ${least === most ? most : `${least} to ${most}`} attached to each primary.`;
  if (most === 0) return `${found} For 'failover' attach replicas.`;
  if (least !== most) return `${found} For 'failover' attach as many to each.`;
  if (replicas < most) return `${found} For 'failover' set waitReplicas: ${most}, or leave it out.`;
  return `${found} For 'failover' attach ${replicas}, or lower waitReplicas (by default the most that were attached since the start).`;
}

/** Computes the number of replicas that have to confirm a write before it is answered. */
export interface Barrier {
  /** Returns the number of replicas that must confirm a write. 0: none has to, and no WAIT is sent. */
  readonly replicas: () => number;
  /**
   * Returns the number of replicas that must confirm a write, for a primary that has `attached` replicas now.
   *
   * @throws Fault `not_durable` if `failover` is required and more replicas are attached than must confirm. One of the
   *   others could take the primary's place without the write.
   */
  readonly needed: (attached: number) => number;
  /**
   * Takes over the present numbers of connected replicas.
   *
   * @returns the number that must confirm a write for `failover`.
   */
  readonly seen: (attached: Attached) => number;
  /** Makes the text of `Store.durabilityAdvice` from the numbers last passed to `seen`. */
  readonly advice: () => string;
  /**
   * Sets the durability that answers require. Until it is called, `failover` is assumed.
   *
   * @throws ConfigError if `failover` is required and more replicas are attached than must confirm (`waitReplicas`).
   *   This holds even for a server whose settings are unknown.
   */
  readonly keep: (required: Durability) => void;
}

/**
 * Makes the barrier of a store: the number of replicas that must confirm a write. Replicas that disconnected still
 * count, because one of them may have become the primary. Writes to the old primary that only other replicas confirmed
 * would then be lost.
 *
 * @param asked the option `waitReplicas`. Default, if `failover` is required: the largest number of replicas that a
 *   primary had since the start. Default otherwise: 1 once every primary had a replica, and 0 before.
 */
export function barrierOf(asked: number | undefined): Barrier {
  let most = 0;
  let hadOneEach = false;
  let last: Attached = { least: 0, most: 0 };
  let required: Durability | undefined;
  const forFailover = (): number => asked ?? most;
  const replicas = (): number => {
    const isForFailover = required === undefined || required === 'failover';
    return isForFailover ? forFailover() : (asked ?? (hadOneEach ? 1 : 0));
  };
  return {
    replicas,
    needed: (attached) => {
      most = Math.max(most, attached);
      if (required !== 'failover' || attached <= forFailover()) return replicas();
      const advice = replicaAdvice(forFailover(), { least: attached, most: attached });
      throw new Fault('not_durable', `Redis: ${advice}`);
    },
    seen: (attached) => {
      last = attached;
      most = Math.max(most, attached.most);
      hadOneEach ||= attached.least > 0;
      return forFailover();
    },
    advice: () => replicaAdvice(forFailover(), last),
    keep: (level) => {
      if (level === 'failover' && forFailover() < last.most) {
        throw new ConfigError(`redisStore: ${replicaAdvice(forFailover(), last)}`);
      }
      if (required !== 'failover') required = level;
    },
  };
}
