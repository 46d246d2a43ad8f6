import type { Command } from 'commander';
import { loadHashes } from '../../crypto/native-hashes.ts';
import {
  type Account,
  accountOf,
  type AccountSource,
  isWhole,
  type StreamAccount,
  type TaskCounts,
} from '../../reconcile/account.ts';
import { TOLERANCE } from '../../reconcile/evaluate.ts';
import { addStoreFlags, openStore, type StoreFlags } from '../inbox/open-store.ts';
import {
  addVerb,
  type CliContext,
  inLines,
  instant,
  type Paint,
  type Report,
  type RunVerb,
  UsageError,
  whole,
} from '../shell.ts';

interface OwedFlags extends StoreFlags {
  readonly seller?: string;
  readonly mediaBuy?: string;
  readonly since?: string;
  readonly expectedDelayMs: number;
  readonly graceMs: number;
  readonly json?: boolean;
}

/** Asks each page: the whole account is printed. */
const PAGE = 1000;
const NO_TASKS: TaskCounts = { ended: 0, open: 0, unresolved: 0, orphaned: 0 };
/** Windows of a media buy that are printed; `--json` has all. */
const SHOWN = 20;

type WholeAccount = Required<Omit<Account, 'next'>>;

/** All pages as one; the times are those of the first. */
async function wholeAccount(source: AccountSource, flags: OwedFlags): Promise<WholeAccount> {
  const { seller: agentUrl, mediaBuy: mediaBuyId } = flags;
  const since = flags.since === undefined ? undefined : instant('--since', flags.since);
  const query = { agentUrl, mediaBuyId, since, limit: PAGE };
  const { next: second, tasks = NO_TASKS, asOf, ...first } = await accountOf(source, query);
  let { complete, streams } = first;
  for (let after = second; after !== undefined;) {
    const page = await accountOf(source, { ...query, after });
    complete &&= page.complete;
    streams = [...streams, ...page.streams];
    after = page.next;
  }
  return { complete, asOf, tasks, streams };
}

/** The worst that is so of a media buy. */
function stateOf({ missing, held, unverifiable, closed }: StreamAccount): string {
  if (unverifiable !== undefined) return 'unverifiable';
  if (missing.length > 0) return 'missing';
  if (held.length > 0) return 'held';
  return closed ? 'closed' : 'ok';
}

const COLUMNS = ['state', 'due', 'webhook', 'pull', 'missing', 'held', 'frequency', 'zone'] as const;

function cellsOf(stream: StreamAccount): readonly string[] {
  const { windows, missing, held, frequency, zone } = stream;
  const counts = [windows.due, windows.byWebhook, windows.byPull, missing.length, held.length];
  return [stateOf(stream), ...counts.map(String), frequency ?? 'none', zone.value];
}

/** The windows of a media buy that are not there, one a line. */
function windowLines({ missing, held, unverifiable }: StreamAccount): readonly string[] {
  const lines = [
    ...(unverifiable === undefined ? [] : [`unverifiable: ${unverifiable}`]),
    ...missing.map(({ start, end, tries, lastError, recoverable }) => {
      const pulls = tries === 0 ? '' : `, ${tries} ${tries === 1 ? 'pull' : 'pulls'} in vain`;
      const error = lastError === undefined ? '' : `: ${lastError}`;
      return `missing ${start} to ${end}${recoverable ? '' : ', cannot be pulled'}${pulls}${error}`;
    }),
    ...held.map(({ start, end, key }) => `held ${start} to ${end}, DEAD event ${key}`),
  ];
  const left = lines.length - SHOWN;
  return left > 0 ? [...lines.slice(0, SHOWN), `and ${left} more: --json has all`] : lines;
}

function table(streams: readonly StreamAccount[], paint: Paint): readonly string[] {
  const rows = streams.map(cellsOf);
  const widths = COLUMNS.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const lineOf = (cells: readonly string[], behind: string): string =>
    `${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')}  ${behind}`;
  const head = lineOf(COLUMNS, 'media buy');
  const body = streams.flatMap((stream, at) => {
    const line = lineOf(rows[at] ?? [], `${stream.mediaBuyId} at ${stream.agentUrl}`);
    return [paint(isWhole(stream) ? 'good' : 'bad', line), ...windowLines(stream).map((one) => `    ${one}`)];
  });
  return streams.length === 0 ? [] : [paint('bold', head), ...body];
}

function textOf(account: WholeAccount, flags: OwedFlags, paint: Paint): string {
  const { tasks, streams, complete, asOf } = inLines(account);
  const { ended, open, unresolved, orphaned } = tasks;
  const none =
    flags.mediaBuy === undefined
      ? 'No media buy with reports is registered.'
      : 'Nothing is known of this media buy: it is not registered with reports, nor adopted.';
  return [
    ...table(streams, paint),
    ...(streams.length === 0 ? [none] : []),
    `Tasks: ${ended} ended, ${open} open, ${unresolved} unresolved, ${orphaned} orphaned`,
    paint(
      complete ? 'good' : 'bad',
      `${complete ? 'Complete' : 'Not complete'} as of ${new Date(asOf).toISOString()}`,
    ),
  ].join('\n');
}

function plain({ tasks, asOf, ...account }: WholeAccount): object {
  const { since, ...counts } = tasks;
  return {
    ...account,
    asOf: new Date(asOf).toISOString(),
    tasks: { ...counts, ...(since !== undefined && { since: new Date(since).toISOString() }) },
  };
}

async function owed(flags: OwedFlags, context: CliContext): Promise<Report> {
  const { seller, mediaBuy, expectedDelayMs: delayMs, graceMs } = flags;
  if (mediaBuy !== undefined && seller === undefined) {
    throw new UsageError('--media-buy needs --seller. Media buys of two sellers may have one id.');
  }
  const { registrations: rows, close } = await openStore(flags, context);
  try {
    const source = { rows, hashes: await loadHashes(), tolerance: { delayMs, graceMs } };
    const account = await wholeAccount(source, flags);
    const isKnown = mediaBuy === undefined || account.streams.length > 0;
    return {
      ok: isKnown && account.streams.every(isWhole),
      json: plain(account),
      text: (paint) => textOf(account, flags, paint),
    };
  } finally {
    await close();
  }
}

/** `owed`. */
export function addOwed(parent: Command, run: RunVerb): void {
  const verb = addVerb(parent, 'owed', 'report windows that media buys owe: what came, and what is missing', [
    'owed --sqlite webhooks.db',
    'owed --postgres --json',
    'owed --redis redis://localhost --seller https://seller.example/mcp --media-buy mb_1',
  ])
    .option('--seller <url>', 'only of this agent URL')
    .option('--media-buy <id>', 'only this media buy of --seller')
    .option('--since <instant>', 'only windows that end after it')
    .option('--expected-delay-ms <n>', "the reconciler's expectedDelayMs", whole(0), TOLERANCE.delayMs)
    .option('--grace-ms <n>', "the reconciler's graceMs", whole(0), TOLERANCE.graceMs);
  addStoreFlags(verb).action((flags: OwedFlags) => run(flags, (context) => owed(flags, context)));
}
