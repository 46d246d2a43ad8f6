import type { Jwk } from '../crypto/engine.ts';
import type { SenderEntry } from '../senders.ts';
import type { Copy, Wish } from './document.ts';
import type { KeySet } from './jwks.ts';
import type { PublishedList } from './revocation-list.ts';
import type { Register } from './revocation-register.ts';
import { listSignatureFlaw } from './revocation-signature.ts';
import type { SenderKeys } from './sender-keys.ts';

/** `undecided`: keys could not be had, so the same copy is to be looked at again. */
export type SignatureVerdict = 'good' | { readonly flaw: string; readonly undecided: boolean };

/** Judges a copy's signature, if it has one, by the keys of the operator that serves it. */
export async function judgeSignature(
  keys: SenderKeys,
  register: Register,
  copy: Copy<PublishedList>,
  sender: SenderEntry,
): Promise<SignatureVerdict> {
  const { signature } = copy.value;
  if (signature === undefined) return 'good';
  const { kid } = signature;
  if (isRevoked(register, kid)) return { flaw: 'signed by a key that is revoked', undecided: false };
  const known = (await knownKey(keys, register, kid)) ?? (await fetchedKey(keys, kid, copy.began, sender));
  if ('flaw' in known) return known;
  const flaw = await listSignatureFlaw(signature, known.jwk);
  return flaw === undefined ? 'good' : { flaw, undecided: false };
}

function isRevoked({ held, senders }: Register, kid: string): boolean {
  if (held?.kids.has(kid) === true) return true;
  return [...senders.values()].some((sender) => sender.revocation?.revokedKids?.includes(kid));
}

/** A pin, or a key of a set that is held, of any agent of the operator that the list was asked for. */
async function knownKey(
  keys: SenderKeys,
  { senders }: Register,
  kid: string,
): Promise<{ readonly jwk: Jwk } | undefined> {
  for (const sender of senders.values()) {
    const pin = sender.pins?.find((jwk) => jwk['kid'] === kid);
    const jwk = pin ?? (await keys.held(sender))?.copy.value.jwks.get(kid);
    if (jwk !== undefined) return { jwk };
  }
  return undefined;
}

/** A list may be signed by a key that was published with it: the set is asked for again, under its cooldown. */
async function fetchedKey(
  keys: SenderKeys,
  kid: string,
  listBegan: number,
  sender: SenderEntry,
): Promise<{ readonly jwk: Jwk } | { readonly flaw: string; readonly undecided: boolean }> {
  const wish: Wish<KeySet> = {
    wanted: (copy) => copy.value.jwks.has(kid),
    decisive: (copy) => copy.began >= listBegan,
  };
  const answer = await keys.renewed(sender, wish, () => true);
  if (!answer.ok) return { flaw: `no keys to verify it with: ${answer.reason}`, undecided: true };
  const jwk = answer.copy.value.jwks.get(kid);
  return jwk === undefined
    ? { flaw: "signed by a key that is not in the operator's JWKS", undecided: false }
    : { jwk };
}
