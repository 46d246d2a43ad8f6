import { Fault } from '../../errors.ts';

/** Answers of a server that may be other ones in a moment, or on another node. */
const PASSING =
  /^(READONLY|UNBLOCKED|LOADING|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|BUSY|Too many Cluster redirections)\b/;

/** An error that the server answered begins with its code; all others are the connection's. */
const ANSWERED = /^-?[A-Z]{2,}\b/;

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export function isNoScript(error: unknown): boolean {
  return textOf(error).startsWith('NOSCRIPT');
}

/** The node does not hold the slot (any more). */
export function isMoved(error: unknown): boolean {
  return textOf(error).startsWith('MOVED');
}

/** The commands that a server forbids to this user, or does not have. */
export function isForbidden(error: unknown): boolean {
  return /^(NOPERM|NOAUTH|WRONGPASS|ERR unknown command|ERR The user executing the script)/.test(
    textOf(error),
  );
}

/** Whether the same call may go better at once. Every script can be run again: by its owner or accept it is the same. */
export function isPassing(error: unknown): boolean {
  if (error instanceof Fault) return false;
  const text = textOf(error);
  return PASSING.test(text) || !ANSWERED.test(text);
}

/**
 * Whether what a script met may be in the rows of one request only, or one of them could not be packed, and the others go
 * well alone.
 */
export function isAboutOne(error: unknown): boolean {
  return !(error instanceof Fault) || /^(ERR|WRONGTYPE)\b/.test(textOf(error.cause));
}

/** Fixed sentences for what an owner can mend; `cause` has the client's own words. */
const MENDED: readonly (readonly [RegExp, string])[] = [
  [/^OOM/, 'is out of memory: raise maxmemory, or lower the caps of senders'],
  [/^MISCONF/, 'refuses writes because it cannot write to its disk: free space, then look into its log'],
  [/^NOPERM|^NOAUTH|^WRONGPASS/, 'refuses this user'],
  [/^READONLY/, 'is a replica'],
  [/^LOADING/, 'is loading its data'],
  [/^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|Too many)/, 'Cluster does not serve the slot now'],
];

/** What the client threw, as the pipeline's fault. */
export function asFault(error: unknown): Fault {
  if (error instanceof Fault) return error;
  const text = textOf(error);
  if (text.startsWith('NOREPLICAS')) {
    return new Fault('not_durable', `Redis: too few replicas (min-replicas-to-write).`, { cause: error });
  }
  const known = MENDED.find(([pattern]) => pattern.test(text))?.[1];
  return new Fault('store_unavailable', known ? `Redis ${known}.` : `Redis: ${text}`, { cause: error });
}
