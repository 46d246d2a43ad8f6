// Compares levels of durability (admission.md §7.2).
// Called by the startup check, and by stores that watch the durability of their commits.
import type { Durability } from './store.ts';

const STRENGTH: Readonly<Record<Durability, number>> = { process: 0, disk: 1, failover: 2 };

/** True if `one` is weaker than `other`: it does not survive every failure that `other` survives. */
export function isLess(one: Durability, other: Durability): boolean {
  return STRENGTH[one] < STRENGTH[other];
}
