import { execFile } from 'node:child_process';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { type CliProcess, main } from '../../src/cli/for-tests.ts';
import { FORM } from '../reliability/form.ts';

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

/**
 * Runs the command line: in this process in `npm test`, for a process a call is most of what the calls cost; built, and
 * in a process of its own, in the other forms.
 */
export function cli(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return FORM === 'short' ? cliHere(args, options) : cliApart(args, options);
}

async function cliHere(args: readonly string[], { env = {}, cwd, input = '' }: RunOptions): Promise<Ended> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const printed = Promise.all([text(stdout), text(stderr)]);
  const streams = { stdin: Readable.from([Buffer.from(input)]), stdout, stderr };
  const code = await main(args, {
    env: { ...process.env, ...env },
    cwd: () => cwd ?? process.cwd(),
    ...streams,
  } as unknown as CliProcess);
  stdout.end();
  stderr.end();
  const [out, err] = await printed;
  return { code, stdout: out, stderr: err };
}

/** Runs the built command line in a process of its own. */
export function cliApart(
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
  const { stdout } = await cliApart(args, { env: { TERM: 'xterm', ...env }, imports: TERMINAL });
  return stdout;
}
