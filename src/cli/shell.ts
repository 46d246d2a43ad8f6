import type { Command } from 'commander';

/** Ways in which text is set off on a terminal. */
export type Style = 'good' | 'bad' | 'warn' | 'dim' | 'bold';

/** Sets text off, or leaves it as it is where the output is no terminal. */
export type Paint = (style: Style, text: string) => string;

/** What a verb came to: `main` prints it and ends with 0 or 1. */
export interface Report {
  /** False: exit code 1. */
  readonly ok: boolean;
  /** Printed with `--json`. */
  readonly json: unknown;
  /** Printed without; no line feed at its end. */
  readonly text: (paint: Paint) => string;
}

/** The world as a verb sees it. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Files and the user's own packages are looked for from here. */
  readonly cwd: string;
  /** Unix ms. */
  readonly now: () => number;
  readonly stdin: () => Promise<Uint8Array>;
  /** A line on stderr while the verb runs. */
  readonly notice: (line: string) => void;
}

/** Hands a verb to the process: runs it, prints its report, sets the exit code. */
export type RunVerb = (
  options: { readonly json?: boolean },
  verb: (context: CliContext) => Promise<Report>,
) => Promise<void>;

/** Adds a verb below `parent`, with `--json` and examples in its help. */
export function addVerb(
  parent: Command,
  name: string,
  summary: string,
  examples: readonly string[],
): Command {
  return parent
    .command(name)
    .description(summary)
    .option('--json', 'print one JSON value instead of text')
    .addHelpText('after', `\nExamples:\n${examples.map((line) => `  $ proto-webhooks ${line}`).join('\n')}`);
}
