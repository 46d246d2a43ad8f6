import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InboxRecord } from '../../../src/stores/index.ts';
import { sellerKey } from '../../receiver/setup.ts';
import { BACKENDS } from '../processes/backends.ts';
import type { FinalState } from '../processes/judge.ts';
import { ledgerReader, type LedgerReader } from '../processes/ledger.ts';
import { type Random, randomOf } from '../processes/random.ts';
import { AGENT_URL, type Seller, sellerOf } from '../processes/seller.ts';
import { type Kind, openForJudge, type OpenStore } from '../processes/stores.ts';
import { inTurns, type Strikes, strikesOf } from '../processes/strikes.ts';
import { type Facts, judge, type Verdict } from './judge.ts';
import type { Kept } from './kept.ts';
import { type Pair, startPair } from './processes.ts';
import { storiesOf, type Story } from './traffic.ts';
import type { JournalLine, SinkBreak } from './wire.ts';

/** How often kill -9 meets each, and what else happens to the sink. */
export interface Kills {
  readonly serve: number;
  readonly sink: number;
  readonly both: number;
  /** The sink stops for longer than serve waits for it, and goes on. */
  readonly hangs: number;
}

export interface RunOptions {
  readonly kind: Kind;
  readonly events: number;
  readonly kills: Kills;
  /** Deliveries under way at once, and events at the sink. */
  readonly concurrency: number;
  readonly seed: number;
  /** Everything fails loudly when it is over. Ms. */
  readonly deadlineMs: number;
  readonly breaks?: SinkBreak;
  /** `inject('shared')`. */
  readonly shared: string;
}

/** A run in numbers. */
export type Figures = Readonly<Record<string, string | number | object>>;

interface Result {
  readonly verdict: Verdict;
  readonly figures: Figures;
  /** Answers that no seller should get. */
  readonly unexpected: readonly string[];
  /** How serve ended at the SIGTERM behind it all. */
  readonly exit: number | NodeJS.Signals;
}

const LOOK_MS = 20;
/** Of a delivery, until it counts as unanswered. */
const TIMEOUT_MS = 10_000;
/** The longest pause before a kill, and until what was killed is started again. */
const AIM_MS = 300;
const AWAY_MS = 1_500;
/** Longer than `timeoutMs` of the sink. */
const HANG_MS = 3_000;
/** One strike in so many meets a process that has only just been started. */
const EARLY_ONE_IN = 6;
/** One event in so many is delivered again, newly signed. */
const AGAIN_ONE_IN = 10;

interface Field {
  readonly options: RunOptions;
  readonly pair: Pair;
  readonly open: OpenStore;
  readonly random: Random;
  readonly seller: Seller;
  readonly stories: readonly Story[];
  readonly journal: LedgerReader<JournalLine>;
  readonly acknowledged: Set<string>;
  readonly signal: AbortSignal;
}

function shuffled<T>(all: readonly T[], random: Random): T[] {
  const left = [...all];
  return all.map(() => left.splice(random.below(left.length), 1)[0] as T);
}

/** What happens to whom, in which order. */
function blowsOf({ options: { kills }, random }: Field): (keyof Kills)[] {
  const names = ['serve', 'sink', 'both', 'hangs'] as const;
  const all = names.flatMap((name) => Array.from({ length: kills[name] }, () => name));
  return shuffled(all, random);
}

async function strike({ pair: { serve, sink }, random, signal }: Field, blow: keyof Kills): Promise<void> {
  const targets: readonly Kept[] = { serve: [serve], sink: [sink], both: [serve, sink], hangs: [sink] }[blow];
  if (random.below(EARLY_ONE_IN) > 0) await Promise.all(targets.map(({ up }) => up(signal)));
  await sleep(random.below(AIM_MS));
  if (blow === 'hangs') return sink.hang(HANG_MS);
  for (const { kill } of targets) {
    while (!kill(random.below(3) === 0 ? random.below(AWAY_MS) : 0)) {
      signal.throwIfAborted();
      await sleep(LOOK_MS);
    }
  }
}

/** Strikes as the work goes on, and who asks to wait while they are behind it. */
interface Pace extends Strikes {
  readonly isBehind: () => boolean;
}

