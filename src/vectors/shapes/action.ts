import type { Expectation } from '../case.ts';
import { VectorError } from '../errors.ts';
import { type JsonObject, optionalText } from './members.ts';

/** Words of publishers for a verifier's verdict, in lower case, with `_` between parts. */
const ACCEPTING = 'accept accepted verify verified valid pass passed success ok'.split(' ');
const REJECTING = 'reject rejected refuse refused deny denied invalid fail failed failure error'.split(' ');

const VERDICTS: ReadonlyMap<string, boolean> = new Map([
  ...[...ACCEPTING, 'must_accept', 'must_verify', 'must_pass', 'must_not_reject'].map(
    (word) => [word, true] as const,
  ),
  ...[...REJECTING, 'must_reject', 'must_refuse', 'must_fail'].map((word) => [word, false] as const),
  ...['must_not_accept', 'must_not_verify', 'must_not_pass'].map((word) => [word, false] as const),
]);

/** A refusal with its reason, as in `reject-malformed`. */
const WITH_REASON = /^(?:must_)?(?:reject|refuse|deny|rejected|refused|denied)_(.+)$/;
/** What turns or limits a verdict and so is no reason. */
const CONDITIONS = ['or', 'not', 'no', 'if', 'unless', 'when', 'may', 'never', 'nothing'];

const isReason = (text: string): boolean =>
  text.split('_').every((part) => !CONDITIONS.includes(part) && !ACCEPTING.includes(part));

/** Whether a word asks to accept; undefined for one that is not known. */
export function verdictOf(action: string): boolean | undefined {
  const word = action
    .trim()
    .toLowerCase()
    .replace(/[\s_-]+/g, '_');
  const reason = WITH_REASON.exec(word)?.[1];
  return VERDICTS.get(word) ?? (reason !== undefined && isReason(reason) ? false : undefined);
}

/**
 * What `expected_verifier_action` of an HMAC vector asks for; without the member only the digest is judged.
 * @throws VectorError for a word that is not known: a guess could turn the verdict round.
 */
export function actionExpectation(vector: JsonObject): Expectation {
  const action = optionalText(vector, 'expected_verifier_action');
  if (action === undefined) return { proved: true };
  const authentic = verdictOf(action);
  if (authentic === undefined) {
    const name = JSON.stringify(action);
    throw new VectorError(`expected_verifier_action ${name} is not known: expected accept or reject`);
  }
  return { authentic };
}
