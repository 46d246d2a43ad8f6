import { finishOutcome, type OutcomeContext } from './answering.ts';
import { loadHashes } from './crypto/native-hashes.ts';
import type { Refusal } from './outcome.ts';
import type { Parts } from './parts.ts';
import { keyidOf } from './refusal-line.ts';
import { declaredLength } from './stages/guard.ts';
import type { Upload } from './ticket.ts';

/** The body of a delivery that its headers refused, and nothing is done with it but to show it; undefined: unwanted. */
export async function refusedUpload(
  refusal: Refusal,
  known: OutcomeContext,
  parts: Parts,
  maxBytes: number,
): Promise<Upload | undefined> {
  const { delivery, selected } = known;
  if (!delivery) return undefined;
  const keyid = keyidOf(delivery.headers);
  if (keyid === undefined || parts.keys.whose(keyid, selected?.senders) === undefined) return undefined;
  const declared = declaredLength(delivery.headers);
  if (declared !== undefined && declared > maxBytes) return undefined;
  return {
    kind: 'upload',
    proof: { sender: undefined },
    hashes: await loadHashes(),
    declared,
    maxBytes,
    finish: async ({ rawBody }) => {
      known.rawBytes = rawBody;
      return finishOutcome(refusal, known, parts);
    },
    fail: () => finishOutcome(refusal, known, parts),
  };
}
