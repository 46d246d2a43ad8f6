// Keeps the state of the revocation list at each URL, called its register: the list in force and the senders that
// depend on it. Decides when a register is dropped and how lists are merged (verification.md §5.23).
// Called by `revocation.ts` alone.

import type { Protocols } from '../shared/wire-names.ts';
import { placeName, type SenderEntry } from '../config/sender-entry.ts';
import type { Locator } from './agent-location.ts';
import type { BrandJson } from './brand-json.ts';
import type { DocumentCache } from './document-cache.ts';
import { type DocumentKind, isWithin } from './document.ts';
import { MAX_LIFE_MS } from './lifetimes.ts';
import { isPinned } from './pins.ts';

/** The part of a published list that check 9 (revocation) needs (verification.md §5.25). */
export interface RevocationList {
  readonly kids: ReadonlySet<string>;
  /** The time of the list, from its member `updated`, Unix ms. */
  readonly updated: number;
  /** The time at which the next list is announced, from `next_update`, Unix ms. */
  readonly nextUpdate: number;
  /** Time in ms from `updated` to `next_update`, limited to between 1 min and 30 min. */
  readonly interval: number;
}

/** The states (registers) of all revocation lists that senders depend on, or depended on before. */
export interface Registers {
  /** Returns the state of the list at a URL. */
  get(url: string): Register | undefined;
  /** Returns the states of the lists that this sender depends on now, and notes that they are used now. */
  use(sources: readonly ListSource[], sender: SenderEntry): readonly Register[];
  /** True if the list has to be fetched when it is due, even without deliveries. */
  isPolled(url: string): boolean;
}

interface RegistersOptions {
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  /** Returns the URLs of a sender's lists, from cached documents. */
  readonly sourcesOf: (sender: SenderEntry) => readonly ListSource[];
  /** Called when the state of a list is dropped. */
  readonly forget: (url: string) => void;
}

/**
 * The time in ms after its last use by a delivery at which a list is no longer polled. Some sellers deliver once a
 * day.
 */
const IDLE_MS = 2 * 86_400_000;
/**
 * The time in ms for which a list is still polled after no brand.json leads to it any more (verification.md §5.23).
 */
const GRACE_MS = 3_600_000;
/**
 * The maximum number of lists that are kept although no sender depends on them now, in case a brand.json leads there
 * again. It is enough for 33 origins with three lists each. A limit is needed: a seller can name another origin every
 * minute, and one list can take some megabytes.
 */
const MAX_ABANDONED = 100;

/**
 * Creates the list states (registers) by URL. A list that a sender depends on is never dropped, because an outage would
 * then let a revoked key through. The number of senders bounds the number of such lists. Of the lists that senders no
 * longer depend on, the latest `MAX_ABANDONED` are kept.
 */
export function createRegisters({ now, sourcesOf, forget }: RegistersOptions): Registers {
  const registers = new Map<string, Register>();
  const current = new Map<string, readonly Register[]>();
  const isNamed = ({ url, senders }: Register): boolean => {
    for (const sender of senders.values()) {
      if (sourcesOf(sender).some((source) => source.url === url)) return true;
    }
    return false;
  };
  const abandoned = createAbandoned(isNamed, (url) => {
    registers.delete(url);
    forget(url);
  });
  return {
    get: (url) => registers.get(url),
    use: (sources, sender) => {
      const used = sources.map(({ url, required }) => {
        const register = registers.get(url) ?? newRegister(url);
        registers.set(url, register);
        noteUse(register, sender, required, now());
        return register;
      });
      const before = current.get(placeName(sender)) ?? [];
      if (before.length === used.length && used.every((register) => before.includes(register))) return used;
      current.set(placeName(sender), used);
      for (const { url } of used) abandoned.remove(url);
      for (const register of before) if (!used.includes(register)) abandoned.add(register, now());
      return used;
    },
    isPolled: (url) => {
      const register = registers.get(url);
      if (register?.required !== true || !isWithin(now(), register.usedAt, IDLE_MS)) return false;
      if (isNamed(register)) register.namedAt = now();
      return isWithin(now(), register.namedAt, GRACE_MS);
    },
  };
}

interface AbandonedRegisters {
  /** Adds a list that a sender no longer depends on. Drops the oldest lists beyond `MAX_ABANDONED`. */
  add(register: Register, now: number): void;
  /** Removes a list that a sender depends on, or depends on again. Its state is kept. */
  remove(url: string): void;
}

