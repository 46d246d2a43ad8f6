import type { Durability } from './store.ts';

const STRENGTH: Readonly<Record<Durability, number>> = { process: 0, disk: 1, failover: 2 };

/** Whether what survives as `one` says does not survive all that `other` says. */
export function isLess(one: Durability, other: Durability): boolean {
  return STRENGTH[one] < STRENGTH[other];
}
