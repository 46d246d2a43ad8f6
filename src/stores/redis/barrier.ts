import { ConfigError, Fault } from '../../shared/errors.ts';
import type { Durability } from '../store.ts';

/** One that has confirmed nothing for so long, which it does each second, is gone: its connection has not timed out. S. */
const GONE_S = 10;

/**
 * Replicas that a primary has in touch, by `INFO replication`: `slave0:ip=…,port=…,state=online,offset=…,lag=…`. One that
 * came back counts once.
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

/** How many replicas primaries have in touch. */
export interface Attached {
  /** Every primary has so many. */
  readonly least: number;
  /** One of them has so many. */
  readonly most: number;
}

/** What an owner has to change for `failover` where the disks do. @param replicas that are waited for. */
function replicaAdvice(replicas: number, { least, most }: Attached): string {
  const found = `waitReplicas is ${replicas}, and ${least === most ? most : `${least} to ${most}`} attached to each primary.`;
  if (most === 0) return `${found} For 'failover' attach replicas.`;
  if (least !== most) return `${found} For 'failover' attach as many to each.`;
  if (replicas < most) return `${found} For 'failover' set waitReplicas: ${most}, or leave it out.`;
  return `${found} For 'failover' attach ${replicas}, or lower waitReplicas (by default the most that were attached since the start).`;
}

/** How many replicas have to confirm what an answer rests on. */
export interface Barrier {
  /** 0: none, and no WAIT is sent. */
  readonly replicas: () => number;
  /**
   * The same, of a primary that has so many attached now.
   * @throws Fault `not_durable` where more could take its place than are waited for.
   */
  readonly needed: (attached: number) => number;
  /** Notes what is attached. @returns how many `failover` waits for. */
  readonly seen: (attached: Attached) => number;
  /** For `Store.durabilityAdvice`, by what was seen last. */
  readonly advice: () => string;
  /**
   * What answers have to survive; until it is said, a failover.
   * @throws ConfigError where more are attached than `waitReplicas` says, also of a server whose settings are unknown.
   */
  readonly keep: (required: Durability) => void;
}

/**
 * Those that went are waited for all the same: one that was promoted looks like that, and what the others go on to confirm
 * to the old primary is lost with it.
 * @param asked `waitReplicas`; undefined: the most that were attached since the start. Where no more than the disk is
 *   required, one, as soon as every primary had one.
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
