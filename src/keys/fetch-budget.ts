import type { KeyRequest } from './contract.ts';

/** For whom documents are had, and how far that goes. */
export interface FetchBudget {
  /** Agent URL of the seller whose documents they are. */
  readonly seller: string;
  /** Asked right before a fetch is begun; false: this caller may begin no more. */
  mayFetch(): boolean;
  /** Ms for which this caller still waits. A fetch that it no longer waits for goes on to its own limits. */
  waitMs(): number;
}

/** For whatever no delivery waits for: bounded by the limits of each fetch alone. */
export function unlimitedBudget(seller: string): FetchBudget {
  return { seller, mayFetch: () => true, waitMs: () => Number.POSITIVE_INFINITY };
}

/** What one delivery may have fetched, and how long it waits for documents in all (verification.md §5.21). */
export interface DeliveryBudget {
  /** Leave for one sender's chain, or for one publisher's file: it counts once, however many fetches that takes. */
  readonly fetchBudget: (seller: string) => FetchBudget;
  /** Ms that are left. */
  readonly waitMs: () => number;
}

interface BudgetLimits {
  /** Unix ms. */
  readonly now: () => number;
  /** Senders and publishers whose documents one delivery may have fetched. */
  readonly perDelivery: number;
  /** Ms that one delivery waits. */
  readonly deliveryMs: number;
}

/** By delivery: begun when the first thing is asked for that may have to be waited for. */
export function createDeliveryBudgets(limits: BudgetLimits): (request: KeyRequest) => DeliveryBudget {
  const allowances = new WeakMap<KeyRequest, DeliveryBudget>();
  return (request) => {
    const known = allowances.get(request);
    if (known !== undefined) return known;
    const made = newDeliveryBudget(limits);
    allowances.set(request, made);
    return made;
  };
}

function newDeliveryBudget({ now, perDelivery, deliveryMs }: BudgetLimits): DeliveryBudget {
  const began = now();
  let left = perDelivery;
  // A clock that was set back gives no more than there was.
  const waitMs = (): number => Math.max(0, deliveryMs - Math.max(0, now() - began));
  const fetchBudget = (seller: string): FetchBudget => {
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
  return { fetchBudget, waitMs };
}
