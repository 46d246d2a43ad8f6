// Tells the figures of a proof: what was driven, and what was found.
// Called by the tests of the long proofs; `npm run proofs` takes the lines from the file that it names.
import { appendFileSync } from 'node:fs';
import { expect } from 'vitest';

/** Prints the figures of the test that runs, as one JSON line. */
export function tell(figures: object): void {
  const line = `${JSON.stringify({ test: expect.getState().currentTestName, ...figures })}\n`;
  process.stdout.write(line);
  const { PROOF_FIGURES: file } = process.env;
  if (file) appendFileSync(file, line);
}
