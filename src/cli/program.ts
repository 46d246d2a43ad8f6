// Builds the command line of all commands, and runs one command: output, exit code, errors in one line each. `main.ts`
// calls it if Node is new enough.
import { Command, CommanderError } from 'commander';
import { createRequire } from 'node:module';
import { buffer } from 'node:stream/consumers';
import { TargetUriError } from '../auth/rfc9421/host.ts';
import { printableText } from '../codec/printable.ts';
import { printableValue } from '../codec/printable-value.ts';
import { ConfigError, Fault } from '../shared/errors.ts';
import { addDev, type DevHooks } from './dev/dev-verb.ts';
import { addExplain } from './explain/explain-verb.ts';
import { addInbox } from './inbox/inbox-verb.ts';
import { addKeysCheck, addKeysGenerate } from './keys/keys-verb.ts';
import {
  type CliContext,
  createPaint,
  harmless,
  MistakesError,
  type RunVerb,
  UsageError,
  wantsColour,
} from './shell.ts';
import { addOwed } from './owed/owed-verb.ts';
import { addProbe } from './probe/probe-verb.ts';
import { RegistryError } from '../registry/types.ts';
import { addRegistry } from './registry/registry-verb.ts';
import { addSend } from './send/send-verb.ts';
import { addServe, type ServeHooks, type ServeProcess } from './serve/serve-verb.ts';
import { addState } from './state/state-verb.ts';
import { addTasks } from './tasks/tasks-verb.ts';
import { addVectorsRun } from './vectors/vectors-verb.ts';
import { isError } from '../shared/realms.ts';

/** The parts of the process that the command line uses. */
export type CliProcess = Pick<NodeJS.Process, 'env' | 'cwd' | 'stdin' | 'stdout' | 'stderr'> & ServeProcess;

/** Exit codes. `pass`: everything passed. `fail`: something failed. `usage`: the command could not be done as given. */
const EXIT = { pass: 0, fail: 1, usage: 2 } as const;

const EXAMPLES = `
Examples:
  $ proto-webhooks explain delivery.http --keys seller-jwks.json --url https://buyer.example/webhooks/proto
  $ proto-webhooks vectors probe https://buyer.example/webhooks/proto --keys probe-keys.json
  $ proto-webhooks vectors run
  $ proto-webhooks keys check https://seller.example/mcp

Exit codes: 0 pass, 1 fail, 2 usage.`;

/** Writes a line. On a terminal, characters that control it are replaced; text for a file or a pipe stays as it is. */
function write(stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>, text: string): void {
  stream.write(`${stream.isTTY ? harmless(text) : text}\n`);
}

function contextOf(process: CliProcess): CliContext {
  return {
    env: process.env,
    cwd: process.cwd(),
    now: Date.now,
    stdin: async () => new Uint8Array(await buffer(process.stdin)),
    notice: (line) => write(process.stderr, line),
  };
}

/** The errors that are no fault of this tool: a wrong argument, or something that cannot be reached. */
const EXPECTED = [UsageError, ConfigError, Fault, RegistryError, TargetUriError] as const;

/** The beginning of every line about an error. */
const PREFIX = 'proto-webhooks: ';

/** The longest error message, in characters, because a message may repeat a long part of a file. */
const MAX_MESSAGE = 4000;

/** Returns the error message for stderr; undefined for a fault of this tool. */
function usageText(error: unknown): string | undefined {
  const expected = EXPECTED.some((kind) => error instanceof kind);
  if (!expected || !isError(error)) return undefined;
  return oneLine(error.message);
}

/** Returns the text in one printable line, because it may contain text of other parties. */
const oneLine = (text: string): string => printableText(text.replace(/\s+/g, ' '), MAX_MESSAGE);

/**
 * Returns the message for a fault of this tool, with its stack. The message is made printable, because it may repeat
 * text that was read.
 */
function faultText(error: unknown): string {
  const shown = printableValue(isError(error) ? error : String(error));
  return `a fault of this tool: ${isError(shown) ? (shown.stack ?? shown.message) : shown}`;
}

