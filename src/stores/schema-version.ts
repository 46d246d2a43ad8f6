// Compares the version of a store's schema with the version that this package needs, when a store is opened and while
// it runs (admission.md §7.7).
// Called by SQLite, Postgres, MySQL and Redis when they open, migrate, and are used.
import { ConfigError, Fault } from '../shared/errors.ts';

/**
 * The first released version of every store's schema. Builds before that release made schemas with lower versions,
 * which cannot be upgraded.
 */
export const FIRST_VERSION = 4;

/**
 * The words with which error messages name a store's schema, and suggest a way out if a process cannot be upgraded
 * immediately.
 */
export interface VersionedStore {
  /** The store's name, e.g. `postgresStore`. */
  readonly store: string;
  /**
   * The words before `schema version` in an error message: the owner of the version, and a verb, e.g. `the database
   * has`.
   */
  readonly place: string;
  /** The place that a process needs to have a store of its own, as error messages name it, e.g. `a schema`. */
  readonly own: string;
}

/**
 * True if this package, whose schema version is `known`, can upgrade a store from `version`. Version 0: there is no
 * store yet.
 */
export const leadsTo = (known: number, version: number): boolean =>
  version === 0 || (version >= FIRST_VERSION && version <= known);

const refused = ({ store, place }: VersionedStore, version: unknown, what: string): ConfigError =>
  new ConfigError(`${store}: ${place} schema version ${String(version)}, this package ${what}`);

/** Makes the error for a store whose schema version cannot be upgraded to `known`, the version of this package. */
export function wrongVersion(at: VersionedStore, known: number, version: unknown): ConfigError {
  const fix =
    typeof version === 'number' && version > 0 && version < known
      ? `needs ${known}, and nothing upgrades it. Let the build that made it finish its events, then give this process`
      : `knows ${known}. Upgrade proto-webhooks in this process, or give it`;
  return refused(at, version, `${fix} ${at.own} of its own.`);
}

/**
 * Checks that a store's schema has the version of this package.
 *
 * @param known the version of this package.
 * @param version the version of the store; 0: there are no tables.
 * @param where the schema or database that may lack tables, for the message.
 * @throws ConfigError for every other version, with a way to fix it.
 */
export function checkVersion(at: VersionedStore, known: number, version: number, where: string): void {
  if (version === known) return;
  if (!leadsTo(known, version)) throw wrongVersion(at, known, version);
  const fix = 'Run migrate(pool) when you deploy.';
  if (version > 0) throw refused(at, version, `needs ${known}. ${fix}`);
  throw new ConfigError(`${at.store}: ${where} has no tables of the store. ${fix}`);
}

/**
 * Returns the version that a store has after all migration steps. The first step creates `FIRST_VERSION`, each further
 * one the next version.
 */
export const newest = (steps: readonly unknown[]): number => FIRST_VERSION + steps.length - 1;

/**
 * Returns the migration steps that a store still needs; the last one leads to `newest(steps)`.
 *
 * @param version the version of the store; 0: there is no store yet.
 * @throws ConfigError if no step upgrades that version.
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

/** Repeats a check that succeeded when a store was opened, e.g. of its schema's version, while the store is used. */
export interface LookAgain {
  /**
   * Runs the check if it last succeeded 10 s ago or earlier. After a failed check, every call runs it until one
   * succeeds. Returns undefined if no check is needed, so that nothing has to be awaited. Calls during a check wait for
   * that check.
   *
   * @throws the error of the check.
   */
  readonly passed: () => Promise<void> | undefined;
  /** Makes the next call of `passed` run the check. */
  readonly due: () => void;
}

/**
 * The longest time for which a change of the database may go unnoticed. Ms: 10 s. More frequent checks would slow down
 * deliveries.
 */
const LOOK_AGAIN_MS = 10_000;

/** Makes a `LookAgain` that repeats the check `look`; the first 10 s begin now. @param now returns the time in ms. */
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
