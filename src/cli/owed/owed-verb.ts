// The command `proto-webhooks owed`: prints the reports and task results that sellers still owe, according to a store.
import type { Command } from 'commander';
import { loadHashes } from '../../crypto/native-hashes.ts';
import { accountOf, type AccountSource } from '../../reconcile/account.ts';
import { TOLERANCE } from '../../reconcile/evaluate.ts';
import { isWhole } from '../../reconcile/stream-account.ts';
import type { TaskCounts } from '../../reconcile/tasks-account.ts';
import { addStoreFlags, openStore, type StoreFlags } from '../inbox/open-store.ts';
import { addVerb, type CliContext, instant, type Report, type RunVerb, UsageError, whole } from '../shell.ts';
import { isSellerKnown, UNKNOWN_SELLER } from '../known-seller.ts';
import { textOf, type WholeAccount } from './owed-text.ts';

interface OwedFlags extends StoreFlags {
  readonly seller?: string;
  readonly mediaBuy?: string;
  readonly since?: string;
  readonly expectedDelayMs: number;
  readonly graceMs: number;
  readonly json?: boolean;
}

/** The number of media buys in one page. All pages are read, because the whole account is printed. */
const PAGE = 1000;
const NO_TASKS: TaskCounts = { ended: 0, open: 0, unresolved: 0, orphaned: 0, attention: [], sellers: [] };

/** Reads all pages of the account, and joins them. The time `asOf` and the tasks are those of the first page. */
async function wholeAccount(source: AccountSource, flags: OwedFlags): Promise<WholeAccount> {
  const { seller: agentUrl, mediaBuy: mediaBuyId } = flags;
  const since = flags.since === undefined ? undefined : instant('--since', flags.since);
  const query = { agentUrl, mediaBuyId, since, limit: PAGE };
  const { next: second, tasks = NO_TASKS, ...first } = await accountOf(source, query);
  const streams = [...first.streams];
  let { complete, unchanged } = first;
  for (let after = second; after !== undefined;) {
    const page = await accountOf(source, { ...query, after });
    complete &&= page.complete;
    streams.push(...page.streams);
    if (unchanged !== undefined) unchanged += page.unchanged ?? 0;
    after = page.next;
  }
  return { complete, asOf: first.asOf, tasks, streams, ...(unchanged !== undefined && { unchanged }) };
}

const iso = (ms: number): string => new Date(ms).toISOString();

function plain({ tasks, asOf, ...account }: WholeAccount): object {
  const { since, attention, ...counts } = tasks;
  return {
    ...account,
    asOf: iso(asOf),
    tasks: {
      ...counts,
      ...(since !== undefined && { since: iso(since) }),
      attention: attention.map((one) => ({ ...one, since: iso(one.since) })),
    },
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
    const isSeller = await isSellerKnown(rows, seller);
    const whole = await wholeAccount(source, flags);
    const isKnown = isSeller && (mediaBuy === undefined || whole.streams.length + (whole.unchanged ?? 0) > 0);
    const account = { ...whole, complete: whole.complete && isKnown };
    return {
      ok: isKnown && account.streams.every(isWhole),
      json: plain(account),
      text: (paint) => (isSeller ? textOf(account, flags, paint) : UNKNOWN_SELLER),
    };
  } finally {
    await close();
  }
}

export function addOwed(parent: Command, run: RunVerb): void {
  const verb = addVerb(parent, 'owed', 'report windows that media buys owe: what came, and what is missing', [
    'owed --sqlite webhooks.db',
    'owed --postgres --json',
    'owed --redis redis://localhost --seller https://seller.example/mcp --media-buy mb_1',
  ])
    .option('--seller <url>', 'only of this agent URL')
    .option('--media-buy <id>', 'only this media buy of --seller')
    .option('--since <instant>', 'only what is newer: media buys, windows that end after it, tasks')
    .option('--expected-delay-ms <n>', "the reconciler's expectedDelayMs", whole(0), TOLERANCE.delayMs)
    .option('--grace-ms <n>', "the reconciler's graceMs", whole(0), TOLERANCE.graceMs);
  addStoreFlags(verb).action((flags: OwedFlags) => run(flags, (context) => owed(flags, context)));
}
