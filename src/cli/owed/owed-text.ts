// Formats the account (a list of the reports and task results that sellers still owe) as text for a terminal.
// `proto-webhooks owed` calls it.
import type { Account } from '../../reconcile/account.ts';
import type { BuyTotals } from '../../registrations/streams.ts';
import { isWhole, type StreamAccount } from '../../reconcile/stream-account.ts';
import type { TaskCounts } from '../../reconcile/tasks-account.ts';
import { inLines, type Paint } from '../shell.ts';

/**
 * The largest number of lines that are printed for one media buy, and of operations that are printed; `--json` prints
 * all.
 */
const SHOWN = 20;

/** The account of what sellers still owe, with all its pages joined. */
export type WholeAccount = Omit<Account, 'next'> & Required<Pick<Account, 'tasks'>>;

/** Returns the most severe state of a media buy. */
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

/** Returns the lines about a media buy: its faults, and each missing report window. */
function linesOf(stream: StreamAccount): readonly string[] {
  const { missing, held, unverifiable, final, closedAt, totals, impairments } = stream;
  const lines = [
    ...(unverifiable === undefined ? [] : [`unverifiable: ${unverifiable}`]),
    ...(closedAt === undefined ? [] : [`closed ${closedAt}${final === undefined ? '' : `, final ${final}`}`]),
    ...(closedAt === undefined && final !== undefined ? [`final ${final}`] : []),
    ...(totals ? [totalsLine(totals)] : []),
    ...impairments
      .filter(({ state }) => state === 'open')
      .map(({ id, observedAt, source }) => `impaired by ${id} since ${observedAt}, told by ${source}`),
    ...missing.map(({ start, end, tries, lastError, recoverable }) => {
      const pulls = tries === 0 ? '' : `, ${tries} ${tries === 1 ? 'pull' : 'pulls'} in vain`;
      const error = lastError === undefined ? '' : `: ${lastError}`;
      return `missing ${start} to ${end}${recoverable ? '' : ', cannot be pulled'}${pulls}${error}`;
    }),
    ...held.map(({ start, end, key }) => `held ${start} to ${end}, DEAD event ${key}`),
  ];
  return cut(lines);
}

function totalsLine(totals: NonNullable<StreamAccount['totals']>): string {
  if ('error' in totals) return `totals not compared: ${totals.error}`;
  const { ours, theirs, differs, at } = totals;
  const side = ({ impressions, spend, currency = '' }: BuyTotals): string =>
    `${impressions ?? '?'} impressions, ${spend ?? '?'} ${currency}`.trimEnd();
  return `totals ${differs ? 'differ' : 'agree'}: ours ${side(ours)}; the seller's ${side(theirs)}, as of ${at}`;
}

function cut(lines: readonly string[]): readonly string[] {
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
    return [paint(isWhole(stream) ? 'good' : 'bad', line), ...linesOf(stream).map((one) => `    ${one}`)];
  });
  return streams.length === 0 ? [] : [paint('bold', head), ...body];
}

/** The units of an age. An age is printed in the largest unit of which it has at least one. */
const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
] as const;

function age(ms: number): string {
  const [unit, name] = UNITS.find(([least]) => ms >= least) ?? [1000, 's'];
  return `${Math.floor(ms / unit)} ${name}`;
}

/**
 * Returns one line for each operation (call of a seller) that needs attention, and one for the seller with the oldest
 * open operation.
 */
function taskLines({
  ended,
  open,
  unresolved,
  orphaned,
  changed,
  attention,
  sellers,
}: TaskCounts): readonly string[] {
  const named = attention.map(({ state, taskType, taskId, operationId, ref, agentUrl, ageMs, todo }) => {
    const of = [`operation ${operationId}`, ...(taskId === undefined ? [] : [`task ${taskId}`])];
    const own = ref === undefined ? '' : `, ref ${ref}`;
    return `${state} for ${age(ageMs)}: ${taskType} at ${agentUrl}, ${of.join(', ')}${own}${todo === undefined ? '' : `. ${todo}`}`;
  });
  const [slowest] = sellers;
  const news = changed ? `; since then ${changed.registered} registered, ${changed.ended} ended` : '';
  return [
    `Tasks: ${ended} ended, ${open} open, ${unresolved} unresolved, ${orphaned} orphaned${news}`,
    ...cut(named).map((one) => `    ${one}`),
    ...(slowest
      ? [`Slowest seller: ${slowest.agentUrl}, ${slowest.open} open, the oldest for ${age(slowest.oldestMs)}`]
      : []),
  ];
}

/** Returns the account as text. @param flags the given flags; `mediaBuy` is set if one media buy was requested. */
export function textOf(
  account: WholeAccount,
  { mediaBuy, since }: { readonly mediaBuy?: string; readonly since?: string },
  paint: Paint,
): string {
  const { tasks, streams, unchanged = 0, complete, asOf } = inLines(account);
  const none =
    mediaBuy === undefined
      ? 'No media buy is registered.'
      : 'Nothing is known of this media buy: it is neither registered nor adopted.';
  const leftOut = `${unchanged} ${unchanged === 1 ? 'media buy has' : 'media buys have'} nothing newer than ${since}.`;
  return [
    ...table(streams, paint),
    ...(streams.length + unchanged === 0 ? [none] : []),
    ...(unchanged > 0 ? [leftOut] : []),
    ...taskLines(tasks),
    paint(
      complete ? 'good' : 'bad',
      `${complete ? 'Complete' : 'Not complete'} as of ${new Date(asOf).toISOString()}${since === undefined ? '' : `, of what is newer than ${since}`}`,
    ),
  ].join('\n');
}
