import type { RaiseAlarm } from '../alarms.ts';
import type { SenderEntry } from '../senders.ts';
import { ADAGENTS, type AdAgents } from './adagents.ts';
import type { Allowance } from './allowance.ts';
import { type Answer, type Copy, freeLeave, type Wish } from './document.ts';
import type { DocumentCache } from './document-cache.ts';
import type { KeySet } from './jwks.ts';
import { createPublisherListings, type Listing } from './publisher-listings.ts';
import { pooled } from './pooled.ts';

/** Which keys the publishers of a sender pin (verification.md §5.5): the union of what each one says. */
export interface PinState {
  /** None, and nothing undecided: no publisher pins. */
  readonly sets: readonly KeySet[];
  /** Why other keys may be pinned than these; for the owner's log. */
  readonly undecided?: string;
}

export interface HeldPins extends PinState {
  /** The sets from copies within their life. */
  readonly fresh: readonly KeySet[];
  /** Some copy is past its life. */
  readonly overdue: boolean;
}

/** What is needed of a publisher's file that is fetched again beyond its own life. */
export interface PinWish extends Omit<Wish<unknown>, 'wanted'> {
  wanted(set: KeySet): boolean;
}

/** Gives each publisher's file leave to be fetched while there is some left. */
type EachLeave = Allowance['leave'];

export interface PublisherPins {
  /** What is held, without any fetch. */
  held(sender: SenderEntry): HeldPins;
  /** Says that the copies held were used: see `DocumentCache.used`. */
  used(sender: SenderEntry): void;
  /** From copies within their life; the ones held where they cannot be refreshed. */
  current(sender: SenderEntry, leave?: EachLeave): Promise<PinState>;
  /** From copies that fulfil the wish, fetched again if need be; undecided where one of them could not. */
  renewed(sender: SenderEntry, wish: PinWish, leave: EachLeave): Promise<PinState>;
}

export interface PublisherPinsOptions {
  readonly cache: DocumentCache;
  readonly allowLoopback: boolean;
  readonly raiseAlarm: RaiseAlarm;
  /** Unix ms. */
  readonly now: () => number;
  /** Files fetched at a time for one sender. */
  readonly width: number;
}

const NOBODY: HeldPins = { sets: [], fresh: [], overdue: false };
/** Enough to see what is wrong. */
const MAX_REASONS = 4;

export function createPublisherPins(options: PublisherPinsOptions): PublisherPins {
  const { cache, allowLoopback, width } = options;
  const reading: Reading = { cache, listed: createPublisherListings(options) };
  const urlsOf = (sender: SenderEntry): readonly string[] => adagentsUrls(sender, allowLoopback);
  return {
    held: (sender) => (sender.publishers === undefined ? NOBODY : held(reading, sender, urlsOf(sender))),
    used: (sender) => {
      for (const url of urlsOf(sender)) cache.used(ADAGENTS, url, sender.agentUrl);
    },
    current: async (sender, leave = freeLeave) => {
      const ask = async (url: string): Promise<Listing> =>
        read(reading, sender, url, await cache.current(ADAGENTS, url, leave(sender.agentUrl)));
      return union(await pooled(urlsOf(sender), width, ask));
    },
    renewed: async (sender, wish, leave) => {
      const pinned = ({ value }: Copy<AdAgents>): KeySet | string | undefined =>
        value.pinned.get(sender.agentUrl);
      const documentWish: Wish<AdAgents> = {
        ...wish,
        wanted: (copy) => {
          const set = pinned(copy);
          return typeof set === 'object' && wish.wanted(set);
        },
      };
      const ask = async (url: string): Promise<Listing> => {
        const answer = await cache.renewed(ADAGENTS, url, documentWish, leave(sender.agentUrl));
        const listing = read(reading, sender, url, answer);
        return { ...(listing.broken !== undefined && { undecided: listing.broken }), ...listing };
      };
      return union(await pooled(urlsOf(sender), width, ask));
    },
  };
}

interface Reading {
  readonly cache: DocumentCache;
  readonly listed: (agentUrl: string, url: string, copy: Copy<AdAgents>) => Listing;
}

function held({ cache, listed }: Reading, sender: SenderEntry, urls: readonly string[]): HeldPins {
  const listings: Listing[] = [];
  const fresh: KeySet[] = [];
  let overdue = false;
  for (const url of urls) {
    const copy = cache.held(ADAGENTS, url);
    const listing = copy
      ? listed(sender.agentUrl, url, copy)
      : { undecided: `adagents.json at ${url}: not held` };
    listings.push(listing);
    if (copy && !cache.isFresh(copy)) overdue = true;
    else if (listing.set !== undefined) fresh.push(listing.set);
  }
  return { ...union(listings), fresh, overdue };
}

/** A file that cannot be had might pin: undecided, beside what an older copy says. */
function read(
  { cache, listed }: Reading,
  sender: SenderEntry,
  url: string,
  answer: Answer<AdAgents>,
): Listing {
  if (answer.ok) return listed(sender.agentUrl, url, answer.copy);
  const copy = cache.held(ADAGENTS, url);
  const before = copy && listed(sender.agentUrl, url, copy);
  return { ...before, undecided: `adagents.json at ${url}: ${answer.reason}` };
}

/** @param allowLoopback development: publishers of an agent that is reached over http are asked over http. */
function adagentsUrls({ agentUrl, publishers }: SenderEntry, allowLoopback: boolean): readonly string[] {
  if (publishers === undefined) return [];
  const scheme = allowLoopback && agentUrl.startsWith('http:') ? 'http' : 'https';
  return publishers.map((domain) => `${scheme}://${domain}/.well-known/adagents.json`);
}

function union(listings: readonly Listing[]): PinState {
  const sets: KeySet[] = [];
  const reasons: string[] = [];
  for (const { set, undecided } of listings) {
    if (set !== undefined) sets.push(set);
    if (undecided !== undefined && reasons.length < MAX_REASONS) reasons.push(undecided);
  }
  return { sets, ...(reasons.length > 0 && { undecided: reasons.join('; ') }) };
}
