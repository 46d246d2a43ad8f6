// Checks that the store has rows of the seller in `--seller`. Otherwise a mistyped URL would find nothing, and the
// result would look as if all were well. `proto-webhooks owed` and `state` call it.
import { allRows } from '../registrations/operation-rows.ts';
import type { RegistrationKind, StoreRegistrations } from '../stores/store.ts';
import { requireHttpUrl } from './shell.ts';

const KINDS: readonly RegistrationKind[] = ['route', 'operation', 'stream', 'subscription'];

/**
 * Looks for rows of a seller.
 * @returns true if the store has any, or if no seller is given.
 * @throws UsageError for a text that is no URL.
 */
export async function isSellerKnown(
  registrations: StoreRegistrations,
  seller: string | undefined,
): Promise<boolean> {
  if (seller === undefined) return true;
  requireHttpUrl('--seller', seller);
  for (const kind of KINDS) {
    const first = await allRows(registrations, { kind, sender: seller }).next();
    if (first.done !== true) return true;
  }
  return false;
}

export const UNKNOWN_SELLER =
  'Nothing is known of this seller. Give the agent URL that its calls were registered with, byte for byte.';
