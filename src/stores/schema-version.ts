import { ConfigError, Fault } from '../errors.ts';

/** Whose schema it is, and what a process does that cannot be upgraded at once. */
export interface VersionedStore {
  /** e.g. `postgresStore`. */
  readonly store: string;
  /** What has the version. */
  readonly place: string;
  /** What another store of the same kind would have for itself. */
  readonly own: string;
  /** The version that this package works with. */
  readonly known: number;
}

/** For a version that a newer package made: what it means, this one cannot know. */
export function unknownVersion({ store, place, own, known }: VersionedStore, version: unknown): ConfigError {
  return new ConfigError(
    `${store}: ${place} schema version ${String(version)}, this package knows ${known}. ` +
      `Upgrade proto-webhooks in this process, or give it ${own} of its own.`,
  );
}

/**
 * @param at whose schema; `where` it has no tables.
 * @throws ConfigError with what to do, unless it is the version of this package. 0: there are no tables.
 */
export function checkVersion(at: VersionedStore, version: number, where: string): void {
  const { store, known } = at;
  if (version === known) return;
  if (version > known || version < 0) throw unknownVersion(at, version);
  const found =
    version === 0
      ? `${where} has no tables of the store`
      : `the schema has version ${version}, this package needs ${known}`;
  throw new ConfigError(`${store}: ${found}. Run migrate(pool) when you deploy.`);
}

/** What `ready()` would refuse, seen while running: 503 `misconfigured` until it is mended. All else passes. */
export function whileRunning(error: unknown): unknown {
  if (!(error instanceof ConfigError)) return error;
  return new Fault('misconfigured', error.message, { cause: error });
}

/** Looks again, as it is used, whether something is still as it was when the store was opened. */
export interface LookAgain {
  /**
   * Looks every 10 s; once something is wrong, with each call until it is mended. Else undefined: there is nothing to wait
   * for. Calls that come during a look wait for that one.
   * @throws what the look throws.
   */
  readonly passed: () => Promise<void> | undefined;
  /** The next call looks. */
  readonly due: () => void;
}

/** For so long a change may go unseen; oftener, and every delivery would pay for the look. */
const LOOK_AGAIN_MS = 10_000;

/** @param now ms; begins now. */
export function lookAgain(look: () => Promise<void>, now: () => number): LookAgain {
  let lookedAt = now();
  let isDue = false;
  let looking: Promise<void> | undefined;
  const run = async (): Promise<void> => {
    const since = now();
    isDue = false;
    try {
      await look();
      lookedAt = since;
    } catch (error) {
      isDue = true;
      throw error;
    }
  };
  return {
    passed: () => {
      if (isDue || Math.abs(now() - lookedAt) >= LOOK_AGAIN_MS) {
        looking ??= run().finally(() => {
          looking = undefined;
        });
      }
      return looking;
    },
    due: () => {
      isDue = true;
    },
  };
}
