// The number of replicas that must confirm a write, and a check if it is enough for `failover` (admission.md §7.3,
// §9.5).
// Made by redis-backend.ts; read by the session and the pipeline.
import { ConfigError, Fault } from '../../shared/errors.ts';
import type { Durability } from '../store.ts';

/**
 * A replica reports to its primary each second. One that has not reported for this time is not counted, even if its
 * connection has not timed out. S.
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

/** The numbers of replicas that are connected to the primaries. */
export interface Attached {
  /** The smallest number that a primary has. */
  readonly least: number;
  /** The largest number that a primary has. */
  readonly most: number;
}

/**
 * Makes the advice for `failover` if the servers' disk settings are sufficient. @param replicas the number that is
 * waited for.
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
  /** Returns the number. 0: no replica has to confirm, and no WAIT is sent. */
  readonly replicas: () => number;
  /**
   * Returns the number for a primary that has `attached` replicas now.
   *
   * @throws Fault `not_durable` if more replicas than that could take the primary's place.
   */
  readonly needed: (attached: number) => number;
  /** Takes the numbers of connected replicas. @returns the number that has to confirm for `failover`. */
  readonly seen: (attached: Attached) => number;
  /** Makes the text of `Store.durabilityAdvice`, by the numbers that were seen last. */
  readonly advice: () => string;
  /**
   * Sets the durability that answers need; until it is called, `failover` is assumed.
   *
   * @throws ConfigError if more replicas are attached than `waitReplicas` says, even on a server whose settings are
   *   unknown.
   */
  readonly keep: (required: Durability) => void;
}

/**
 * Makes the barrier of a store. Replicas that disconnected are still counted, because one of them may have been
 * promoted. Writes that the others then confirm to the old primary are lost with that primary.
 *
 * @param asked `waitReplicas`; undefined: the most replicas that were attached since the start. If no more than
 *   `disk` is required, it is one, as soon as every primary had one.
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
