// The commands `proto-webhooks inbox …`: list, show, redrive (run again) and discard the events of a store.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { printableText } from '../../codec/printable.ts';
import { loadHashes } from '../../crypto/native-hashes.ts';
import type { InboxStats, ManyResult, SeenEvent } from '../../inbox/inbox-contract.ts';
import { actOnMany, seenEvent, statsOf, WIDTH } from '../../inbox/operate.ts';
import { protocolsFor } from '../../shared/wire-names.ts';
import type { InboxQuery, InboxRecord, StoreInbox } from '../../stores/store.ts';
import {
  addVerb,
  type CliContext,
  inLine,
  inLines,
  instant,
  pageBehind,
  type Paint,
  type Report,
  type RunVerb,
  whole,
} from '../shell.ts';
import { addStoreFlags, openStore, type StoreFlags } from './open-store.ts';

interface ListFlags extends StoreFlags {
  readonly state: InboxQuery['state'];
  readonly sender?: string;
  readonly limit: number;
  readonly after?: string;
  readonly json?: boolean;
}

interface ManyFlags extends StoreFlags {
  readonly state?: 'dead' | 'queued';
  readonly sender?: string;
  readonly before?: string;
  readonly error?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

type RecordFlags = StoreFlags & { readonly json?: boolean };

const DAY_MS = 86_400_000;

/** Returns the stored event with the ids by which alarms and log lines name it. */
async function withIds(record: InboxRecord): Promise<SeenEvent> {
  const [hashes, { readBody }] = await Promise.all([loadHashes(), import('../../events/reading.ts')]);
  return seenEvent(record, { hashes, readBody, protocols: protocolsFor() });
}

/** Opens the store, calls `use` with its inbox, and closes the store. */
async function withStore(
  flags: StoreFlags,
  context: CliContext,
  use: (inbox: StoreInbox) => Promise<Report>,
): Promise<Report> {
  const { inbox, close } = await openStore(flags, context);
  try {
    return await use(inbox);
  } finally {
    await close();
  }
}

const at = (ms: number): string => new Date(ms).toISOString();

/** Returns the stored event without its body, and with times in ISO 8601. */
function plain({ body: _body, ...record }: SeenEvent): object {
  const { insertedAt, notBefore, leaseUntil } = record;
  return { ...record, insertedAt: at(insertedAt), notBefore: at(notBefore), leaseUntil: at(leaseUntil) };
}

/**
 * Returns the stored event without its body and without terminal control characters. Its texts come from handlers and
 * senders.
 */
const withoutControls = ({ body: _body, ...record }: SeenEvent): SeenEvent => inLines(record);

function recordLine(record: SeenEvent, paint: Paint): string {
  const { sender, key, state, runs, attempts, crashes, insertedAt, deliveryId, taskId, lastError } = record;
  const ids = `delivery ${deliveryId}${taskId === undefined ? '' : `, task ${taskId}`}`;
  const detail = lastError === undefined ? '' : `\n       ${paint('dim', lastError)}`;
  return `${paint(state === 'dead' ? 'bad' : 'warn', state.padEnd(6))} ${at(insertedAt)}  ${runs} runs, ${attempts} attempts, ${crashes} crashes  ${sender}  ${key}\n       ${ids}${detail}`;
}

async function list(flags: ListFlags, inbox: StoreInbox): Promise<Report> {
  const { state, sender, limit, after } = flags;
  const page = await pageBehind(
    inbox.list({
      state,
      limit,
      ...(sender !== undefined && { sender }),
      ...(after !== undefined && { after }),
    }),
  );
  const records = await Promise.all(page.records.map(withIds));
  const next = page.next === undefined ? [] : [`More: --after ${page.next}`];
  const none = records.length === 0 ? [`No ${state} events.`] : [];
  return {
    ok: true,
    json: { records: records.map(plain), ...(page.next !== undefined && { next: page.next }) },
    text: (paint) =>
      [...records.map((record) => recordLine(withoutControls(record), paint)), ...none, ...next].join('\n'),
  };
}

function absent(sender: string, key: string): Report {
  const message = `There is no event ${key} of ${sender}.`;
  return { ok: false, json: { result: 'absent' }, text: () => message };
}

async function show(sender: string, key: string, inbox: StoreInbox): Promise<Report> {
  const found = await inbox.inspect(sender, key);
  if (!found) return absent(sender, key);
  const record = await withIds(found);
  const body = record.body && new TextDecoder().decode(record.body);
  // Every line of the body is indented, so that it cannot be mistaken for output of this tool.
  const shown = body?.split(/\r?\n/).map((line) => `  ${printableText(line, Infinity)}`);
  const facts = Object.entries(plain(record)).map(
    ([name, value]) => `${name.padEnd(12)} ${inLine(String(value))}`,
  );
  return {
    ok: true,
    json: { ...plain(record), ...(body !== undefined && { body }) },
    text: () => [...facts, '', ...(shown ?? ['(the body is dropped once an event is done)'])].join('\n'),
  };
}

/** The message for each result of `redrive` and `discard`: its meaning, and what to do next. */
const TOLD: Readonly<Record<string, string>> = {
  queued:
    "Queued, with all of its attempts: a worker (mode 'inbox') runs it. If all receivers run in mode 'inline', call receiver.inbox.redrive(sender, key) in one of them.",
  discarded: 'Discarded: it is never handled, and its duplicates are still answered 200.',
  absent: 'There is no such event.',
};

function changed(result: string, other: string): Report {
  const ok = result === 'queued' || result === 'discarded';
  return { ok, json: { result }, text: (paint) => paint(ok ? 'good' : 'bad', TOLD[result] ?? other) };
}

const redrive = async (sender: string, key: string, inbox: StoreInbox): Promise<Report> =>
  changed(await inbox.redrive(sender, key), 'It is not dead, so there is nothing to redrive.');

const discard = async (sender: string, key: string, inbox: StoreInbox): Promise<Report> =>
  changed(await inbox.discard(sender, key, DAY_MS), 'It runs, or is done: there is nothing to discard.');

/**
 * The largest number of events that are counted for one state. It is far above the number that an outage leaves.
 * Without it, a count would read page after page.
 */
const COUNTED_MOST = 1_000_000;

function statsReport({ queued, leased, dead, senders, isComplete }: InboxStats): Report {
  const plainSenders = senders.map((row) => ({ ...row, oldestInsertedAt: at(row.oldestInsertedAt) }));
  const lines = plainSenders.map(
    ({ sender, state, count, oldestInsertedAt }) =>
      `${state.padEnd(6)} ${String(count).padStart(8)}  oldest ${oldestInsertedAt}  ${inLine(sender)}`,
  );
  const cutNote = isComplete
    ? []
    : [`There are more: only the oldest ${COUNTED_MOST} of a state are counted.`];
  return {
    ok: true,
    json: { queued, leased, dead, senders: plainSenders, isComplete },
    text: () => [`${queued} queued, ${leased} leased, ${dead} dead`, ...lines, ...cutNote].join('\n'),
  };
}

const stats = async (inbox: StoreInbox): Promise<Report> => statsReport(await statsOf(inbox, COUNTED_MOST));

function manyReport(state: string, done: string, counted: ManyResult<string>, results?: object): Report {
  const { matched, senders } = counted;
  const rows = Object.entries(senders).map(
    ([sender, count]) => `${String(count).padStart(8)}  ${inLine(sender)}`,
  );
  const outcome = results
    ? [...Object.entries(results).map(([result, count]) => `${result}: ${String(count)}`), ...notes(results)]
    : matched > 0
      ? [`Nothing was changed. With --yes they are ${done}.`]
      : [];
  return {
    ok: true,
    json: { matched, senders, ...(results && { results }) },
    text: () => [`${matched} ${state} events match.`, ...rows, ...outcome].join('\n'),
  };
}

/** Returns a note if events were queued again: a worker must run them, which receivers in mode `inline` do not have. */
const notes = (results: object): readonly string[] =>
  'queued' in results
    ? [
        "A worker (mode 'inbox') runs them. If all receivers run in mode 'inline', call receiver.inbox.redriveMany({ dryRun: false }) in one of them.",
      ]
    : [];

interface ManyVerb {
  readonly done: string;
  readonly act: (record: InboxRecord, inbox: StoreInbox, state: 'dead' | 'queued') => Promise<string>;
}

/** First counts the matching events. With `--yes`, it then redrives or discards them. */
async function many(flags: ManyFlags, { done, act }: ManyVerb, inbox: StoreInbox): Promise<Report> {
  const { state = 'dead', sender, before, error = '' } = flags;
  const filter = {
    state,
    error,
    ...(sender !== undefined && { sender }),
    before: before === undefined ? Infinity : instant('--before', before),
  };
  const run = (dryRun: boolean): Promise<ManyResult<string>> =>
    actOnMany(inbox, { ...filter, dryRun }, WIDTH, (record) => act(record, inbox, state));
  const counted = await run(true);
  if (flags.yes !== true || counted.matched === 0) return manyReport(state, done, counted);
  const { results } = await run(false);
  return manyReport(state, done, counted, results);
}

type OnRecord = (sender: string, key: string, inbox: StoreInbox) => Promise<Report>;

function addRecordVerb(parent: Command, run: RunVerb, name: string, summary: string, act: OnRecord): void {
  const example = `inbox ${name} https://seller.example/mcp 4f1c2b6e-8a90-4f5e-9b0e-2d6f0a1c3e57`;
  const verb = addVerb(parent, name, summary, [
    `${example} --sqlite webhooks.db`,
    `${example} --postgres --json`,
  ])
    .argument('<sender>', 'agent URL')
    .argument('<key>', 'idempotency_key');
  addStoreFlags(verb).action((sender: string, key: string, flags: RecordFlags) =>
    run(flags, (context) => withStore(flags, context, (inbox) => act(sender, key, inbox))),
  );
}

/** Refuses an empty text, because an empty variable of the shell would otherwise select every event. */
function filled(text: string): string {
  if (text === '') throw new InvalidArgumentError('Expected a text that is not empty.');
  return text;
}

function addManyVerb(parent: Command, run: RunVerb, name: string, summary: string, of: ManyVerb): Command {
  const verb = addVerb(parent, name, summary, [
    `inbox ${name} --sqlite webhooks.db --error 'the ad server'`,
    `inbox ${name} --postgres --sender https://seller.example/mcp --before 2026-01-31T12:00:00Z --yes`,
  ])
    .option('--sender <url>', 'only of this agent URL', filled)
    .option('--before <instant>', "only stored before it, by the store's clock: Unix seconds or ISO 8601")
    .option('--error <text>', 'only events whose last error has this text in it', filled)
    .option('--yes', 'change them: without it they are only counted');
  return addStoreFlags(verb).action((flags: ManyFlags) =>
    run(flags, (context) => withStore(flags, context, (inbox) => many(flags, of, inbox))),
  );
}

/** Adds the commands `inbox list|show|stats|redrive|discard|redrive-many|discard-many`. */
export function addInbox(parent: Command, run: RunVerb): void {
  const verb = addVerb(parent, 'list', 'events by state, oldest first', [
    'inbox list --sqlite webhooks.db',
    'inbox list --state queued --postgres postgres://localhost/app --json',
    'inbox list --redis redis://localhost --sender https://seller.example/mcp',
  ])
    .addOption(new Option('--state <name>', 'which').choices(['dead', 'queued', 'leased']).default('dead'))
    .option('--sender <url>', 'only of this agent URL')
    .option('--limit <n>', 'at most this many, up to 1000', whole(1), 100)
    .option('--after <cursor>', 'the next page, after this cursor');
  addStoreFlags(verb).action((flags: ListFlags) =>
    run(flags, (context) => withStore(flags, context, (inbox) => list(flags, inbox))),
  );
  addRecordVerb(parent, run, 'show', 'one event, with its body and its last error', show);
  addRecordVerb(parent, run, 'redrive', 'give a dead event back to the workers', redrive);
  addRecordVerb(parent, run, 'discard', 'end a dead or queued event without handling it', discard);
  const counts = addVerb(parent, 'stats', 'how many events are not done, by sender and state', [
    'inbox stats --sqlite webhooks.db',
    'inbox stats --postgres --json',
  ]);
  addStoreFlags(counts).action((flags: RecordFlags) =>
    run(flags, (context) => withStore(flags, context, stats)),
  );
  addManyVerb(parent, run, 'redrive-many', 'give dead events back to the workers', {
    done: 'queued, with all of their attempts',
    act: ({ sender, key }, inbox) => inbox.redrive(sender, key),
  });
  addManyVerb(parent, run, 'discard-many', 'end dead or queued events without handling them', {
    done: 'discarded, and never handled',
    act: ({ sender, key }, inbox, state) => inbox.discard(sender, key, DAY_MS, state),
  }).addOption(new Option('--state <name>', 'which').choices(['dead', 'queued']).default('dead'));
}
