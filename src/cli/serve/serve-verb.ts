// The command `proto-webhooks serve`: receives webhooks until a signal ends it. With `--check` or `--migrate`, it only
// checks the configuration or migrates the store.
import type { Command } from 'commander';
import { addVerb, type CliContext, MistakesError, type Report, type RunVerb, UsageError } from '../shell.ts';

interface ServeFlags {
  readonly config: string;
  readonly check?: boolean;
  readonly migrate?: boolean;
  readonly json?: boolean;
}

/** The parts of Node's `process` that the command uses. */
export type ServeProcess = Pick<NodeJS.Process, 'env' | 'cwd' | 'on' | 'off' | 'exit'>;

/** Functions with which the command prints and ends. */
export interface ServeHooks {
  /** Prints a line on standard output. */
  readonly print: (line: string) => void;
  /** Ends the command with this exit code. @param message one line for the user, if a fault ended the command. */
  readonly end: (code: number, message?: string) => void;
}

/** The longest time that the process continues once the command has ended. Ms. */
const LINGER_MS = 500;

/** Loads serve and the YAML parser, which no other command needs. */
const load = async (): Promise<typeof import('../../serve/serve.ts')> => import('../../serve/serve.ts');

/** Reads the configuration. @throws MistakesError */
async function configured(
  file: string,
  { cwd, env }: Pick<CliContext, 'cwd' | 'env'>,
): Promise<Pick<Parameters<Awaited<ReturnType<typeof load>>['serve']>[0], 'source' | 'config'>> {
  const source = { file, cwd, env };
  const read = (await load()).readConfig(source);
  if ('mistakes' in read) throw new MistakesError(read.mistakes);
  return { source, config: read.config };
}

async function check(flags: ServeFlags, context: CliContext): Promise<Report> {
  const { source, config } = await configured(flags.config, context);
  const parts = await (await load()).checkParts(source, config);
  return {
    ok: parts.every(({ ok }) => ok),
    json: { ok: parts.every(({ ok }) => ok), parts },
    text: (paint) =>
      parts
        .map(({ part, ok, text }) => `${ok ? paint('good', 'ok  ') : paint('bad', 'FAIL')}  ${part}: ${text}`)
        .join('\n'),
  };
}

async function migrate(flags: ServeFlags, context: CliContext): Promise<Report> {
  const { source, config } = await configured(flags.config, context);
  const text = await (await load()).migrateStore(source, config);
  return { ok: true, json: { ok: true, text }, text: () => text };
}

export function addServe(
  parent: Command,
  run: RunVerb,
  process: ServeProcess,
  { print, end }: ServeHooks,
): void {
  addVerb(parent, 'serve', 'receive webhooks as a process, and hand their events to a URL or a module', [
    'serve --config webhooks.yaml',
    'serve --config webhooks.yaml --check',
    'serve --config webhooks.yaml --migrate',
  ])
    .requiredOption('--config <file>', 'the configuration, a YAML file')
    .option('--check', 'try configuration, store and sink without a change, and end')
    .option('--migrate', "make or raise the store's tables (Postgres, MySQL), and end")
    .action(async (flags: ServeFlags) => {
      if (flags.check && flags.migrate) throw new UsageError('--check and --migrate: write one of them.');
      try {
        if (flags.check) return await run(flags, (context) => check(flags, context));
        if (flags.migrate) return await run(flags, (context) => migrate(flags, context));
        const given = await configured(flags.config, { cwd: process.cwd(), env: process.env });
        const { serve } = await load();
        const exit = (code: number): never => process.exit(code);
        const { code, message } = await serve({ ...given, write: print, signals: process, exit });
        return end(code, message);
      } finally {
        // An open handle in the owner's sink module must not keep the process running.
        setTimeout(() => process.exit(), LINGER_MS).unref();
      }
    });
}
