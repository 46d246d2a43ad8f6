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

/* In a chunk of its own: a receiver has a store. */

type Burning = Pick<Store, 'accept'>;

/** Where a verifier's nonces are. */
export interface Nonces {
  /** Where the nonce of a delivery is burned. */
  readonly of: (read: Identified) => Burning;
  /** Says what burning would say; absent where nothing but burning tells. */
  readonly look?: Burning;
}

/** Ms, on a clock that nobody sets: were it set forward and back again, nonces would be forgotten that still verify. */
const now = (): number => performance.timeOrigin + performance.now();

/** In this process, by the rules of the stores: bounded, and none is forgotten before its time. */
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

/** A store of the owner's that hangs would hold the delivery, and `stop()`, without end. Ms. */
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

/** @param burn the owner's, where nonces are not kept in this process. */
export const createNonces = (burn: Burn | undefined, hashes: Hashes): Nonces =>
  burn ? ownersNonces(burn, hashes) : nonceMemory();
