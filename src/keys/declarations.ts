// Declarations of sellers about their keys and edition, as the store keeps them (verification.md §5.29).
// Read by `places.ts` for every search; written by registrations, which ask sellers.

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
  /** `identity.brand_json_url`. */
  readonly brandJsonUrl?: string;
  /** `identity.key_origins.webhook_signing`. */
  readonly keyOrigin?: string;
  /** The edition that the seller speaks, a release: `3.1`. */
  readonly edition?: string;
  /** `webhook_signing.delivery_retry_horizon_seconds`, in ms. */
  readonly horizonMs?: number;
  /** The known surfaces in `media_buy.propagation_surfaces`. */
  readonly surfaces?: readonly Surface[];
}

/** A way in which a seller shows impairments of a media buy. */
export type Surface = (typeof SURFACES)[number];

const SURFACES = ['snapshot', 'webhook', 'out_of_band'] as const;

/** @returns undefined if the value is no list. */
export const surfacesIn = (value: unknown): readonly Surface[] | undefined =>
  Array.isArray(value) ? SURFACES.filter((one) => value.includes(one)) : undefined;

/** A declaration in its stored form. */
export interface DeclaredRow extends Declared {
  /** Time at which the seller is asked next, by the store's clock, Unix ms. */
  readonly askAt: number;
}

/** Time after which a seller that is no longer asked is forgotten. Ms. */
const KEPT_MS = 400 * 86_400_000;

/**
 * Id of the stored row. The row has no sender, so it appears in no list and uses none of a sender's share of rows.
 */
const declaredId = (hashes: Pick<Hashes, 'sha256Hex'>, agentUrl: string): string =>
  `declared ${hashes.sha256Hex(utf8(agentUrl))}`;

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Returns the stored declaration. Undefined if there is none or it cannot be read. */
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
   * Returns the declaration read last, or an empty one. The returned object stays the same while its content is
   * equal.
   */
  of(agentUrl: string): Declared;
  /** True if the declaration was read at least once. Starts another read if one is due, without waiting for it. */
  isRead(agentUrl: string): boolean;
  /** Reads the declaration from the store, unless it was read within the last `withinMs`. Never rejects. */
  read(agentUrl: string, withinMs?: number): Promise<'changed' | 'same' | 'failed'>;
}

interface DeclarationsOptions {
  /** If there is no store, or it keeps no rows, no declaration is known. */
  readonly store?: Pick<Store, 'registrations'> | undefined;
  readonly logger: Logger;
  /** Unix ms. */
  readonly now: () => number;
}

interface Held {
  readonly declared: Declared;
  /** Unix ms. */
  readonly readAt: number;
}

const NOTHING: Declared = {};
/** Time after which a declaration in use is read again. Ms. */
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
