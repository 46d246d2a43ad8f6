import { describe, test } from 'vitest';
import { runVectors } from '../../src/vectors/index.ts';

/** verification.md, section 3: every engine gives the same verdict on every input. */
describe.each(['native', 'webcrypto', 'noble'] as const)("the package's own vectors, engine %s", (engine) => {
  runVectors({ engine, test });
});
