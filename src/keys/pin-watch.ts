// Raises an alarm about pinned keys that are in use but missing in the seller's own JWKS (verification.md §5.5).
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
  /** Returns the sender once for each URL at which its keys are searched; each of these URLs may have the key. */
  readonly placesOf?: (sender: SenderEntry) => readonly SenderEntry[];
  readonly raiseAlarm: RaiseAlarm;
}

/**
 * Returns a function that raises an alarm about keys that publishers pin and deliveries use, but the seller's JWKS
 * lacks (verification.md §5.5). There is one alarm per copy of the pin. If the JWKS cannot be fetched, there is no
 * alarm, and the next delivery checks again. No delivery waits for the check.
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
      // The check failed by a local fault (e.g. no public suffix list), which says nothing about the pin. So the next
      // delivery checks again.
      look(candidate).catch(() => looked.delete(key.jwk));
    }
  };
}
