// The revocation lists in force, by URL. A register records the senders that depend on a list, when the list is
// forgotten, and how lists are merged (verification.md §5.23).
// Called by `revocation.ts` alone.

import type { Protocols } from '../shared/wire-names.ts';
import { placeName, type SenderEntry } from '../config/sender-entry.ts';
import type { Locator } from './agent-location.ts';
import type { BrandJson } from './brand-json.ts';
import type { DocumentCache } from './document-cache.ts';
import { type DocumentKind, isWithin } from './document.ts';
import { MAX_LIFE_MS } from './lifetimes.ts';
import { isPinned } from './pins.ts';

/** The part of a published list that check 9 needs (verification.md §5.25). */
export interface RevocationList {
  readonly kids: ReadonlySet<string>;
  /** Unix ms. */
  readonly updated: number;
  /** Unix ms. */
  readonly nextUpdate: number;
  /** Time in ms from `updated` to `next_update`, limited to between 1 min and 30 min. */
  readonly interval: number;
}

/** The registers of all lists that senders depend on, or depended on before. */
export interface Registers {
  /** The register of the list at a URL. */
  get(url: string): Register | undefined;
  /** Returns the registers of the lists that this sender depends on now, and notes that a delivery uses them. */
  use(sources: readonly ListSource[], sender: SenderEntry): readonly Register[];
  /** True if the list is refreshed at intervals, even without deliveries. */
  isPolled(url: string): boolean;
}

interface RegistersOptions {
  /** Unix ms. */
  readonly now: () => number;
  /** Returns the URLs of a sender's lists, from cached documents. */
  readonly sourcesOf: (sender: SenderEntry) => readonly ListSource[];
  /** Called when a list is forgotten. */
  readonly forget: (url: string) => void;
}

/** A list is no longer polled when no delivery has used it for this long. Ms. Some sellers deliver once a day. */
const IDLE_MS = 2 * 86_400_000;
/** A list is still polled for this long after no brand.json leads to it any more (verification.md §5.23). Ms. */
const GRACE_MS = 3_600_000;
/**
 * Most lists that are kept although no sender depends on them now, in case brand.json leads there again. They are
 * those of 33 origins, with three each. There must be a limit: a seller can name another origin every minute, and
 * one list can take some megabytes.
 */
const MAX_ABANDONED = 100;

/**
 * Creates the registers, by URL. One that a sender depends on is never dropped, because an outage would then let a
 * revoked key through. There are at most as many of these as senders. Of those that no sender depends on, the
 * latest are kept.
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
  /** Adds a register that a sender no longer depends on. Drops the oldest beyond `MAX_ABANDONED`. */
  add(register: Register, now: number): void;
  /** Removes the register of a list that a sender depends on, or depends on again. */
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
        // A register that another sender uses or depends on is not dropped.
        if (oldest.register.usedAt <= oldest.at && !isNamed(oldest.register)) drop(url);
      }
    },
    remove: (url) => void abandoned.delete(url),
  };
}

/** The list in force at one URL. */
interface ListInForce extends RevocationList {
  /** The revoked key ids. Belongs to this register alone: lists with the same `updated` are merged into it. */
  readonly kids: Set<string>;
  /** Start of the fetch that last confirmed it, Unix ms. */
  readonly confirmedAt: number;
  /**
   * True if the lists with this `updated` revoke too many keys to be merged. Then only the newest list is in force.
   */
  readonly isOverflowed: boolean;
}

/** The state of the list at one URL, in addition to the copy that was fetched last. */
export interface Register {
  readonly url: string;
  /** True if a list must exist: configuration names it, or one was served before. */
  required: boolean;
  inForce: ListInForce | undefined;
  /** Fetch number of the copy that was processed last. */
  processed: number;
  /** The reason why the last copy was rejected. */
  invalidReason: string | undefined;
  /** True if the alarm `revocation_stale` was raised and the list has not become fresh since. */
  reported: boolean;
  /** Unix ms. */
  usedAt: number;
  /** The last time that a sender was seen to depend on the list, by a delivery or by its brand.json; Unix ms. */
  namedAt: number;
  /** Senders that share the list, by `placeName`; a key of any of them may sign it. */
  readonly senders: Map<string, SenderEntry>;
}

/** Most senders of a list, enough for an operator's agents. A `senders` function might return ever new ones. */
const MAX_SENDERS = 100;
/** Most key ids that all lists with the same `updated` may revoke together (verification.md §5.23). */
export const MAX_KIDS = 10_000;
/** Most characters of those key ids together: four lists of 256 KiB, the largest size that is read. */
export const MAX_KID_CHARACTERS = 1_048_576;
/** Memory of a key id in addition to its characters, measured. Bytes. */
const HEAP_PER_KID = 64;

/** Estimated memory of the list in force. Bytes. */
export function registerBytes({ inForce }: Pick<Register, 'inForce'>): number {
  return inForce === undefined ? 0 : charactersOf(inForce.kids) + inForce.kids.size * HEAP_PER_KID;
}

function charactersOf(kids: Iterable<string>): number {
  let sum = 0;
  for (const { length } of kids) sum += length;
  return sum;
}

/** If a list cannot be refreshed, it is treated as fresh for this many intervals after `next_update`. */
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
  // If no known key has signed the list, a key of this new sender may have. Checking again keeps the first sender
  // from blocking the list for all others.
  if (joins && register.invalidReason !== undefined) register.processed = 0;
}

/**
 * Result of putting a list into force. `overflow`: it revokes too many key ids together with earlier lists of the
 * same `updated`, which are therefore no longer in force.
 */
type TakeResult = 'taken' | 'overflow' | { readonly invalidReason: string };

/**
 * Puts a list into force, unless a newer one is. An old list that is served again, by mistake or not, must not make
 * a revoked key valid.
 */
export function take(register: Register, list: RevocationList, began: number): TakeResult {
  const { inForce } = register;
  // The lists' own times are compared: if our clock was set back, new lists must not be taken for old ones.
  if (inForce !== undefined && list.updated < inForce.updated) {
    return { invalidReason: 'its updated is older than that of the list in force, which is kept' };
  }
  // A time in the future would make every later list look older.
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

/** Adds only key ids that are not in the set: a list that is fetched every minute must not cost more each time. */
function mergeInto(kids: Set<string>, found: ReadonlySet<string>): boolean {
  const added = [...found].filter((kid) => !kids.has(kid));
  if (added.length > 0 && isTooMuch(kids, added)) return false;
  for (const kid of added) kids.add(kid);
  return true;
}

/**
 * True if the list in force is fresh enough to prove that a key is not revoked. A `next_update` far in the future
 * is treated as 30 min ahead.
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
 * The URL of a sender's list. `required`: configuration names it. Otherwise a list is required once one was served.
 */
interface ListSource {
  readonly url: string;
  readonly required: boolean;
}

export interface ListSourceOptions {
  /** The accepted protocol names. A key that the list of one name revokes is revoked under every name. */
  readonly protocols: Protocols;
  /** Returns the URL where the search for a sender's brand.json begins. */
  readonly startOf: Locator['startOf'];
  /** The cache that has the brand.json files. */
  readonly documents: Pick<DocumentCache, 'cached'>;
  readonly brandJson: DocumentKind<BrandJson>;
}

/**
 * Returns a function that gives the URLs of a sender's lists: the one that configuration names. Otherwise they are
 * the well-known paths at the origin of the brand.json that lists the operator's agents, after its pointer if it
 * has one. For a sender with static pins no list is searched, because it has no brand.json.
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
    // If brand.json is no longer cached, its last version is used. Otherwise an outage would switch to another list
    // than the one that revokes.
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
