// Records thumbprints of the keys that senders published and used, for 400 days (verification.md §2.36).
// Read by `key-owners.ts` if a sender's documents cannot be fetched, or if two senders publish one key. A record shows
// who owns a key; it never verifies a signature.

import type { Logger } from '../shared/alarms.ts';
import { materialOf } from '../auth/rfc9421/revoked-at.ts';
import { putBounded } from '../shared/bounded.ts';
import { isJsonObject } from '../codec/members.ts';
import { encodeBase64Url, utf8 } from '../codec/encoding.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { loadHashes } from '../crypto/native-hashes.ts';
import type { Hashes, Jwk } from '../crypto/engine.ts';
import { once } from '../shared/single-flight.ts';
import type { Store } from '../stores/store.ts';
import { allKeys, type KeySet } from './jwks.ts';

/** The recorded keys of one sender, however old. They are never used to verify a signature. */
export interface KeyRecord {
  /** True if a copy of the sender's keys was ever fetched. */
  readonly isKnown: boolean;
  /** True if the sender has published the key under this `kid`. */
  hasPublished(kid: string, jwk: Jwk): boolean;
  /**
   * True if a signature with this key was accepted from this sender. Before that, all other senders at the URL were
   * checked and did not have the key.
   */
  wasOwn(kid: string, jwk: Jwk): boolean;
  /**
   * True if a signature with this key was accepted from this sender, even at a URL without other senders. At such a
   * URL, no other sender was checked.
   */
  hasVerified(kid: string, jwk: Jwk): boolean;
}

/**
 * Thumbprints of senders' keys. They are kept in the store if it keeps rows, otherwise in this process
 * (verification.md §2.36).
 */
export interface KeyRecords {
  /** Returns the sender's record, including the store's latest thumbprints. Rejects if the store cannot be read. */
  of(agentUrl: string): Promise<KeyRecord>;
  /** Records a fetched copy of the sender's keys, in the background. */
  readonly published: (agentUrl: string, set: KeySet) => void;
  /**
   * Records, in the background, that a signature was accepted as the sender's.
   * @param alone true if the URL has no other sender.
   */
  verified(agentUrl: string, kid: string, jwk: Jwk, alone: boolean): void;
}

interface KeyRecordsOptions {
  readonly store?: Pick<Store, 'registrations'> | undefined;
  readonly logger: Logger;
}

/** The maximum number of senders whose thumbprints are held in this process. */
const MAX_SENDERS = 10_000;
/**
 * The maximum number of published thumbprints of a sender, 32 bytes each; the newest are kept. A JWKS may have as many
 * keys.
 */
const MAX_PUBLISHED = 1_000;
const MAX_VERIFIED = 100;
/**
 * The time in ms after the last save at which a sender's record expires. A record is saved when a key is new, and when
 * the record is read after half of this time.
 */
const KEPT_MS = 400 * 86_400_000;

/** Sets of thumbprints, oldest first. */
interface Thumbprints {
  readonly published: Set<string>;
  readonly verified: Set<string>;
}

const newThumbprints = (): Thumbprints => ({ published: new Set(), verified: new Set() });

/**
 * Adds the thumbprints of `from` to `to`, and drops the oldest ones beyond `most`.
 * @returns true if at least one was new.
 */
function addAll(to: Set<string>, from: Iterable<string>, most: number): boolean {
  const added = [...from].filter((one) => !to.has(one));
  for (const one of added) to.add(one);
  for (const one of to) {
    if (to.size <= most) break;
    to.delete(one);
  }
  return added.length > 0;
}

function merge(to: Thumbprints, from: Thumbprints): boolean {
  const published = addAll(to.published, from.published, MAX_PUBLISHED);
  return addAll(to.verified, from.verified, MAX_VERIFIED) || published;
}

const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? (value as unknown[]).filter((one) => typeof one === 'string') : [];

/** Parses the stored row. A row that cannot be read is treated as empty. */
function readRow(value: string | undefined): Thumbprints {
  const json = value === undefined ? undefined : parseStrictObject(utf8(value));
  const row = json?.ok === true && isJsonObject(json.value) ? json.value : {};
  return { published: new Set(textsIn(row['published'])), verified: new Set(textsIn(row['verified'])) };
}