function createAbandoned(
  isNamed: (register: Register) => boolean,
  drop: (url: string) => void,
): AbandonedRegisters {
  const abandoned = new Map<string, { readonly register: Register; readonly at: number }>();
  return {
    add: (register, now) => {
      abandoned.delete(register.url);
      abandoned.set(register.url, { register, at: now });
      for (const [url, oldest] of abandoned) {
        if (abandoned.size <= MAX_ABANDONED) return;
        abandoned.delete(url);
        // The state stays if a sender has used the list since it was added here, or still depends on it.
        if (oldest.register.usedAt <= oldest.at && !isNamed(oldest.register)) drop(url);
      }
    },
    remove: (url) => void abandoned.delete(url),
  };
}

/**
 * The revocation list at one URL that decides now if keys are revoked. The copy fetched last may be newer, but
 * rejected.
 */
interface ListInForce extends RevocationList {
  /**
   * The revoked key ids. The set is not shared with a fetched list, because lists with the same `updated` are merged
   * into it.
   */
  readonly kids: Set<string>;
  /**
   * The start (Unix ms) of the fetch that last put this list into force. The same list is put into force again by each
   * fetch.
   */
  readonly confirmedAt: number;
  /**
   * True if the lists with this `updated` revoke too many keys to be merged. Then only the newest of these lists is in
   * force.
   */
  readonly isOverflowed: boolean;
}

/** The state of the revocation list at one URL, in addition to the copy in the document cache. */
export interface Register {
  readonly url: string;
  /** True if a list must exist: configuration names it, or one was served before. */
  required: boolean;
  inForce: ListInForce | undefined;
  /** The fetch number of the copy that was processed last; 0 before the first. */
  processed: number;
  /** The reason why the last copy was rejected; undefined if it was accepted. */
  invalidReason: string | undefined;
  /** True if the alarm `revocation_stale` was raised and the list has not become fresh since. */
  reported: boolean;
  /** The last time that a delivery, or the fetch at the start, used the list; Unix ms. */
  usedAt: number;
  /** The last time that a sender was seen to depend on the list, by a delivery or by its brand.json; Unix ms. */
  namedAt: number;
  /** Senders that share the list, by `placeName`; a key of any of them may sign it. */
  readonly senders: Map<string, SenderEntry>;
}

/**
 * The maximum number of senders remembered for a list, enough for an operator's agents. A limit is needed, because a
 * `senders` function might return ever new senders.
 */
const MAX_SENDERS = 100;
/**
 * The maximum number of key ids that all lists with the same `updated` may revoke together (verification.md §5.23).
 */
export const MAX_KIDS = 10_000;
/**
 * The maximum number of characters of the key ids that all lists with the same `updated` may revoke together. Four
 * lists of the largest size (256 KiB) have as many.
 */
export const MAX_KID_CHARACTERS = 1_048_576;
/** The bytes of memory that a key id needs in addition to its characters, measured. */
const HEAP_PER_KID = 64;

/** Returns the estimated memory of the list in force, in bytes. */
export function registerBytes({ inForce }: Pick<Register, 'inForce'>): number {
  return inForce === undefined ? 0 : charactersOf(inForce.kids) + inForce.kids.size * HEAP_PER_KID;
}

function charactersOf(kids: Iterable<string>): number {
  let sum = 0;
  for (const { length } of kids) sum += length;
  return sum;
}

/** The number of intervals after `next_update` for which a list that cannot be refreshed is still treated as fresh. */
const GRACE_INTERVALS = 4;

export function newRegister(url: string): Register {
  return {
    url,
    required: false,
    inForce: undefined,
    processed: 0,
    invalidReason: undefined,
    reported: false,
    usedAt: 0,
    namedAt: 0,
    senders: new Map(),
  };
}

/** Notes that a sender's deliveries depend on this list. */
function noteUse(register: Register, sender: SenderEntry, required: boolean, now: number): void {
  register.required ||= required;
  register.usedAt = now;
  register.namedAt = now;
  const name = placeName(sender);
  const joins = !register.senders.has(name);
  if (joins && register.senders.size >= MAX_SENDERS) return;
  register.senders.set(name, sender);
  // If the last copy was rejected, it is processed again, because a key of this new sender may have signed it.
  // Otherwise the first sender could block the list for all others.
  if (joins && register.invalidReason !== undefined) register.processed = 0;
}

/**
 * The result of putting a list into force. `overflow`: together with earlier lists of the same `updated`, it revokes
 * too many key ids. Those earlier lists are then no longer in force.
 */
type TakeResult = 'taken' | 'overflow' | { readonly invalidReason: string };

/**
 * Puts a list into force, unless a newer list is in force. An old list that is served again, by mistake or not, must
 * not make a revoked key valid.
 */