function paceOf(field: Field, work: number): Pace {
  const blows = blowsOf(field);
  let due = 0;
  let struck = 0;
  const strikes = strikesOf(blows.length, work, async () => {
    await strike(field, blows[struck] ?? 'serve');
    struck += 1;
  });
  return {
    ...strikes,
    notice: (done) => {
      due = Math.min(blows.length, Math.floor((done * (blows.length + 1)) / work));
      strikes.notice(done);
    },
    isBehind: () => due - struck > 1,
  };
}

/** Watches what has arrived, until `over`. */
async function watch({ journal, acknowledged, signal }: Field, pace: Pace, over: AbortSignal): Promise<void> {
  const arrived = new Set<string>();
  for (let seen = 0; !over.aborted;) {
    signal.throwIfAborted();
    const lines = journal.read();
    for (; seen < lines.length; seen += 1) {
      const line = lines[seen];
      if (line?.what === 'arrival') arrived.add(line.key);
    }
    pace.notice(acknowledged.size + arrived.size);
    await sleep(LOOK_MS);
  }
}

/** Each status once its seller knows that the one before is safe; those of a hasty one all at once. */
async function tell(
  { seller, acknowledged, random, signal }: Field,
  story: Story,
  pace: Pace,
): Promise<void> {
  const deliver = async ({ key, payload }: Story['events'][number]): Promise<void> => {
    while (pace.isBehind()) {
      signal.throwIfAborted();
      await sleep(LOOK_MS);
    }
    const times = random.below(AGAIN_ONE_IN) === 0 ? 2 : 1;
    for (let time = 0; time < times; time += 1) {
      if (await seller.deliver(payload(1), 'either')) acknowledged.add(key);
    }
  };
  if (story.isHasty) await Promise.all(story.events.map(deliver));
  else for (const event of story.events) await deliver(event);
}

/** Records in this state, or the first of them. */
async function first({ open }: Field, state: 'queued' | 'leased'): Promise<InboxRecord | undefined> {
  return (await open.store.inbox.list({ state, limit: 1 })).records[0];
}

/** Waits until the store is done with everything: what was leased can be queued between two looks. */
async function calm(field: Field): Promise<void> {
  const { signal } = field;
  for (;;) {
    let record: InboxRecord | undefined;
    for (const state of ['queued', 'leased', 'queued', 'leased'] as const)
      record ??= await first(field, state);
    if (!record) return;
    if (signal.aborted) throw new Error(`never done: ${JSON.stringify({ ...record, body: undefined })}`);
    await sleep(LOOK_MS);
  }
}

/** More than the one attempt that is each run's own. */
const isCharged = (record: InboxRecord | undefined): boolean =>
  record !== undefined && (record.attempts > 1 || record.crashes > 0);

async function factsOf(field: Field, records: Map<string, InboxRecord>): Promise<Facts> {
  const { open, stories, acknowledged, journal } = field;
  const events = stories.flatMap(({ events }) => events);
  for (const { key } of events) {
    const record = await open.store.inbox.inspect(AGENT_URL, key);
    if (record) records.set(key, record);
  }
  const stateOf = (key: string): FinalState => records.get(key)?.state ?? 'absent';
  return {
    sent: events.map(({ key, task }) => ({
      key,
      ...(task && { place: { task: task.id, at: task.at } }),
      isAcknowledged: acknowledged.has(key),
      isCharged: isCharged(records.get(key)),
      state: stateOf(key),
    })),
    journal: journal.read(),
  };
}

/** How long the work took, and how long until all was calm after it. Seconds. */
interface Spans {
  readonly selling: number;
  readonly calming: number;
}

async function play(field: Field): Promise<Spans> {
  const { options, pair, stories, signal } = field;
  const began = performance.now();
  await Promise.all([pair.serve.up(signal), pair.sink.up(signal)]);
  const over = new AbortController();
  // Acknowledged, and arrived: of statuses that are overtaken not all count twice.
  const pace = paceOf(field, 1.8 * options.events);
  const watching = watch(field, pace, over.signal);
  // It rejects where the run does; it is awaited later.
  watching.catch(() => undefined);
  await inTurns(stories, options.concurrency, (story) => tell(field, story, pace));
  await pace.rest();
  const sold = performance.now();
  await Promise.all([pair.serve.up(signal), pair.sink.up(signal)]);
  await calm(field);
  over.abort();
  await watching;
  const seconds = (from: number, to: number): number => Math.round((to - from) / 100) / 10;
  return { selling: seconds(began, sold), calming: seconds(sold, performance.now()) };
}

