import { ConfigError, Fault } from '../shared/errors.ts';

/**
 * The first version of every store's schema that was released. Builds before that release made stores of lower numbers: no
 * step leads here from one.
 */
export const FIRST_VERSION = 4;

/** Whose schema it is, and what a process does that cannot be upgraded at once. */
export interface VersionedStore {
  /** e.g. `postgresStore`. */
  readonly store: string;
  /** What has the version. */
  readonly place: string;
  /** What another store of the same kind would have for itself. */
  readonly own: string;
}

/** Steps lead from a version to `known`; 0: there is nothing yet. */
export const leadsTo = (known: number, version: number): boolean =>
  version === 0 || (version >= FIRST_VERSION && version <= known);

const refused = ({ store, place }: VersionedStore, version: unknown, what: string): ConfigError =>
  new ConfigError(`${store}: ${place} schema version ${String(version)}, this package ${what}`);

/** The error for a version from which nothing leads to `known`, the one of this package. */
export function wrongVersion(at: VersionedStore, known: number, version: unknown): ConfigError {
  const fix =
    typeof version === 'number' && version > 0 && version < known
      ? `needs ${known}, and nothing upgrades it. Let the build that made it finish its events, then give this process`
      : `knows ${known}. Upgrade proto-webhooks in this process, or give it`;
  return refused(at, version, `${fix} ${at.own} of its own.`);
}

/**
 * @param at whose schema; `where` it has no tables.
 * @param known the version of this package.
 * @throws ConfigError with what to do, unless it is the version of this package. 0: there are no tables.
 */
export function checkVersion(at: VersionedStore, known: number, version: number, where: string): void {
  if (version === known) return;
  if (!leadsTo(known, version)) throw wrongVersion(at, known, version);
  const fix = 'Run migrate(pool) when you deploy.';
  if (version > 0) throw refused(at, version, `needs ${known}. ${fix}`);
  throw new ConfigError(`${at.store}: ${where} has no tables of the store. ${fix}`);
}

/** The version that steps lead to: the first makes `FIRST_VERSION` where there is nothing, each next one the next version. */
export const newest = (steps: readonly unknown[]): number => FIRST_VERSION + steps.length - 1;

/**
 * The steps that a store lacks: the last one makes the version `newest(steps)`.
 * @param version the store's; 0: there is nothing.
 * @throws ConfigError where no step leads from it.
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
