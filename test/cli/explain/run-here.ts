import { Command } from 'commander';
import { addExplain, createPaint, type Explanation, type RunVerb } from '../../../src/cli/for-tests.ts';

/** What `explain` came to: a report, or why it could not be done as given (exit code 2). */
export type Explained =
  | { readonly code: 0 | 1; readonly explanation: Explanation; readonly text: string }
  | { readonly code: 2; readonly message: string };

/** The verb with its options, in this process: a process each would take minutes for all vectors. */
export async function explainHere(args: readonly string[], input = '', now = Date.now): Promise<Explained> {
  let ended: Explained | undefined;
  const context = {
    env: {},
    cwd: process.cwd(),
    now,
    stdin: async () => new TextEncoder().encode(input),
    notice: () => undefined,
  };
  const run: RunVerb = async (_, verb) => {
    try {
      const { ok, json, text } = await verb(context);
      ended = { code: ok ? 0 : 1, explanation: json as Explanation, text: text(createPaint(false)) };
    } catch (error) {
      ended = { code: 2, message: (error as Error).message };
    }
  };
  const top = new Command('proto-webhooks').exitOverride();
  addExplain(top, run);
  await top.parseAsync(['explain', ...args], { from: 'user' });
  if (!ended) throw new Error('explain did not run');
  return ended;
}
