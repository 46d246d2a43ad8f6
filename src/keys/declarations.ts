// Stored declarations of sellers about their keys and their protocol edition (verification.md §5.29).
// Read by `places.ts` for every key search; written by registrations, which request the capabilities of sellers.

import type { Logger } from '../shared/alarms.ts';
import { putBounded } from '../shared/bounded.ts';
import { utf8 } from '../codec/encoding.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Hashes } from '../crypto/engine.ts';
import { loadHashes } from '../crypto/native-hashes.ts';
import { once, singleFlight } from '../shared/single-flight.ts';
import type { RegistrationRow, RegistrationRows, Store } from '../stores/store.ts';
import { isWithin } from './document.ts';

/** The part of a seller's declared capabilities that keys and registrations need (verification.md §5.29). */
export interface Declared {
  /** The URL of the seller's brand.json, from `identity.brand_json_url`. */
  readonly brandJsonUrl?: string;
  /** The origin of the seller's JWKS, from `identity.key_origins.webhook_signing`. */
  readonly keyOrigin?: string;
  /** The protocol edition (a release, e.g. `3.1`) that the seller uses. */
  readonly edition?: string;
  /**
   * The time for which the seller retries a delivery, in ms, from `webhook_signing.delivery_retry_horizon_seconds`.
   */
  readonly horizonMs?: number;
  /** The channels in `media_buy.propagation_surfaces` that this package knows. */
  readonly surfaces?: readonly Surface[];
}

/** A channel by which a seller reports impairments of a media buy. */
export type Surface = (typeof SURFACES)[number];

const SURFACES = ['snapshot', 'webhook', 'out_of_band'] as const;

/** Returns the known channels in the declared list. Undefined if the value is no list. */
export const surfacesIn = (value: unknown): readonly Surface[] | undefined =>
  Array.isArray(value) ? SURFACES.filter((one) => value.includes(one)) : undefined;

/** A seller's declaration as it is stored, with the time of the next request. */
export interface DeclaredRow extends Declared {
  /** The time at which the seller's capabilities are requested again, by the store's clock, Unix ms. */
  readonly askAt: number;
}

/** The time in ms after which a stored declaration expires unless it is stored again. */
const KEPT_MS = 400 * 86_400_000;

/**
 * Returns the id of the row with a seller's declaration. The row is stored without a sender, so it appears in no list
 * and does not count against a sender's limit of rows.
 */
const declaredId = (hashes: Pick<Hashes, 'sha256Hex'>, agentUrl: string): string =>
  `declared ${hashes.sha256Hex(utf8(agentUrl))}`;

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Returns the stored declaration of a seller. Undefined if there is none or its row cannot be read. */
export function declaredIn(
  rows: Pick<RegistrationRows, 'get'>,
  hashes: Pick<Hashes, 'sha256Hex'>,
  agentUrl: string,
): DeclaredRow | undefined {
  const row = rows.get('watch', declaredId(hashes, agentUrl));
  const json = row && parseStrictObject(utf8(row.value));
  if (json?.ok !== true) return undefined;
  const { brandJsonUrl, keyOrigin, edition, horizonMs, surfaces, askAt } = json.value;
  const found = {
    brandJsonUrl: text(brandJsonUrl),
    keyOrigin: text(keyOrigin),
    edition: text(edition),
    surfaces: surfacesIn(surfaces),
  };
  const given = Object.entries(found).filter(([, value]) => value !== undefined);
  const horizon = typeof horizonMs === 'number' ? { horizonMs } : {};
  return { ...Object.fromEntries(given), ...horizon, askAt: typeof askAt === 'number' ? askAt : 0 };
}

/**
 * Makes the row in which a declaration is stored.
 * @param now the store's current time, Unix ms.
 */
export function declaredRow(
  hashes: Pick<Hashes, 'sha256Hex'>,
  agentUrl: string,
  declared: DeclaredRow,
  now: number,
): RegistrationRow {
  const value = JSON.stringify(declared);
  const id = declaredId(hashes, agentUrl);
  return { kind: 'watch', sender: '', id, value, dueAt: null, list: null, expiresAt: now + KEPT_MS };
}

/** Declarations read from the store and cached in this process. */
export interface Declarations {
  /**
   * Returns the seller's declaration as last read, or an empty one. The same object is returned until the content
   * changes, so callers can compare objects.
   */
  of(agentUrl: string): Declared;
  /**
   * True if the seller's declaration was read at least once, or if there is no store that keeps declarations. If the
   * last read was 5 minutes ago or earlier, starts another one without waiting for it.
   */
  isRead(agentUrl: string): boolean;
  /**
   * Reads the declaration from the store, unless it was read within the last `withinMs` (then `same`). Never rejects.
   */
  read(agentUrl: string, withinMs?: number): Promise<'changed' | 'same' | 'failed'>;
}

interface DeclarationsOptions {
  /** The store of the declarations. Without a store, or with one that keeps no rows, all declarations are empty. */
  readonly store?: Pick<Store, 'registrations'> | undefined;
  readonly logger: Logger;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
}

interface Held {
  readonly declared: Declared;
  /** The time of the last read, Unix ms. */
  readonly readAt: number;
}

const NOTHING: Declared = {};
/** Time after which a declaration in use is read again, in ms. */
const LIFE_MS = 5 * 60_000;
const MAX_SELLERS = 10_000;

export function createDeclarations({ store, logger, now }: DeclarationsOptions): Declarations {
  const rows = store?.registrations;
  const hashes = once(loadHashes);
  const held = new Map<string, Held>();
  const running = new Map<string, Promise<'changed' | 'same' | 'failed'>>();

  const readNow = async (agentUrl: string): Promise<'changed' | 'same' | 'failed'> => {
    try {
      const loaded = await hashes();
      const row = await rows?.run('', (step) => declaredIn(step, loaded, agentUrl));
      const { askAt: _askAt, ...found } = row ?? { askAt: 0 };
      const before = held.get(agentUrl)?.declared ?? NOTHING;
      const isSame = JSON.stringify(before) === JSON.stringify(found);
      putBounded(held, agentUrl, { declared: isSame ? before : found, readAt: now() }, MAX_SELLERS);
      return isSame ? 'same' : 'changed';
    } catch (error) {
      logger.debug({ err: error, agentUrl }, 'what the seller declared cannot be read now');
      return 'failed';
    }
  };
  const read: Declarations['read'] = async (agentUrl, withinMs = 0) => {
    const known = held.get(agentUrl);
    if (rows === undefined || (known && isWithin(now(), known.readAt, withinMs))) return 'same';
    return singleFlight(running, agentUrl, () => readNow(agentUrl));
  };
  return {
    of: (agentUrl) => held.get(agentUrl)?.declared ?? NOTHING,
    isRead: (agentUrl) => {
      const known = held.get(agentUrl);
      if (known && !isWithin(now(), known.readAt, LIFE_MS)) void read(agentUrl);
      return rows === undefined || known !== undefined;
    },
    read,
  };
}
