import type { KeyRequest } from './contract.ts';

/** For whom documents are had, and how far that goes. */
export interface Leave {
  /** Agent URL of the seller whose documents they are. */
  readonly seller: string;
  /** Asked right before a fetch is begun; false: this caller may begin no more. */
  mayFetch(): boolean;
  /** Ms for which this caller still waits. A fetch that it no longer waits for goes on to its own limits. */
  waitMs(): number;
}

/** For whatever no delivery waits for: bounded by the limits of each fetch alone. */
export function freeLeave(seller: string): Leave {
  return { seller, mayFetch: () => true, waitMs: () => Number.POSITIVE_INFINITY };
}

/** What one delivery may have fetched, and how long it waits for documents in all (verification.md §5.21). */
export interface Allowance {
  /** Leave for one sender's chain, or for one publisher's file: it counts once, however many fetches that takes. */
  readonly leave: (seller: string) => Leave;
  /** Ms that are left. */
  readonly waitMs: () => number;
}

interface AllowanceLimits {
  /** Unix ms. */
  readonly now: () => number;
  /** Senders and publishers whose documents one delivery may have fetched. */
  readonly perDelivery: number;
  /** Ms that one delivery waits. */
  readonly deliveryMs: number;
}

/** By delivery: begun when the first thing is asked for that may have to be waited for. */
export function createAllowances(limits: AllowanceLimits): (request: KeyRequest) => Allowance {
  const allowances = new WeakMap<KeyRequest, Allowance>();
  return (request) => {
    const known = allowances.get(request);
    if (known !== undefined) return known;
    const made = newAllowance(limits);
    allowances.set(request, made);
    return made;
  };
}

function newAllowance({ now, perDelivery, deliveryMs }: AllowanceLimits): Allowance {
  const began = now();
  let left = perDelivery;
  // A clock that was set back gives no more than there was.
  const waitMs = (): number => Math.max(0, deliveryMs - Math.max(0, now() - began));
  const leave = (seller: string): Leave => {
    let granted = false;
    return {
      seller,
      waitMs,
      mayFetch: () => {
        if (!granted && left > 0) {
          left -= 1;
          granted = true;
        }
        return granted;
      },
    };
  };
  return { leave, waitMs };
}
