import { type BuyerProcess, GoneError } from '../buyer/processes.ts';
import type { Handled, Seen, Wish } from '../buyer/wire.ts';
import type { Entry } from '../seller/entries.ts';
import { accountOf, LEGACY_CREDENTIALS, LEGACY_OTHER, OTHERS } from '../seller/others.ts';
import { AGENT_SET } from '../seller/seller.ts';
import { CALL_MS, faultsIn, refusedIn, settled, type World } from '../world.ts';

/*
 * A change of a set, made by a process that dies at its first step, by one that dies at its second, and so on, until one lives.
 * Proofs of control and events come to another process. What died is started again, and finishes.
 */

export interface Sweep {
  readonly change: 'subscribe' | 'change of types' | 'unsubscribe';
  readonly scheme: NonNullable<Wish['scheme']>;
  readonly of: 'account' | 'agent';
  /** Another subscriber has credentials, which the owner gives. */
  readonly hasLegacyOther?: true;
}

export interface Swept {
  readonly wrong: readonly string[];
  /** Steps of the change, in order. */
  readonly steps: readonly string[];
  readonly deaths: number;
  readonly proofs: number;
  readonly events: number;
  /** Ends of the change: `active`, `refused`, or `gone`. */
  readonly ends: Readonly<Record<string, number>>;
}

const BEFORE = ['product.updated', 'creative.purged'];
const AFTER = ['wholesale_feed.bulk_change', 'product.updated', 'account.status_changed'];
/** More steps than a change has. */
const MOST_STEPS = 400;

interface Turn {
  readonly set: string;
  readonly others: readonly Entry[];
  readonly ref: string;
  /** What there is before the change; absent: nothing. */
  readonly former?: Wish;
  readonly wish: Wish;
  readonly removal: Wish;
}

function turnOf({ change, scheme, of, hasLegacyOther }: Sweep, world: World, at: number): Turn {
  const { seller } = world;
  const ref = `ref-${at}`;
  const isAgent = of === 'agent';
  const set = isAgent ? AGENT_SET : `acc-${at}`;
  const others = isAgent ? [] : [...OTHERS, ...(hasLegacyOther ? [LEGACY_OTHER] : [])];
  if (!isAgent) {
    seller.add(accountOf(set));
    for (const entry of others) seller.put(set, entry);
  }
  /** All that a removal takes. */
  const wish: Wish = {
    agentUrl: seller.agentUrl,
    ref,
    ...(isAgent ? { exclusive: true } : { account: { brand: { domain: `${set}.example` } } }),
    ...(hasLegacyOther && { credentials: LEGACY_CREDENTIALS }),
  };
  const former = { ...wish, scheme, eventTypes: isAgent ? ['capabilities.changed'] : BEFORE };
  if (change === 'subscribe') return { set, others, ref, wish: former, removal: wish };
  if (change === 'unsubscribe') return { set, others, ref, former, wish, removal: wish };
  // The one type of agents cannot be changed: what can is how it comes.
  const next = isAgent ? { ...former, scheme: other(scheme) } : { ...former, eventTypes: AFTER };
  return { set, others, ref, former, wish: next, removal: wish };
}

const other = (scheme: NonNullable<Wish['scheme']>): NonNullable<Wish['scheme']> =>
  scheme === 'signature' ? 'HMAC-SHA256' : 'signature';

/** @returns whether it lived. */
async function lives(process: BuyerProcess, sweep: Sweep, wish: Wish): Promise<boolean> {
  try {
    await process.ask({ what: sweep.change === 'unsubscribe' ? 'unsubscribe' : 'subscribe', wish });
    return true;
  } catch (error) {
    if (error instanceof GoneError) return false;
    throw error;
  }
}

export interface SweepOptions {
  /** Only each so many-th step kills, the first at `first`; all by default. */
  readonly every?: number;
  readonly first?: number;
  /** What died is not started again: the other process has started its registrations, and finishes. */
  readonly isOtherToFinish?: boolean;
}

