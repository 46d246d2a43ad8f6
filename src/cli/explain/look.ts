import type { Step } from './checklist.ts';
import type { Case, ExplainInput, Explanation } from './explain.ts';
import type { Finding } from './finding.ts';

/** Looks at the delivery once more, with something mended. */
export interface Again {
  /** The checklist alone. */
  readonly steps: (input: ExplainInput) => Promise<readonly Step[]>;
  /** With causes: only for what passes the step that is looked into, or there would be no end. */
  readonly explain: (input: ExplainInput) => Promise<Explanation>;
}

/** Looks into one step that failed. */
export type Look = (made: Case, step: Step, again: Again) => Promise<readonly Finding[]>;

/** What is left to say where no search finds anything. */
export const unknown = (step: Step, says: string, fix: string): Finding => ({
  step: step.id,
  cause: 'unknown',
  says,
  fix,
  proved: false,
});
