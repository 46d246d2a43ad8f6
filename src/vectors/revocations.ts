import type { Transport } from '../keys/contract.ts';
import type { Setup } from './subject.ts';

const ORIGIN = 'https://operator.example';
const LIST_URL = `${ORIGIN}/revocations.json`;

/** Ms between two lists, the shortest that is honoured (verification.md §5.26). */
const INTERVAL_MS = 60_000;
/** Intervals after `next_update` until a list is stale. */
const GRACE = 4;

/** Where the senders' revocation list is, if the vector has one. */
export function revocationUrl({ revokedKids, revocationStaleSeconds }: Setup): string | undefined {
  return revokedKids.length > 0 || revocationStaleSeconds !== undefined ? LIST_URL : undefined;
}

/** The list as its operator would have published it: fresh, or so old that its grace ended so many seconds ago. */
function listOf({ nowMs, revokedKids, revocationStaleSeconds }: Setup): object {
  const stale = revocationStaleSeconds ?? 0;
  const next = stale > 0 ? nowMs - GRACE * INTERVAL_MS - stale * 1000 : nowMs + INTERVAL_MS;
  return {
    version: 1,
    issuer: ORIGIN,
    updated: new Date(next - INTERVAL_MS).toISOString(),
    next_update: new Date(next).toISOString(),
    revoked_kids: revokedKids,
    revoked_jtis: [],
  };
}

/** Serves the vector's revocation list and nothing else: keys are pinned. */
export function revocationTransport(setup: Setup): Transport {
  return async (url) => {
    if (url !== LIST_URL) throw new Error(`a vector has no document at ${url}`);
    return Response.json(listOf(setup));
  };
}