export function take(register: Register, list: RevocationList, began: number): TakeResult {
  const { inForce } = register;
  // The times in the lists are compared, not the times of the fetches. So a new list is accepted even if this
  // receiver's clock was set back.
  if (inForce !== undefined && list.updated < inForce.updated) {
    return { invalidReason: 'its updated is older than that of the list in force, which is kept' };
  }
  // An `updated` in the future is replaced by the time of the fetch, because otherwise every later list would look
  // older.
  const updated = Math.min(list.updated, began);
  // If two lists have the same time, a key that either of them revokes is revoked, because their order is unknown.
  const earlier = inForce?.updated === updated ? inForce : undefined;
  const merged = earlier?.isOverflowed === false && mergeInto(earlier.kids, list.kids);
  const kids = merged ? earlier.kids : new Set(list.kids);
  register.inForce = {
    ...list,
    kids,
    updated,
    confirmedAt: began,
    isOverflowed: earlier !== undefined && !merged,
  };
  return earlier?.isOverflowed === false && !merged ? 'overflow' : 'taken';
}

const isTooMuch = (kids: ReadonlySet<string>, added: readonly string[]): boolean =>
  kids.size + added.length > MAX_KIDS || charactersOf(kids) + charactersOf(added) > MAX_KID_CHARACTERS;

/**
 * Adds the key ids that are not in the set yet. Returns false, and adds none, if there would be too many. Key ids in
 * the set do not count again, because the same list may be fetched every minute.
 */
function mergeInto(kids: Set<string>, found: ReadonlySet<string>): boolean {
  const added = [...found].filter((kid) => !kids.has(kid));
  if (added.length > 0 && isTooMuch(kids, added)) return false;
  for (const kid of added) kids.add(kid);
  return true;
}

/**
 * True if the list in force is fresh enough to prove that a key is not revoked. A `next_update` further in the future
 * than 30 min after the fetch is treated as 30 min.
 */
export function isFresh(
  { inForce }: { readonly inForce: Omit<ListInForce, 'kids' | 'isOverflowed'> | undefined },
  now: number,
): boolean {
  if (inForce === undefined) return false;
  const due = Math.min(inForce.nextUpdate, inForce.confirmedAt + MAX_LIFE_MS);
  return now <= due + GRACE_INTERVALS * inForce.interval;
}

/**
 * The URL of a sender's list. `required` is true if configuration names it. Other lists become required once a list
 * was served there.
 */
interface ListSource {
  readonly url: string;
  readonly required: boolean;
}

export interface ListSourceOptions {
  /**
   * The accepted protocol names, each with paths of its lists. A key in the list of one name is revoked under every
   * name.
   */
  readonly protocols: Protocols;
  /** Returns the URL where the search for a sender's brand.json begins. */
  readonly startOf: Locator['startOf'];
  /** The cache that has the brand.json files. */
  readonly documents: Pick<DocumentCache, 'cached'>;
  readonly brandJson: DocumentKind<BrandJson>;
}

/**
 * Returns a function that gives the URLs of a sender's revocation lists: the URL that configuration names or, without
 * one, well-known URLs. These are at the origin of the brand.json that lists the operator's agents. For a sender with
 * pinned keys no list is searched, because no brand.json is fetched for it.
 */
export function createListSources(
  options: ListSourceOptions,
): (sender: SenderEntry) => readonly ListSource[] {
  const { protocols, startOf, documents, brandJson } = options;
  // URLs are parsed once per sender, not once per delivery.
  const known = new WeakMap<SenderEntry, { listing: string; sources: readonly ListSource[] }>();
  const discovered = (sender: SenderEntry): readonly ListSource[] => {
    const last = known.get(sender);
    const start = startOf(sender);
    if (start === undefined) return [];
    const brand = documents.cached(brandJson, start);
    // If brand.json is no longer cached, the origin found last is used. Otherwise an outage of its server could lead
    // to another list, without the revoked keys.
    const listing = brand === undefined ? (last?.listing ?? start) : (brand.value.next ?? start);
    if (last?.listing === listing) return last.sources;
    const sources = discoveredLists(protocols, listing).map((url) => ({ url, required: false }));
    known.set(sender, { listing, sources });
    return sources;
  };
  return (sender) => {
    const { url, discover } = sender.revocation ?? {};
    if (url !== undefined) return [{ url, required: true }];
    return discover === false || isPinned(sender) ? [] : discovered(sender);
  };
}

/**
 * Returns the URLs where an operator's lists may be (verification.md §5.24).
 * @param listing URL of the brand.json that lists the operator's agents.
 */
export function discoveredLists(protocols: Protocols, listing: string): readonly string[] {
  const paths = new Set(protocols.flatMap(({ revocationsPaths }) => revocationsPaths));
  return Array.from(paths, (path) => new URL(path, listing).href);
}
