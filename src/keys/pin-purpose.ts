// Gives a purpose (the member that says what a key may sign) to keys that publishers pin without one (verification.md
// §5.5).
// Called by `sender-search.ts` for pinned candidates.

import { sameMaterial } from '../auth/rfc9421/revoked-at.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import { quoted } from '../codec/printable.ts';
import type { Jwk } from '../crypto/engine.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { Candidate, SenderKey } from './key-resolver.ts';
import { allKeys, type KeySet } from './jwks.ts';

/** Gives a purpose to keys that publishers pin without one (verification.md §5.5). */
export interface PinPurposes {
  /** True if the key has no purpose member of any accepted protocol name. */
  readonly lacks: (candidate: Candidate) => boolean;
  /**
   * Returns the pinned keys, each with a purpose. A pin without a purpose gets that of the same key in the seller's
   * JWKS. If the JWKS has none either, the purpose is webhooks, and an alarm is raised.
   * @param published the JWKS; undefined if it cannot be fetched.
   */
  given(candidates: readonly Candidate[], published: KeySet | undefined): readonly Candidate[];
}

interface PinPurposesOptions {
  readonly protocols: Protocols;
  readonly raiseAlarm: RaiseAlarm;
}

/** The purpose of a key that has none in the publisher's file and none in the seller's JWKS. */
const DEFAULT_PURPOSE = 'webhook-signing';

export function createPinPurposes({ protocols, raiseAlarm }: PinPurposesOptions): PinPurposes {
  const members = protocols.map(({ purposeMember }) => purposeMember);
  // A purpose of null is treated as absent.
  const statedIn = (jwk: Jwk): Jwk =>
    Object.fromEntries(members.flatMap((name) => (jwk[name] == null ? [] : [[name, jwk[name]]])));
  const states = (jwk: Jwk): boolean => members.some((name) => jwk[name] != null);
  const known = new WeakMap<Jwk, { readonly published: KeySet | undefined; readonly key: SenderKey }>();
  const told = new WeakSet<Jwk>();

  const purposeOf = ({ sender: { agentUrl }, key }: Candidate, published: KeySet | undefined): Jwk => {
    const same = (published ? allKeys(published) : []).filter(
      ([, jwk]) => states(jwk) && sameMaterial(jwk, key.jwk),
    );
    const found = same.find(([kid]) => kid === key.kid) ?? same[0];
    if (found) return statedIn(found[1]);
    if (!told.has(key.jwk)) {
      told.add(key.jwk);
      const why = published
        ? 'and the JWKS of the seller does not have that key with one'
        : 'and the JWKS of the seller cannot be fetched';
      raiseAlarm({
        code: 'key_document_invalid',
        message: `A publisher pins the key ${quoted(key.kid)} for ${agentUrl} without a purpose (${members.join(' or ')}), ${why}: it counts for webhooks. Have the publisher state it.`,
        sender: agentUrl,
        document: 'adagents.json',
      });
    }
    return Object.fromEntries(members.map((name) => [name, DEFAULT_PURPOSE]));
  };

  const lacks: PinPurposes['lacks'] = ({ key }) => !states(key.jwk);
  return {
    lacks,
    given: (candidates, published) =>
      candidates.map((candidate) => {
        if (!lacks(candidate)) return candidate;
        const { jwk } = candidate.key;
        const before = known.get(jwk);
        if (before && before.published === published) return { ...candidate, key: before.key };
        const key = { ...candidate.key, jwk: { ...jwk, ...purposeOf(candidate, published) } };
        known.set(jwk, { published, key });
        return { ...candidate, key };
      }),
  };
}
