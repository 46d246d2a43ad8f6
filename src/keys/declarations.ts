import type { Logger } from '../shared/alarms.ts';
import { putBounded } from '../shared/bounded.ts';
import { utf8 } from '../codec/encoding.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Hashes } from '../crypto/engine.ts';
import { loadHashes } from '../crypto/native-hashes.ts';
import { once, singleFlight } from '../shared/single-flight.ts';
import type { RegistrationRow, RegistrationRows, Store } from '../stores/store.ts';
import { isWithin } from './document.ts';

/** What a seller declared in its capabilities, as far as keys and registrations need it (verification.md §5.29). */
export interface Declared {
  /** `identity.brand_json_url`. */
  readonly brandJsonUrl?: string;
  /** `identity.key_origins.webhook_signing`. */
  readonly keyOrigin?: string;
  /** The edition that it speaks, a release: `3.1`. */
  readonly edition?: string;
  /** `webhook_signing.delivery_retry_horizon_seconds`, in ms. */
  readonly horizonMs?: number;
  /** `media_buy.propagation_surfaces`, of those that this version knows. */
  readonly surfaces?: readonly Surface[];
}

/** Where a seller shows what impairs a media buy. */
export type Surface = (typeof SURFACES)[number];

const SURFACES = ['snapshot', 'webhook', 'out_of_band'] as const;

/** @returns undefined where it is no list. */
export const surfacesIn = (value: unknown): readonly Surface[] | undefined =>
  Array.isArray(value) ? SURFACES.filter((one) => value.includes(one)) : undefined;

/** As it is stored. */
export interface DeclaredRow extends Declared {
  /** When it is to be asked again, on the store's clock, Unix ms. */
  readonly askAt: number;
}

/** A seller that is asked no more is forgotten. */
const KEPT_MS = 400 * 86_400_000;

/** Of a row of no sender: no list has it, and no sender's share counts it. */
const declaredId = (hashes: Pick<Hashes, 'sha256Hex'>, agentUrl: string): string =>
  `declared ${hashes.sha256Hex(utf8(agentUrl))}`;

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** A row that cannot be read says nothing. */
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

/** @param now of the store, Unix ms. */
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

/** What the store has of sellers, held in this process. */
export interface Declarations {
  /** What was read last; nothing where it never was. The same object as long as it is the same. */
  of(agentUrl: string): Declared;
  /** Whether it was read once. Begins to read it again where that is due: nobody waits for it. */
  isRead(agentUrl: string): boolean;
  /** Reads it, unless it was read within the last `withinMs`. Never rejects. */
  read(agentUrl: string, withinMs?: number): Promise<'changed' | 'same' | 'failed'>;
}

interface DeclarationsOptions {
  /** Absent, or one that keeps no rows: nothing is known of any seller. */
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
/** What is in use is read again after so long. Ms. */
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