export async function sweep(
  world: World,
  of: Sweep,
  { every = 1, first = 0, isOtherToFinish = false }: SweepOptions = {},
): Promise<Swept> {
  const { seller, baseUrl } = world;
  const wrong: string[] = [];
  const ends: Record<string, number> = {};
  let steps: readonly string[] = [];
  let deaths = 0;
  let wasMade = false;
  let changer = await world.start();
  const receiving = await world.start();
  world.send(receiving);
  if (isOtherToFinish) await receiving.ask({ what: 'start' });
  for (let at = first; at < MOST_STEPS; at += every) {
    const turn = turnOf(of, world, at);
    const { set, others, ref } = turn;
    if (turn.former) await changer.ask({ what: 'subscribe', wish: turn.former });
    // Whoever is told of the change first is told of events at once.
    seller.always(({ operation, isDry }) =>
      operation.startsWith('sync_') && isDry !== true
        ? { after: () => seller.emit(set, baseUrl) }
        : undefined,
    );
    await changer.ask({ what: 'arm', diesAt: at });
    const isAlive = await lives(changer, of, turn.wish);
    if (isAlive) {
      steps = await changer.ask<readonly string[]>({ what: 'passed' });
      await changer.ask({ what: 'arm', diesAt: MOST_STEPS * MOST_STEPS });
    } else {
      deaths += 1;
      changer = await world.start();
      await world.later(2 * CALL_MS);
      if (!isOtherToFinish) await changer.ask({ what: 'start' });
    }
    const seen = (await settled(world, changer)).filter((one) => one.ref === ref);
    if (!isAlive && !isOtherToFinish) await changer.ask({ what: 'stop' });
    const where = isAlive ? 'it lived' : `it died at step ${at}`;
    const told =
      seen.length === 0
        ? 'gone'
        : seen.map(({ state, eventTypes }) => `${state} ${isOf(turn.wish, eventTypes)}`).join();
    ends[told] = (ends[told] ?? 0) + 1;
    wrong.push(...faultsIn(world, set, others, seen).map((fault) => `${where}: ${fault}`));
    const sent = await seller.emit(set, baseUrl);
    if (seen.some(({ state }) => state === 'active') && sent.length === 0) wrong.push(`${where}: no events`);
    const handled = await receiving.ask<readonly Handled[]>({ what: 'handled' });
    for (const { key, subscriberId } of sent) {
      const { subscription } = handled.find((one) => one.key === key) ?? {};
      if (subscription?.ref !== ref || subscription.subscriberId !== subscriberId) {
        wrong.push(`${where}: an event of ${ref} was handled as ${JSON.stringify(subscription)}`);
      }
    }
    const isMade = isAsWished(turn.wish, seen);
    if ((isAlive || wasMade) && !isMade) wrong.push(`${where}, and the change was not made`);
    wasMade = isMade;
    if (of.of === 'agent') await changer.ask({ what: 'unsubscribe', wish: turn.removal });
    seller.always(undefined);
    if (isAlive) break;
  }
  const { log } = seller;
  wrong.push(...refusedIn(log).map((line) => `refused: ${JSON.stringify(line)}`));
  const proofs = log.filter(({ what }) => what === 'proof').length;
  const events = log.filter(({ what }) => what === 'event').length;
  return { wrong, steps, deaths, proofs, events, ends };
}

/** It was done as it was wanted, or is named. */
function isAsWished(wish: Wish, [one]: readonly Seen[]): boolean {
  if (wish.eventTypes === undefined || !one) return wish.eventTypes === undefined && !one;
  const isAsked = isOf(wish, one.eventTypes) === 'as wanted' && one.scheme === wish.scheme;
  return isAsked && (one.state === 'active' || one.state === 'refused');
}

const isOf = ({ eventTypes = [] }: Wish, types: Seen['eventTypes']): string =>
  JSON.stringify([...eventTypes].toSorted()) === JSON.stringify([...types].toSorted())
    ? 'as wanted'
    : 'as before';
