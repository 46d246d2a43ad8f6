// The command `proto-webhooks dev`: checks its flags, starts the development tool, prints the lines to paste into a
// receiver, and ends at a signal (docs/spec/dev.md). `program.ts` adds it.
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { messageOf } from '../../shared/errors.ts';
import { protocolFor } from '../../shared/wire-names.ts';
import { type Dev, type DevOptions, startDev } from '../../dev/dev.ts';
import type { ReceiverState } from '../../dev/wire.ts';
import { addVerb, inLine, requireHttpUrl, UsageError, whole } from '../shell.ts';

interface DevFlags {
  readonly forward: string;
  readonly publicUrl?: string;
  readonly port: number;
  readonly dir: string;
  readonly refused: string;
  readonly protocol: string;
  readonly json?: boolean;
}

/** The parts of Node's `process` that the command uses. */
export type DevProcess = Pick<NodeJS.Process, 'cwd' | 'on' | 'off' | 'exit'>;

/** Functions with which the command prints, and the version that its page shows. */
export interface DevHooks {
  /** Prints a line on standard output. */
  readonly print: (line: string) => void;
  /** Prints a line on standard error. */
  readonly notice: (line: string) => void;
  readonly version: () => string;
}

const DEFAULT_FORWARD = 'http://127.0.0.1:3000/webhooks/seller';
/** The highest port (RFC 6335 §6). */
const MOST_PORT = 65_535;

/**
 * Returns the folder with the page's files. It is beside the bundle; in a clone of the repository, it is the build
 * output.
 */
function pageFolder(): URL {
  const beside = new URL('./dev/', import.meta.url);
  return existsSync(new URL('page.js', beside)) ? beside : new URL('../../../dist/dev/', import.meta.url);
}

/**
 * Requires that both URLs end in `/*`, or neither.
 * @throws UsageError if only one does, or if a URL has a `*` elsewhere or a `#`.
 */
function requireAlike(forward: string, publicUrl: string): void {
  for (const [flag, url] of Object.entries({ '--forward': forward, '--public-url': publicUrl })) {
    requireHttpUrl(flag, url);
    if (/\*/.test(url.replace(/\/\*$/, '')) || url.includes('#'))
      throw new UsageError(
        `${flag}: ${inLine(url)}: a * stands at the end alone, behind a slash, and a # nowhere.`,
      );
  }
  if (forward.endsWith('/*') !== publicUrl.endsWith('/*')) {
    throw new UsageError(
      '--forward and --public-url: one ends in /*, which gives each seller a path of its own. Expected both, or none.',
    );
  }
}

/** Checks the flags about URLs, port and protocol name. @throws UsageError, ConfigError */
function destinationOf({
  forward,
  publicUrl = forward,
  port,
  protocol,
}: DevFlags): Pick<DevOptions, 'forward' | 'publicUrl'> {
  requireAlike(forward, publicUrl);
  protocolFor(protocol);
  if (port > MOST_PORT) throw new UsageError(`--port: ${port}: expected at most ${MOST_PORT}.`);
  return { forward, publicUrl };
}

function receiverLine({ state, error }: ReceiverState, forward: string): string {
  return state === 'up'
    ? `The receiver at ${inLine(forward)} is there.`
    : `The receiver at ${inLine(forward)} is away${error === undefined ? '' : ` (${inLine(error)})`}: start it, and it is found again.`;
}

function startLines({ url, sellers }: Dev, { forward, publicUrl }: DevOptions): string[] {
  const [signature] = sellers;
  return [
    `Page      ${url}`,
    `Posts to  ${inLine(forward)}${publicUrl === forward ? '' : `, signed for ${inLine(publicUrl)}`}`,
    `Paste     ${signature?.line ?? ''}`,
    '          into the options of your receiver; the page has the line of the other schemes. Ctrl+C ends it.',
  ];
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Calls `run` with a promise that resolves at the first signal. A second signal ends the process immediately. */
async function untilSignal(process: DevProcess, run: (over: Promise<void>) => Promise<void>): Promise<void> {
  const over = Promise.withResolvers<undefined>();
  let isEnding = false;
  const onSignal = (): void => {
    if (isEnding) process.exit(1);
    isEnding = true;
    over.resolve(undefined);
  };
  // Listeners are added before anything that takes time, because a signal without a listener ends the process.
  for (const signal of SIGNALS) process.on(signal, onSignal);
  try {
    await run(over.promise);
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
}

async function dev(flags: DevFlags, process: DevProcess, hooks: DevHooks): Promise<void> {
  const { print, notice, version } = hooks;
  const say = flags.json ? notice : print;
  let isShown = false;
  let latest: ReceiverState | undefined;
  const tellReceiver = (): void => {
    if (isShown && latest) say(receiverLine(latest, flags.forward));
  };
  const options: DevOptions = {
    ...destinationOf(flags),
    port: flags.port,
    cwd: process.cwd(),
    dir: flags.dir,
    refused: flags.refused,
    protocol: flags.protocol,
    version: version(),
    page: pageFolder(),
    now: Date.now,
    receiver: (state) => {
      latest = state;
      tellReceiver();
    },
    fault: (error) => notice(`proto-webhooks: a fault of dev: ${inLine(messageOf(error))}`),
  };
  await untilSignal(process, async (over) => {
    const running = await startDev(options);
    const { url, port, token, sellers } = running;
    if (flags.json) print(JSON.stringify({ url, port, token, sellers }, undefined, 2));
    else for (const line of startLines(running, options)) print(line);
    isShown = true;
    tellReceiver();
    await over;
    await running.close();
  });
}

export function addDev(parent: Command, process: DevProcess, hooks: DevHooks): void {
  addVerb(parent, 'dev', 'sellers, deliveries and a page to look at them, while you write handlers', [
    'dev',
    'dev --forward http://127.0.0.1:8080/hooks/seller',
    'dev --forward http://127.0.0.1:3000/webhooks/*',
    'dev --public-url https://buyer.example/webhooks/seller',
  ])
    .option(
      '--forward <url>',
      'where deliveries are posted to; one that ends in /* has a path for each seller',
      DEFAULT_FORWARD,
    )
    .option('--public-url <url>', 'the URL that they are signed for, if it is not that of --forward')
    .option('--port <n>', 'of the page and the agent URLs', whole(1), 4646)
    .option('--dir <folder>', 'where keys, secrets and the token are kept', '.proto-webhooks')
    .option('--refused <folder>', 'the folder of captureRefused', 'refused')
    .option('--protocol <name>', 'name in wire identifiers', 'proto')
    .action((flags: DevFlags) => dev(flags, process, hooks));
}
