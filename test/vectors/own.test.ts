import { describe, test } from 'vitest';
import { librarySubject, runVectors } from '../../src/vectors/index.ts';
import { inThisForm } from '../reliability/form.ts';

const SUBJECTS = [
  ['engine native', librarySubject('native')],
  ['engine webcrypto', librarySubject('webcrypto')],
  ['engine noble', librarySubject('noble')],
  ["verification: 'pool'", librarySubject('native', { verification: 'pool' })],
  ['sodium-native', librarySubject()],
] as const;

/**
 * verification.md §3.5: every engine gives the same verdict on every input. `npm test` has all but the slowest, whose verdicts
 * on keys and signatures `crypto/engines.test.ts` holds there.
 */
describe.each(inThisForm(SUBJECTS, ([name]) => name !== 'engine noble'))(
  "the package's own vectors, %s",
  (_, subject) => {
    runVectors({ subject, test });
  },
);