const commit = (): string =>
  execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).trim();

function figuresOf(
  { options, pair, seller, acknowledged, stories }: Field,
  { sent, journal }: Facts,
  records: ReadonlyMap<string, InboxRecord>,
  verdict: Verdict,
): Figures {
  const arrivals = journal.filter(({ what }) => what === 'arrival').length;
  const keys = new Set(journal.flatMap((line) => (line.what === 'arrival' ? [line.key] : [])));
  const inTurn = stories.flatMap(({ events, isHasty }) => (isHasty ? [] : events));
  const most = (of: 'runs' | 'crashes' | 'attempts'): number =>
    Math.max(0, ...[...records.values()].map((record) => record[of]));
  return {
    commit: commit(),
    store: options.kind,
    seed: options.seed,
    events: sent.length,
    acknowledged: acknowledged.size,
    posts: seller.tally.attempts,
    unanswered: seller.tally.unanswered,
    told503: seller.tally.unavailable,
    toldReplayed: seller.tally.replayed,
    killsOfServe: pair.serve.kills(),
    killsOfSink: pair.sink.kills(),
    arrived: keys.size,
    repeats: arrivals - keys.size,
    stale: sent.filter(({ state }) => state === 'stale').length,
    // Told each when the one before was safe, and overtaken nevertheless.
    neverCameInTurn: inTurn.filter(({ key }) => !keys.has(key)).length,
    charged: sent.filter(({ isCharged }) => isCharged).length,
    mostRuns: most('runs'),
    mostAttempts: most('attempts'),
    mostCrashes: most('crashes'),
    ...Object.fromEntries(
      Object.entries(verdict as unknown as Readonly<Record<string, readonly string[]>>).map(
        ([name, { length }]) => [name, length],
      ),
    ),
    alarms: pair.alarms(),
  };
}

async function runIn(options: RunOptions, open: OpenStore, pair: Pair): Promise<Result> {
  const random = randomOf(options.seed);
  const signal = AbortSignal.timeout(options.deadlineMs);
  const { privateJwk } = await sellerKey();
  const door = async (): Promise<{ role: 'door'; pid: number; port: number }> => {
    await pair.serve.up(signal);
    return { role: 'door', pid: 0, port: pair.port };
  };
  const seller = sellerOf({ fleet: { door }, privateJwk, random, timeoutMs: TIMEOUT_MS, signal });
  const journal = ledgerReader<JournalLine>(pair.journal);
  const stories = storiesOf(options.events, random);
  const acknowledged = new Set<string>();
  const field: Field = { options, pair, open, random, seller, stories, journal, acknowledged, signal };
  try {
    const spans = await play(field);
    const exit = await pair.serve.stop();
    await pair.sink.stop();
    const records = new Map<string, InboxRecord>();
    const facts = await factsOf(field, records);
    const verdict = judge(facts);
    const figures = { ...figuresOf(field, facts, records, verdict), ...spans };
    return { verdict, figures, unexpected: seller.unexpected, exit };
  } finally {
    seller.close();
    journal.close();
  }
}

/** serve and its sink on one store, a seller, and kills; then the sink's journal is read. */
export async function run(options: RunOptions): Promise<Result> {
  const backend = await BACKENDS[options.kind](options.shared);
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-serve-'));
  const open = openForJudge(backend.place);
  await open.store.open();
  const { publicJwk } = await sellerKey();
  const pair = await startPair({
    place: backend.place,
    folder,
    cache: join(options.shared, 'compiled'),
    publicJwk,
    concurrency: options.concurrency,
    ...(options.breaks && { breaks: options.breaks }),
  });
  try {
    return await runIn(options, open, pair);
  } finally {
    pair.serve.destroy();
    pair.sink.destroy();
    await open.store.close();
    await open.end();
    await backend.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}