export function createKeyRecords({ store, logger }: KeyRecordsOptions): KeyRecords {
  const rows = store?.registrations;
  const hashes = once(loadHashes);
  const held = new Map<string, Thumbprints>();
  const unsaved = new Map<string, true>();
  const seen = new WeakMap<KeySet, Set<string>>();
  const verifiedKeys = new WeakMap<Jwk, Set<string>>();

  const heldOf = (agentUrl: string): Thumbprints =>
    held.get(agentUrl) ?? putBounded(held, agentUrl, newThumbprints(), MAX_SENDERS);

  /** Merges this process's thumbprints with the stored ones; afterwards both have all of them. */
  const exchange = async (agentUrl: string, of: Hashes): Promise<Thumbprints> => {
    const own = heldOf(agentUrl);
    // The row is stored without a sender, so it appears in no list and does not count against a sender's limit of
    // rows.
    const [kind, id] = ['watch', `keys ${of.sha256Hex(utf8(agentUrl))}`] as const;
    const stored = await rows?.run('', (step, now) => {
      const row = step.get(kind, id);
      const all = readRow(row?.value);
      const isNew = merge(all, own);
      const isOld = row !== undefined && (row.expiresAt ?? 0) < now + KEPT_MS / 2;
      const value = JSON.stringify({ published: [...all.published], verified: [...all.verified] });
      if (isNew || isOld)
        step.save({ kind, sender: '', id, value, dueAt: null, list: null, expiresAt: now + KEPT_MS });
      return all;
    });
    if (stored) merge(own, stored);
    return own;
  };

  const note = async (agentUrl: string, change: (to: Thumbprints, of: Hashes) => boolean): Promise<void> => {
    const loaded = await hashes();
    if (!change(heldOf(agentUrl), loaded) && !unsaved.has(agentUrl)) return;
    try {
      await exchange(agentUrl, loaded);
      unsaved.delete(agentUrl);
    } catch (error) {
      // The store failed. The thumbprints stay in this process, and are stored when the sender's next copy is
      // recorded.
      putBounded(unsaved, agentUrl, true, MAX_SENDERS);
      logger.debug({ err: error, agentUrl }, 'thumbprints of keys are not stored yet');
    }
  };

  const isFirst = <K extends object>(map: WeakMap<K, Set<string>>, of: K, agentUrl: string): boolean => {
    const agents = map.get(of) ?? new Set();
    if (agents.has(agentUrl)) return false;
    map.set(of, agents.add(agentUrl));
    return true;
  };

  return {
    of: async (agentUrl) => {
      const loaded = await hashes();
      const { published, verified } = await exchange(agentUrl, loaded);
      return {
        isKnown: published.size > 0,
        hasPublished: (kid, jwk) => published.has(thumbprint(loaded, kid, jwk)),
        wasOwn: (kid, jwk) => verified.has(thumbprint(loaded, kid, jwk)),
        hasVerified: (kid, jwk) => {
          const print = thumbprint(loaded, kid, jwk);
          return verified.has(print) || verified.has(ALONE + print);
        },
      };
    },
    published: (agentUrl, set) => {
      if (!isFirst(seen, set, agentUrl)) return;
      void note(agentUrl, ({ published }, of) => {
        const found = allKeys(set).map(([kid, jwk]) => thumbprint(of, kid, jwk));
        // `EMPTY` is added so that a copy without keys is recorded too.
        return addAll(published, [EMPTY, ...found], MAX_PUBLISHED);
      });
    },
    verified: (agentUrl, kid, jwk, alone) => {
      const mark = alone ? ALONE : '';
      if (!isFirst(verifiedKeys, jwk, mark + agentUrl)) return;
      void note(agentUrl, ({ verified }, of) =>
        addAll(verified, [mark + thumbprint(of, kid, jwk)], MAX_VERIFIED),
      );
    },
  };
}

/**
 * The prefix of the thumbprint of a key that verified at a URL with one sender only. There, no other sender was
 * checked.
 */
const ALONE = '~';

/** Stored among the thumbprints to show that a copy was fetched, even if it had no keys. */
const EMPTY = '-';

/** Returns the thumbprint of a key and its `kid`: 32 bytes in base64url. */
function thumbprint(hashes: Hashes, kid: string, jwk: Jwk): string {
  return encodeBase64Url(hashes.sha256(utf8(JSON.stringify([materialOf(jwk), kid]))));
}
