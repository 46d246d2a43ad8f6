import type { OutcomeContext } from './answering.ts';
import type { Verdict } from './outcome.ts';
import type { Parts } from './parts.ts';
import type { Upload } from './ticket.ts';

/** Enough for an example of each fault; a flood of refusals costs no more than one body a second. */
const EVERY_MS = 1_000;

/**
 * Whether the body of a delivery that its headers refused is read all the same, for `onRefused`: one a second, of who
 * names a key of a known sender. It decides nothing: the answer is the refusal, with or without the body.
 */
export function createBodySampling(
  parts: Parts,
): (verdict: Verdict, known: OutcomeContext) => Verdict | Promise<Verdict | Upload> {
  const maxBytes = parts.onRefused ? parts.refusedBodyBytes : 0;
  let last = Number.NEGATIVE_INFINITY;
  return (verdict, known) => {
    if (maxBytes === 0 || verdict.kind !== 'refused' || !known.selected) return verdict;
    const now = parts.now();
    if (Math.abs(now - last) < EVERY_MS) return verdict;
    return import('./refused-body.ts').then(async (it) => {
      const upload = await it.refusedUpload(verdict, known, parts, maxBytes);
      if (upload) last = now;
      return upload ?? verdict;
    });
  };
}
