// Versions of schemas: the one that this package works on, and changes that are noticed while a store runs (admission.md §7.7).
// Called by SQLite, Postgres, MySQL and Redis when they open, migrate, and are used.
import { ConfigError, Fault } from '../shared/errors.ts';

/**
 * The first version of every store's schema that was released. Builds before that release made stores of lower
 * numbers. No step leads here from one.
 */
export const FIRST_VERSION = 4;

/** A schema as messages name it, with the way out for a process that cannot be upgraded at once. */
export interface VersionedStore {
  /** The store's name, e.g. `postgresStore`. */
  readonly store: string;
  /** The thing that has the version. */
  readonly place: string;
  /** The thing that another store of the same kind would have for itself. */
  readonly own: string;
}

/** True if steps lead from a version to `known`; version 0: there is nothing yet. */
export const leadsTo = (known: number, version: number): boolean =>
  version === 0 || (version >= FIRST_VERSION && version <= known);

const refused = ({ store, place }: VersionedStore, version: unknown, what: string): ConfigError =>
  new ConfigError(`${store}: ${place} schema version ${String(version)}, this package ${what}`);

/** Makes the error for a version from which nothing leads to `known`, the version of this package. */
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
 * @param at the schema; `where` names the place that may have no tables.
 * @param known the version of this package.
 * @param version the store's; 0: there are no tables.
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
 * Returns the version to which steps lead. The first step makes `FIRST_VERSION` of nothing, each further one the next
 * version.
 */
export const newest = (steps: readonly unknown[]): number => FIRST_VERSION + steps.length - 1;

/**
 * Returns the steps that a store lacks; the last one makes the version `newest(steps)`.
 *
 * @param version the store's; 0: there is nothing.
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
 * Converts a ConfigError that is met while the store runs to 503 `misconfigured`, until it is mended. Other errors
 * pass as they are.
 */
export function whileRunning(error: unknown): unknown {
  if (!(error instanceof ConfigError)) return error;
  return new Fault('misconfigured', error.message, { cause: error });
}

/** Looks again, while a store is used, at something that was right when it was opened. */
export interface LookAgain {
  /**
   * Looks every 10 s; once something is wrong, with each call until it is mended. Otherwise undefined: there is
   * nothing to wait for. Calls that come during a look wait for that one.
   *
   * @throws the error of the look.
   */
  readonly passed: () => Promise<void> | undefined;
  /** Makes the next call look. */
  readonly due: () => void;
}

/** The longest time for which a change may go unseen. Ms: 10 s. More looks would cost every delivery their time. */
const LOOK_AGAIN_MS = 10_000;

/** Makes a look that is repeated. @param now ms; the first interval begins now. */
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
