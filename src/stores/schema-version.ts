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

/** What `ready()` would refuse, seen while running: 503 `misconfigured` until it is mended. All else passes. */
export function whileRunning(error: unknown): unknown {
  if (!(error instanceof ConfigError)) return error;
  return new Fault('misconfigured', error.message, { cause: error });
}
