import { decodeBase64 } from '../codec/base64.ts';
import type { Jwk, SignatureAlgorithm } from '../crypto/engine.ts';
import type { SenderEntry } from '../senders.ts';
import type { Copy, Freshness } from './document.ts';
import { unlimitedBudget } from './fetch-budget.ts';
import { type KeySet, sameJwk } from './jwks.ts';
import type { ListSignature, PublishedList } from './revocation-list.ts';
import type { Register } from './revocation-registers.ts';
import type { SenderKeys } from './sender-keys.ts';

/** `undecided`: keys could not be had, so the same copy is to be looked at again. */
type SignatureCheck = 'good' | { readonly invalidReason: string; readonly undecided: boolean };

/** Judges a copy's signature, if it has one, by the keys of the operator that serves it. */
export async function checkSignature(
  keys: SenderKeys,
  register: Register,
  copy: Copy<PublishedList>,
  sender: SenderEntry,
): Promise<SignatureCheck> {
  const { signature } = copy.value;
  if (signature === undefined) return 'good';
  const { kid } = signature;
  if (isRevoked(register, kid)) return { invalidReason: 'signed by a key that is revoked', undecided: false };
  const known = await knownKeys(keys, register, kid);
  const invalidReason = await invalidReasonUnder(known, signature);
  if (known.length > 0 && invalidReason === undefined) return 'good';
  const fetched = await fetchedKeys(keys, { register, kid, listBegan: copy.fetchedAt, sender, known });
  const later = await invalidReasonUnder(fetched.found, signature);
  if (fetched.found.length > 0 && later === undefined) return 'good';
  if (fetched.undecided !== undefined) return { invalidReason: fetched.undecided, undecided: true };
  return {
    invalidReason: later ?? invalidReason ?? "signed by a key that is not in the operator's JWKS",
    undecided: false,
  };
}

/** Undefined where one of them signed the list, or there is none. */
async function invalidReasonUnder(
  jwks: readonly Jwk[],
  signature: ListSignature,
): Promise<string | undefined> {
  let invalidReason: string | undefined;
  for (const jwk of jwks) {
    invalidReason = await invalidSignatureReason(signature, jwk);
    if (invalidReason === undefined) return undefined;
  }
  return invalidReason;
}

function isRevoked({ inForce, senders }: Register, kid: string): boolean {
  if (inForce?.kids.has(kid) === true) return true;
  return [...senders.values()].some((sender) => sender.revocation?.revokedKids?.includes(kid));
}

const pinOf = (sender: SenderEntry, kid: string): Jwk | undefined =>
  sender.pins?.find((jwk) => jwk['kid'] === kid);

/** Pins, and keys of cached sets, of every agent of the operator that the list was asked for. */
async function knownKeys(keys: SenderKeys, { senders }: Register, kid: string): Promise<Jwk[]> {
  const known: Jwk[] = [];
  for (const sender of senders.values()) {
    const jwk = pinOf(sender, kid) ?? (await keys.cached(sender))?.copy.value.jwks.get(kid);
    if (jwk !== undefined) known.push(jwk);
  }
  return known;
}

interface SignerQuery {
  readonly register: Register;
  readonly kid: string;
  /** Unix ms. */
  readonly listBegan: number;
  /** Whose delivery asked for the list: asked first. */
  readonly sender: SenderEntry;
  readonly known: readonly Jwk[];
}

/**
 * A list may be signed by a key that was published with it, under a new `kid` or an old one: the sets are asked for
 * again, under their cooldown. Every agent's, for a list that is polled was asked for by none of them in particular.
 */
async function fetchedKeys(
  keys: SenderKeys,
  { register, kid, listBegan, sender, known }: SignerQuery,
): Promise<{ readonly found: readonly Jwk[]; readonly undecided?: string }> {
  const isNew = (jwk: Jwk | undefined): jwk is Jwk =>
    jwk !== undefined && !known.some((other) => sameJwk(other, jwk));
  const freshness: Freshness<KeySet> = {
    hasWanted: ({ value }) => isNew(value.jwks.get(kid)),
    isFreshEnough: (copy) => copy.isRevalidated !== true && copy.fetchedAt >= listBegan,
  };
  const found: Jwk[] = [];
  let undecided: string | undefined;
  for (const agent of new Set([sender, ...register.senders.values()])) {
    // What is pinned is the pin's key, and no JWKS can say otherwise.
    if (pinOf(agent, kid) !== undefined) continue;
    const answer = await keys.renewed(agent, freshness, unlimitedBudget(agent.agentUrl));
    const jwk = answer.ok ? answer.copy.value.jwks.get(kid) : undefined;
    if (isNew(jwk)) found.push(jwk);
    if (!answer.ok) undecided ??= `no keys to verify it with: ${answer.reason}`;
  }
  return { found, ...(undecided !== undefined && { undecided }) };
}

/** RFC 8037 §3.1, RFC 7518 §3.4: what signs under which `alg`. */
const ALGORITHMS: Readonly<Record<string, SignatureAlgorithm>> = {
  EdDSA: 'ed25519',
  ES256: 'ecdsa-p256-sha256',
};

/**
 * Whether the key signed the list. Any key of the operator with `use` = `sig` may: a list speaks for
 * all its keys, so no one purpose is asked for. The header was read already, strictly: nothing here reads it again.
 * @returns what is wrong, for the owner's log, or undefined.
 */
export async function invalidSignatureReason(
  { kid, alg, jws }: ListSignature,
  jwk: Jwk,
): Promise<string | undefined> {
  const quotedKid = JSON.stringify(kid.slice(0, 64));
  if (jwk['use'] !== 'sig') return `the key ${quotedKid} is not for signatures (use is not sig)`;
  // Loaded where a list is signed, and nowhere else: most are not.
  const { createEngine } = await import('../crypto/index.ts');
  const engine = await createEngine();
  const key = await engine.importKey(jwk);
  if (typeof key === 'string') return `the key ${quotedKid} cannot be used: ${key}`;
  const signature = decodeBase64(jws.signature);
  // RFC 7515 §5.2 step 8: over the header and the payload as they were sent.
  const signed = new TextEncoder().encode(`${jws.protected}.${jws.payload}`);
  const verified =
    ALGORITHMS[alg] === key.alg &&
    permits(jwk, alg) &&
    signature !== undefined &&
    (await engine.verify(key, signed, signature));
  return verified ? undefined : `the signature does not verify under the key ${quotedKid}`;
}

/** RFC 7517 §4.3 and §4.4: a key that says what it is for is for nothing else. */
function permits({ alg: own, key_ops: operations }: Jwk, alg: string): boolean {
  if (own !== undefined && own !== null && own !== alg) return false;
  if (operations === undefined || operations === null) return true;
  return Array.isArray(operations) && operations.includes('verify');
}
