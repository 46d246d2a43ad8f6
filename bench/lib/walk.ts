import {
  type AuthContext,
  type CheckedSignature,
  checkSignatureFields,
  compareHost,
  readSignatureFields,
  type SignatureFields,
  usableKey,
} from '../../src/auth/for-tests.ts';
import { signatureBase, type VerifyKey } from '../../src/auth/rfc9421/index.ts';
import { utf8 } from '../../src/codec/for-tests.ts';
import {
  createReceiverContext,
  type Delivery,
  headerFields,
  methodOf,
  purposesOf,
  type ReadyContext,
  requireRawBytes,
} from '../../src/for-tests.ts';
import type { ReceiverOptions } from '../../src/index.ts';
import {
  type Authentic,
  authenticate,
  authenticateBody,
  guard,
  read,
  type ReadEvent,
  select,
  type Selected,
} from '../../src/stages/for-tests.ts';
import type { Wire } from './deliveries.ts';

/** What the functions of the library gave for one delivery on its way: what each part is handed. */
export interface Walk extends Wire {
  readonly delivery: Delivery;
  readonly selected: Selected;
  readonly fields: SignatureFields;
  readonly checked: CheckedSignature;
  readonly base: Uint8Array;
  readonly key: VerifyKey;
  readonly authentic: Authentic;
  readonly reading: ReadEvent;
}

/** The parts of a receiver, ready, with a store of their own each time. */
export interface WalkContext {
  readonly parts: ReadyContext;
  readonly auth: AuthContext;
}

export async function contextOf(options: ReceiverOptions): Promise<WalkContext> {
  // A part is a call: in the thread pool it would be a promise.
  const parts = await createReceiverContext({ ...options, verification: 'main' }).startup.check();
  return { parts, auth: await parts.authContext() };
}

/** @throws Error where a stage refuses: nothing of what follows would be measured. */
export function passed<T extends { readonly kind: string }, K extends T['kind']>(
  value: T,
  kind: K,
): Extract<T, { readonly kind: K }> {
  if (value.kind !== kind) throw new Error(`a stage gave ${value.kind} instead of ${kind}`);
  return value as Extract<T, { readonly kind: K }>;
}

export function deliveryOf({ rawHeaders, body }: Wire): Delivery {
  const rawBody = requireRawBytes(body);
  return { method: methodOf(undefined), url: undefined, rawBody, headers: headerFields(rawHeaders) };
}

export function baseOf(
  { delivery, target }: Selected,
  checked: CheckedSignature,
  { auth }: WalkContext,
): Uint8Array {
  const facts = { method: delivery.method, target, headers: delivery.headers };
  const text = signatureBase(checked.components, facts, checked.signatureParams);
  if (text === undefined || compareHost(delivery, target, auth.hostCheck).kind !== 'same') {
    throw new Error('no signature base, or another host');
  }
  return utf8(text);
}

export function keyOf(
  { senders }: Selected,
  { protocol, parameters }: CheckedSignature,
  { auth }: WalkContext,
): VerifyKey {
  const { keyid, alg } = parameters;
  const found = auth.keys.find(keyid, { senders, arrivedAt: Date.now() });
  const [candidate] = 'candidates' in found ? found.candidates : [];
  if (!candidate) throw new Error('the key is not at hand');
  const { sender, key } = candidate;
  const policy = { protocol, purposes: purposesOf(sender.edition, protocol), alg };
  const usable = usableKey(key.jwk, key.verifyKey, policy);
  if (typeof usable === 'string' || auth.keys.revocation(sender, keyid) !== 'valid') {
    throw new Error('the key is of no use');
  }
  return usable;
}

export async function walk(wire: Wire, context: WalkContext): Promise<Walk> {
  const { parts, auth } = context;
  const delivery = deliveryOf(wire);
  const guarded = passed(guard(delivery, parts), 'guarded');
  const selected = passed(
    await select(guarded, parts, () => {
      throw new Error('a receiver of one URL');
    }),
    'selected',
  );
  const fields = passed(readSignatureFields(delivery.headers), 'parsed');
  const now = Date.now();
  const checked = passed(checkSignatureFields(fields, delivery.headers, parts.protocols, now), 'checked');
  const base = baseOf(selected, checked, context);
  const key = keyOf(selected, checked, context);
  const proof = passed(await authenticate(selected, auth, now), 'proof');
  const whole = { rawBody: delivery.rawBody, wholeAt: now };
  const authentic = passed(await authenticateBody(proof, whole, selected), 'authentic');
  const reading = read(authentic, parts);
  if (!reading.claim) throw new Error('the body gives no event');
  return { ...wire, delivery, selected, fields, checked, base, key, authentic, reading };
}
