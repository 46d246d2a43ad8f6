// Versions of schemas: the one that this package needs, and changes that happen while a store runs (admission.md
// §7.7).
// Called by SQLite, Postgres, MySQL and Redis when they open, migrate, and are used.
import { ConfigError, Fault } from '../shared/errors.ts';

/**
 * The first released version of every store's schema. Builds before that release made stores with lower numbers, and
 * nothing upgrades those.
 */
export const FIRST_VERSION = 4;

/** The words by which messages name a schema, and suggest a way out if a process cannot be upgraded at once. */
export interface VersionedStore {
  /** The store's name, e.g. `postgresStore`. */
  readonly store: string;
  /** The thing that has the version, e.g. a file or a database schema. */
  readonly place: string;
  /** The thing to give this process instead, so that it has a store of its own. */
  readonly own: string;
}

/** True if this package can upgrade a store from `version` to `known`; version 0: there is no store yet. */
export const leadsTo = (known: number, version: number): boolean =>
  version === 0 || (version >= FIRST_VERSION && version <= known);

const refused = ({ store, place }: VersionedStore, version: unknown, what: string): ConfigError =>
  new ConfigError(`${store}: ${place} schema version ${String(version)}, this package ${what}`);

/** Makes the error for a version that cannot be upgraded to `known`, the version of this package. */
export function wrongVersion(at: VersionedStore, known: number, version: unknown): ConfigError {
  const fix =
    typeof version === 'number' && version > 0 && version < known
      ? `needs ${known}, and nothing upgrades it. Let the build that made it finish its events, then give this process`
      : `knows ${known}. Upgrade proto-webhooks in this process, or give it`;
  return refused(at, version, `${fix} ${at.own} of its own.`);
}

/**
 * Checks that a store has the version of this package.
 *
 * @param known the version of this package.
 * @param version the store's; 0: there are no tables.
 * @param where the schema or database that may lack tables, for the message.
 * @throws ConfigError with the fix for every other version.
 */
export function checkVersion(at: VersionedStore, known: number, version: number, where: string): void {
  if (version === known) return;
  if (!leadsTo(known, version)) throw wrongVersion(at, known, version);
  const fix = 'Run migrate(pool) when you deploy.';
  if (version > 0) throw refused(at, version, `needs ${known}. ${fix}`);
  throw new ConfigError(`${at.store}: ${where} has no tables of the store. ${fix}`);
}

/**
 * Returns the version that all steps together reach. The first step creates `FIRST_VERSION`, each further one the
 * next version.
 */
export const newest = (steps: readonly unknown[]): number => FIRST_VERSION + steps.length - 1;

/**
 * Returns the steps that a store still needs; the last one reaches `newest(steps)`.
 *
 * @param version the store's; 0: there is no store yet.
 * @throws ConfigError if no step leads from it.
 */
export function missingSteps(
  at: VersionedStore,
  steps: readonly string[],
  version: number,
): readonly string[] {
  const known = newest(steps);
  if (!leadsTo(known, version)) throw wrongVersion(at, known, version);
  return steps.slice(Math.max(0, version - FIRST_VERSION + 1));
}

/**
 * Converts a ConfigError that occurs while the store runs to a Fault `misconfigured` (503), because an operator may
 * fix the cause. Returns other errors unchanged.
 */
export function whileRunning(error: unknown): unknown {
  if (!(error instanceof ConfigError)) return error;
  return new Fault('misconfigured', error.message, { cause: error });
}

/** Repeats, while a store is used, a check that succeeded when the store was opened. */
export interface LookAgain {
  /**
   * Checks every 10 s. After a failed check it checks on each call, until a check succeeds. Returns undefined if no
   * check is due, so that nothing has to be awaited. Calls during a check wait for that check.
   *
   * @throws the error of the check.
   */
  readonly passed: () => Promise<void> | undefined;
  /** Makes the next call check. */
  readonly due: () => void;
}

/**
 * The longest time for which a change may go unnoticed. Ms: 10 s. More frequent checks would slow down deliveries.
 */
const LOOK_AGAIN_MS = 10_000;

/** Makes a repeated check of `look`. @param now returns ms; the first interval begins now. */
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
