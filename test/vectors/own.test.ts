import { describe, test } from 'vitest';
import { librarySubject, runVectors } from '../../src/vectors/index.ts';
import { sodiumNative } from '../crypto/sodium-native.ts';
import { inThisForm } from '../reliability/form.ts';

/** verification.md §3.5: every engine gives the same verdict on every input. */
const ENGINES = ['native', 'webcrypto', 'noble'] as const;

/** `npm test` has all but the slowest, whose verdicts on keys and signatures `crypto/engines.test.ts` holds there. */
describe.each(inThisForm(ENGINES, (engine) => engine !== 'noble'))(
  "the package's own vectors, engine %s",
  (engine) => {
    runVectors({ engine, test });
  },
);

describe.each([
  ["verification: 'pool'", librarySubject('native', { verification: 'pool' })],
  ['sodium-native', librarySubject('native', { sodium: sodiumNative })],
])("the package's own vectors, %s", (_, subject) => {
  runVectors({ subject, test });
});
