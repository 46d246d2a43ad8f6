import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The command line as users have it. */
export const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
  /** Module that is loaded first. */
  readonly imports?: string;
}

/** Runs the built command line in a process of its own. */
export function cli(
  args: readonly string[],
  { env = {}, cwd, input = '', imports }: RunOptions = {},
): Promise<Ended> {
  const options = { env: { ...process.env, ...env }, ...(cwd !== undefined && { cwd }) };
  const first = imports === undefined ? [] : ['--import', imports];
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      ['--no-warnings', ...first, CLI, ...args],
      options,
      (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
      },
    );
    child.stdin?.end(input);
  });
}

/** Says to the process that its output is a terminal, before anything of ours is loaded. */
const TERMINAL = 'data:text/javascript,process.stdout.isTTY=true;';

/** The same on a terminal. */
export async function cliOnTerminal(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { stdout } = await cli(args, { env: { TERM: 'xterm', ...env }, imports: TERMINAL });
  return stdout;
}
