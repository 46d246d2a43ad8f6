import { allRows } from '../registrations/operation-rows.ts';
import type { RegistrationKind, StoreRegistrations } from '../stores/store.ts';
import { requireHttpUrl } from './shell.ts';

/* `--seller`, where it is wrong (a URL of nobody): nothing would be found, and all would seem well. */

const KINDS: readonly RegistrationKind[] = ['route', 'operation', 'stream', 'subscription'];

/** @throws UsageError for what is no URL. @returns whether the store has anything of the seller; true for all sellers. */
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
