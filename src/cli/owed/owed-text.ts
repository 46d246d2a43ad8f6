import type { Account } from '../../reconcile/account.ts';
import { isWhole, type StreamAccount } from '../../reconcile/stream-account.ts';
import { inLines, type Paint } from '../shell.ts';

/* The account as text, for a terminal. */

/** Windows of a media buy that are printed; `--json` has all. */
const SHOWN = 20;

/** The account of all pages. */
export type WholeAccount = Required<Omit<Account, 'next'>>;

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

/** @param flags as they were given: `mediaBuy` says that one was asked for. */
export function textOf(account: WholeAccount, flags: { readonly mediaBuy?: string }, paint: Paint): string {
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
