// Records the used nonces of a verifier: in this process by the rules of a store, or through the owner's function
// `burn` (admission.md §2.19, §2.20).
// This file is a chunk of its own, because a receiver records nonces in its store and does not need this code.

import type { Identity } from '../auth/auth-contract.ts';
import type { Burn } from '../config/verifier-options.ts';
import type { Hashes } from '../crypto/engine.ts';
import { Fault, isOfKind, textOf } from '../shared/errors.ts';
import { orLate } from '../shared/time-limits.ts';
import type { Identified } from '../stages/burn.ts';
import { storedId } from '../stages/ids.ts';
import { createMemoryState } from '../stores/memory/memory-state.ts';
import { memoryRows } from '../stores/memory/memory-rows.ts';
import { accept, lookAtNonce } from '../stores/rules/accept-rules.ts';
import type { AcceptResult, Store } from '../stores/store.ts';

type Burning = Pick<Store, 'accept'>;

/** Records used nonces for a verifier. */
export interface Nonces {
  /** Returns the store in which the delivery's nonce is recorded as used. */
  readonly of: (read: Identified) => Burning;
  /** Checks a nonce without recording it as used. Absent with the owner's `burn`, which cannot check a nonce alone. */
  readonly look?: Burning;
}

/**
 * Returns the time from a clock that cannot be set, ms. If the system clock were set forward and back, nonces would be
 * forgotten while their signatures still verify. Then a replay would be accepted.
 */
const now = (): number => performance.timeOrigin + performance.now();

/**
 * Records nonces in this process by the rules of a store: their number is limited, and each is remembered until its
 * signature expires.
 */
function nonceMemory(): Nonces {
  const rows = memoryRows(createMemoryState());
  const memory: Burning = { accept: async (request) => accept(rows, request, now()) };
  return {
    of: () => memory,
    look: {
      accept: async (request) => ({ kind: lookAtNonce(rows, request, now()) ?? 'burned', pressure: [] }),
    },
  };
}

/**
 * Longest wait for the owner's `burn`. Ms. Without a limit, a call that never ends would block the delivery and
 * `stop()`.
 */
const DEADLINE_MS = 5_000;

interface Claim extends Pick<NonNullable<Identity['nonce']>, 'keyid' | 'nonce'> {
  readonly sender: string;
  readonly untilMs: number;
}

async function burnBy(
  owners: Burn,
  { sender, keyid, nonce, untilMs }: Claim,
  hashes: Hashes,
): Promise<AcceptResult> {
  let isNew: unknown;
  try {
    const asked = (async () => owners(sender, storedId(keyid, hashes), storedId(nonce, hashes), untilMs))();
    isNew = await orLate(asked, DEADLINE_MS, () => new Error(`no answer after ${DEADLINE_MS} ms`));
  } catch (error) {
    if (isOfKind(error, Fault)) throw error;
    throw new Fault('store_unavailable', `burn failed: ${textOf(error)}`, { cause: error });
  }
  if (typeof isNew === 'boolean') return { kind: isNew ? 'burned' : 'replayed', pressure: [] };
  throw new Fault(
    'misconfigured',
    `burn returned ${typeof isNew}. It has to return true if the nonce was new, else false`,
  );
}

function ownersNonces(owners: Burn, hashes: Hashes): Nonces {
  return {
    of: ({ identity }) => ({
      accept: async ({ sender, nonce: claim }) => {
        if (!identity.nonce || !claim) throw new TypeError('no nonce to burn');
        const { keyid, nonce } = identity.nonce;
        return burnBy(owners, { sender, keyid, nonce, untilMs: claim.expiresAtMs }, hashes);
      },
    }),
  };
}

/**
 * Makes the functions with which a verifier records used nonces.
 * @param burn the owner's function; without it, nonces are kept in this process.
 */
export const createNonces = (burn: Burn | undefined, hashes: Hashes): Nonces =>
  burn ? ownersNonces(burn, hashes) : nonceMemory();
