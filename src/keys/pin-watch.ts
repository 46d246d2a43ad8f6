// Alarms about pinned keys that are used and that the seller's own JWKS lacks (verification.md §5.5).
// Called by `sender-search.ts` for every pinned candidate.

import type { RaiseAlarm } from '../shared/alarms.ts';
import { sameMaterial } from '../auth/rfc9421/revoked-at.ts';
import { quoted } from '../codec/printable.ts';
import type { Jwk } from '../crypto/engine.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { Candidate } from './key-resolver.ts';
import { allKeys } from './jwks.ts';
import type { SenderKeys } from './sender-keys.ts';

interface PinWatchOptions {
  readonly keys: Pick<SenderKeys, 'current'>;
  /** The places of a sender's keys: any of them may have the key. */
  readonly placesOf?: (sender: SenderEntry) => readonly SenderEntry[];
  readonly raiseAlarm: RaiseAlarm;
}

/**
 * Alarms about keys that publishers pin, that are used, and that the seller's JWKS lacks (verification.md
 * §5.5), once per copy of the pin. If the JWKS cannot be fetched it raises nothing and looks again with the
 * next delivery. Nobody waits for it.
 */
export function createPinWatch({
  keys,
  placesOf = (sender) => [sender],
  raiseAlarm,
}: PinWatchOptions): (candidates: readonly Candidate[]) => void {
  const looked = new WeakSet<Jwk>();
  const look = async ({ sender, key }: Candidate): Promise<void> => {
    const results = await Promise.all(placesOf(sender).map((place) => keys.current(place)));
    const sets = results.flatMap((result) => (result.ok ? [result.copy.value] : []));
    if (sets.flatMap(allKeys).some(([, jwk]) => sameMaterial(jwk, key.jwk))) return;
    if (sets.length === 0) return void looked.delete(key.jwk);
    raiseAlarm({
      code: 'pin_not_published',
      message: `A publisher pins the key ${quoted(key.kid)} for ${sender.agentUrl}, and the JWKS of the seller does not have it. The pin decides: the owner of that key can sign as this seller. Ask both; edition: '3.3' of the sender would refuse it.`,
      sender: sender.agentUrl,
      keyid: key.kid,
    });
  };
  return (candidates) => {
    for (const candidate of candidates) {
      const { sender, key } = candidate;
      if (sender.edition.publisherPins !== 'decide-told' || looked.has(key.jwk)) continue;
      looked.add(key.jwk);
      // A fault on our side (no suffix list) says nothing about the pin.
      look(candidate).catch(() => looked.delete(key.jwk));
    }
  };
}