/**
 * Returns the stable error code that `--json` prints. `usage`: a wrong argument; `internal`: a fault of this tool;
 * otherwise the code of the error.
 */
function codeOf(error: unknown): string {
  if (error instanceof UsageError || error instanceof CommanderError) return 'usage';
  return EXPECTED.some((kind) => error instanceof kind) && isError(error) && 'code' in error
    ? String(error.code)
    : 'internal';
}

/** Returns the version of this package. The package is found by its name, so that this works in any bundle. */
function ownVersion(): string {
  const own = createRequire(import.meta.url)('proto-webhooks/package.json') as { readonly version: string };
  return own.version;
}

/**
 * Functions that `serve` and `dev` call: they print lines while the command runs, end the command line, and return the
 * version.
 */
type Hooks = ServeHooks & DevHooks;

const NO_HOOKS: Hooks = {
  print: () => undefined,
  notice: () => undefined,
  end: () => undefined,
  version: ownVersion,
};

/** Returns the command line with all commands and flags. */
export function cliProgram(run: RunVerb, process: CliProcess, hooks: Hooks = NO_HOOKS): Command {
  const top = new Command('proto-webhooks')
    .description('Tools for signed advertising webhooks: look into deliveries, probe a receiver, check keys.')
    .version(ownVersion())
    .addHelpText('after', EXAMPLES)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void process.stdout.write(text),
      writeErr: (text) => void process.stderr.write(text),
      outputError: (text, writeErr) => writeErr(text.replace(/^error: /, PREFIX)),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  addExplain(top, run);
  addSend(top, run);
  const vectors = top
    .command('vectors')
    .description('check the conformance of an implementation, or of a running receiver');
  addVectorsRun(vectors, run);
  addProbe(vectors, run);
  const keys = top.command('keys').description('check and make signing keys');
  addKeysCheck(keys, run);
  addKeysGenerate(keys, run);
  addInbox(top.command('inbox').description("a store's events that are dead or stuck"), run);
  addTasks(top, run);
  addOwed(top, run);
  addState(top, run);
  addServe(top, run, process, hooks);
  addDev(top, process, hooks);
  addRegistry(top.command('registry').description("the registry's badges and compliance diagnostics"), run);
  return top;
}

/**
 * Runs one command.
 * @param args without node and script.
 * @returns the exit code.
 */
export async function main(args: readonly string[], process: CliProcess): Promise<number> {
  let exit: number = EXIT.pass;
  const paint = createPaint(wantsColour(process.stdout.isTTY, process.env));
  const run: RunVerb = async (options, verb) => {
    const { ok, json, text } = await verb(contextOf(process));
    write(process.stdout, options.json ? JSON.stringify(json, undefined, 2) : text(paint));
    exit = ok ? EXIT.pass : EXIT.fail;
  };
  const hooks: Hooks = {
    print: (line) => write(process.stdout, line),
    notice: (line) => write(process.stderr, line),
    version: ownVersion,
    end: (code, message) => {
      exit = code;
      if (message !== undefined) write(process.stderr, PREFIX + oneLine(message));
    },
  };
  const fail = (error: unknown, message: string): number => {
    if (args.includes('--json')) {
      write(process.stdout, JSON.stringify({ error: { code: codeOf(error), message } }, undefined, 2));
    }
    return EXIT.usage;
  };
  if (args.length === 0) {
    const names = cliProgram(run, process).commands.map((command) => command.name());
    write(process.stderr, `${PREFIX}name a command: ${names.join(', ')}. --help says what each does.`);
    return EXIT.usage;
  }
  try {
    await cliProgram(run, process, hooks).parseAsync([...args], { from: 'user' });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.pass;
    // commander, which parses the command line, has printed its own error message already.
    if (error instanceof CommanderError) return fail(error, error.message.replace(/^error: /, ''));
    const texts =
      error instanceof MistakesError ? error.lines.map(oneLine) : [usageText(error) ?? faultText(error)];
    for (const text of texts) write(process.stderr, `${PREFIX}${text}`);
    return fail(error, texts.join('\n'));
  }
}
