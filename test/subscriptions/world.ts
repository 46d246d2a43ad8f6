import { setTimeout as wait } from 'node:timers/promises';
import { type Front, startFront } from '../reliability/market/front.ts';
import { BACKENDS, type Backend } from '../reliability/processes/backends.ts';
import type { Kind } from '../reliability/processes/stores.ts';
import type { BuyerProcess, StartBuyer } from './buyer/processes.ts';
import type { Seen } from './buyer/wire.ts';
import type { Entry } from './seller/entries.ts';
import type { Line } from './seller/log.ts';
import { type SellerOptions, type SubscriptionSeller, subscriptionSeller } from './seller/seller.ts';

/* A seller, a store, a front, and the buyer's processes behind it. */

/** Longer than any call takes: what a dead process held is free once the clock was moved by it. Ms. */
export const CALL_MS = 60_000;

export interface World {
  readonly seller: SubscriptionSeller;
  /** Below it are the URLs that sellers are told. */
  readonly baseUrl: string;
  readonly start: () => Promise<BuyerProcess>;
  /** Where the next connections go, in turn; those that are gone are passed over. */
  readonly send: (...to: readonly BuyerProcess[]) => void;
  /** So much time passes, on the clock of the store. Ms. */
  readonly later: (ms: number) => Promise<void>;
}

export interface WorldOptions {
  readonly kind: Kind;
  /** `inject('shared')`. */
  readonly shared: string;
  readonly startBy: (seller: SubscriptionSeller) => StartBuyer;
  readonly seller?: SellerOptions;
}

/** Leaves nothing behind, however it ends. */
export async function inWorld<T>(options: WorldOptions, play: (world: World) => Promise<T>): Promise<T> {
  const { kind, shared, startBy } = options;
  const living = new Set<BuyerProcess>();
  let doors: readonly BuyerProcess[] = [];
  let turn = 0;
  let offsetMs = 0;
  let front: Front | undefined;
  let backend: Backend | undefined;
  const seller = await subscriptionSeller(options.seller);
  try {
    backend = await BACKENDS[kind](shared);
    const { place } = backend;
    front = await startFront(async () => {
      const open = doors.filter((door) => !door.isGone());
      turn += 1;
      const door = open[turn % open.length];
      if (!door) throw new Error('nobody is there');
      return door.port;
    });
    const baseUrl = `http://127.0.0.1:${front.port}/webhooks`;
    const startBuyer = startBy(seller);
    return await play({
      seller,
      baseUrl,
      start: async () => {
        const process = await startBuyer({ place, baseUrl, token: seller.token, offsetMs, callMs: CALL_MS });
        living.add(process);
        return process;
      },
      send: (...to) => {
        doors = to;
      },
      later: async (ms) => {
        offsetMs += ms;
        const told = [...living].filter((process) => !process.isGone());
        await Promise.all(
          told.map((process) => process.ask({ what: 'clock', offsetMs }).catch(() => undefined)),
        );
      },
    });
  } finally {
    await Promise.allSettled([...living].map((process) => process.end()));
    await front?.close();
    await seller.close();
    await backend?.remove();
  }
}

const OPEN: readonly Seen['state'][] = ['pending', 'removing'];

/** All subscriptions of the seller, once each has come to its end. Time passes meanwhile. @throws Error where that never is. */
export async function settled(world: World, process: BuyerProcess): Promise<readonly Seen[]> {
  let seen: readonly Seen[] = [];
  for (let tries = 0; tries < 1000; tries += 1) {
    seen = await process.ask<readonly Seen[]>({ what: 'list', agentUrl: world.seller.agentUrl });
    if (!seen.some(({ state }) => OPEN.includes(state))) return seen;
    if (tries % 8 === 7) await world.later(CALL_MS);
    await wait(5);
  }
  throw new Error(`never settled: ${JSON.stringify(seen)}`);
}

const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  JSON.stringify([...new Set(a)].toSorted()) === JSON.stringify([...new Set(b)].toSorted());

const schemeOf = ({ authentication }: Entry): string => authentication?.schemes[0] ?? 'signature';

export const oursIn = (world: World, set: string): readonly Entry[] =>
  world.seller.entries(set).filter(({ url }) => url.startsWith(world.baseUrl));

/** What is wrong with a set, by what the seller has and what the buyer says that it has. */
export function faultsIn(
  world: World,
  set: string,
  others: readonly Entry[],
  seen: readonly Seen[],
): readonly string[] {
  const faults: string[] = [];
  const ours = oursIn(world, set);
  const theirs = world.seller.entries(set).filter((entry) => !ours.includes(entry));
  if (JSON.stringify(theirs) !== JSON.stringify(others)) {
    faults.push(`others are not as they were: ${JSON.stringify(theirs)}`);
  }
  for (const { ref, subscriberId, state, reason, eventTypes, scheme } of seen) {
    const found = ours.filter(({ subscriber_id: id }) => id === subscriberId);
    if (state === 'active') {
      const [entry] = found;
      const isRight =
        found.length === 1 &&
        entry?.active === true &&
        isSame(entry.event_types, eventTypes) &&
        schemeOf(entry) === scheme;
      if (!isRight) faults.push(`${ref} is active, and the seller has ${JSON.stringify(found)}`);
    } else if (reason === undefined || reason === '') faults.push(`${ref} is ${state} without a reason`);
  }
  const known = new Set(seen.map(({ subscriberId }) => subscriberId));
  const unknown = ours.filter(({ subscriber_id: id }) => !known.has(id));
  if (unknown.length > 0) faults.push(`ours, and nobody knows of them: ${JSON.stringify(unknown)}`);
  return faults;
}

/** Proofs of control and events that were not answered as they have to be. */
export const refusedIn = (log: readonly Line[]): readonly Line[] =>
  log.filter(
    (line) =>
      (line.what === 'proof' && !line.isProven) ||
      (line.what === 'event' && !(line.status !== undefined && line.status >= 200 && line.status < 300)),
  );
