import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { vi } from 'vitest';
import type { Outcome, SeenEvents } from '../../../src/index.ts';
import type { Account, AccountQuery } from '../../../src/reconcile/index.ts';
import { SellerError } from '../../../src/registrations/index.ts';
import { signDelivery } from '../../../src/sender/sign.ts';
import { type Child, launch } from '../../reliability/processes/child.ts';
import { type Random, randomOf } from '../../reliability/processes/random.ts';
import type { StoreLocation } from '../../reliability/processes/stores.ts';
import { agentOf, type Buy } from '../market/plan.ts';
import { postedOf } from '../market/run.ts';
import { answerDelivery, answerMediaBuys } from '../market/seller.ts';
import { agendaOf, type Call, orderOf, type Posted, scheduleOf, sellerKeys } from '../market/traffic.ts';
import { createTruth, type Truth } from '../market/truth.ts';
import { whileAway } from '../../support/while-away.ts';
import { type Answer, type Asked, type Buying, type Question, type Told, URL, type Wrongly } from './wire.ts';

/*
 * A market whose buyer is three processes on one store, killed at random while a simulated month passes: when they ask the seller,
 * when a handler runs, when a delivery comes. What is judged is what the market in one process is judged by.
 */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const PROCESSES = 3;
const BUYER = fileURLToPath(new globalThis.URL('buyer.ts', import.meta.url));
/** The clock is moved by hours, and who looks may be killed: how soon they pull is judged in the market of one process. */
const PROMPT = DAY;
/** A record is kept for a day after the last attempt, at least. */
const KEPT = DAY - HOUR;

export interface CrashOptions {
  readonly place: StoreLocation;
  readonly buys: readonly Buy[];
  readonly mode: 'inline' | 'inbox';
  readonly begin: number;
  readonly end: number;
  /** From then on little happens: time goes by in longer steps, and is compared less often. Default: never. */
  readonly calmFrom?: number;
  readonly seed: number;
  /** Of 1, at each question, run of a handler and delivery. */
  readonly killing: number;
  /** Keys of records that became `applied`, by the database: `Backend.completions`. */
  readonly completions: () => Promise<readonly { readonly key: string }[]>;
  /** Buyers that are wrong. */
  readonly wrongly?: Wrongly & {
    /** What is read as the account. */
    readonly account?: (real: readonly Account[], truth: Truth) => readonly Account[];
  };
}

export interface Crashed {
  readonly wrong: readonly string[];
  readonly kills: number;
  readonly windows: number;
  readonly byWebhook: number;
  readonly byPull: number;
  readonly repeated: number;
}

interface Process {
  readonly child: Child<Told>;
  readonly asked: Map<number, (answer: Omit<Answer, 'id'>) => void>;
  isReady: boolean;
  /** It was killed, or has ended. */
  isGone: boolean;
}

/** The processes of the buyer. */
interface Fleet {
  readonly kills: () => number;
  /** @throws Error where the process is killed, or one has ended by itself. */
  readonly ask: (asked: Asked) => Promise<unknown>;
  readonly setTime: (now: number) => void;
  /** Nobody is killed from now on, whatever was decided before. */
  readonly stopKilling: (isOver: boolean) => void;
  /** Why the fleet is broken: a process has ended that nobody killed. */
  readonly problem: () => Error | undefined;
  readonly end: () => Promise<void>;
}

const GONE = 'the process is gone';
const isGone = (error: unknown): boolean => error instanceof Error && error.message === GONE;

/** So long a process is waited for. */
const START_MS = 120_000;

/** What goes to a process that is gone by now gets lost. */
const send = ({ child }: Process, told: Told): void => void child.process.send(told, () => undefined);

async function fleet(
  buying: Omit<Buying, 'index'>,
  { random, killing }: { readonly random: Random; readonly killing: number },
  answer: (question: Question) => unknown,
): Promise<Fleet> {
  const cache = mkdtempSync(join(tmpdir(), 'owed-'));
  const processes = new Set<Process>();
  let problem: Error | undefined;
  let starts = 0;
  let kills = 0;
  let count = 0;
  let now = buying.now;
  let isOver = false;
  let isEnding = false;
  const living = (): readonly Process[] => [...processes].filter((one) => one.isReady && !one.isGone);
  const kill = (process: Process): void => {
    if (isOver || process.isGone || !process.child.process.kill('SIGKILL')) return;
    process.isGone = true;
    kills += 1;
  };
  const dies = (): boolean => !isOver && random.next() < killing;
  /** It is gone: another one takes its place. */
  const over = async (process: Process): Promise<void> => {
    const [, signal] = (await process.child.gone) as readonly [unknown, string | null];
    const wasKilled = process.isGone && signal === 'SIGKILL';
    process.isGone = true;
    processes.delete(process);
    if (!wasKilled) problem ??= process.child.problem();
    for (const tellIt of process.asked.values()) tellIt({ error: problem?.message ?? GONE });
    process.asked.clear();
    if (wasKilled && !isEnding) await begin();
  };
  const begin = async (): Promise<void> => {
    const child = launch<Told>('a buyer', BUYER, { ...buying, now, index: starts } satisfies Buying, cache);
    starts += 1;
    const process: Process = { child, asked: new Map(), isReady: false, isGone: false };
    processes.add(process);
    void over(process);
    child.process.on('message', (told: Told) => {
      if (told.kind === 'done') process.asked.get(told.id)?.(told);
      if (told.kind !== 'question') return;
      if (dies()) {
        kill(process);
        return;
      }
      let reply: Told;
      try {
        reply = { kind: 'answer', id: told.id, value: answer(told.question) };
      } catch (error) {
        const code = error instanceof SellerError ? { code: error.code } : {};
        reply = { kind: 'answer', id: told.id, error: String(error), ...code };
      }
      if (!process.isGone) send(process, reply);
      if (dies()) setTimeout(() => kill(process), random.below(8));
    });
    // One that ends before is a problem: `over` keeps it.
    const isReady = await child.ready.then(
      () => true,
      () => false,
    );
    if (!isReady) return;
    send(process, { kind: 'time', now });
    process.isReady = true;
  };
  const end = async (): Promise<void> => {
    isEnding = true;
    const all = [...processes];
    for (const process of all) {
      process.isGone = true;
      process.child.process.kill('SIGKILL');
    }
    await Promise.all(all.map(({ child }) => child.gone));
    rmSync(cache, { recursive: true, force: true });
  };
  await Promise.all(Array.from({ length: PROCESSES }, begin));
  return {
    kills: () => kills,
    setTime: (at) => {
      now = at;
      // Also to one that starts: it may look before it is ready.
      for (const process of processes) if (!process.isGone) send(process, { kind: 'time', now });
    },
    stopKilling: (is) => {
      isOver = is;
    },
    problem: () => problem,
    ask: async (asked) => {
      const late = performance.now() + START_MS;
      const isWaitedFor = (): boolean => !problem && living().length === 0 && performance.now() < late;
      while (isWaitedFor()) await wait(10);
      if (problem) throw problem;
      const process = random.pick(living());
      count += 1;
      const id = count;
      const answered = new Promise<unknown>((resolve, reject) => {
        process.asked.set(id, ({ value, error, code }) => {
          process.asked.delete(id);
          if (error === undefined) resolve(value);
          else reject(Object.assign(new Error(error), code !== undefined && { code }));
        });
      });
      send(process, { kind: 'asked', id, asked });
      if (asked.what === 'deliver' && dies()) setTimeout(() => kill(process), random.below(12));
      return answered;
    },
    end,
  };
}

export async function crash({
  place,
  buys,
  mode,
  begin,
  end,
  calmFrom = end,
  seed,
  killing,
  completions,
  wrongly = {},
}: CrashOptions): Promise<Crashed> {
  vi.useFakeTimers({ toFake: ['Date'], now: begin });
  const random = randomOf(seed);
  const truth = createTruth(buys, PROMPT);
  const keys = await sellerKeys(buys);
  const byId = new Map(buys.map((buy) => [buy.id, buy]));
  const answer = (question: Question): unknown => {
    if (question.what === 'handle') {
      truth.handle(question.event, Date.now());
      return undefined;
    }
    const { operation, args } = question;
    const ids = (args['media_buy_ids'] ?? []) as readonly string[];
    const asked = ids.flatMap((id) => byId.get(id) ?? []);
    const [buy] = asked;
    if (!buy) throw new Error('a question for nobody');
    if (operation === 'get_media_buys') return answerMediaBuys(asked, Date.now());
    truth.asked(buy, Date.now());
    return answerDelivery(buy, args, Date.now());
  };
  const { account: wrongAccount, ...processes } = wrongly;
  const buying: Omit<Buying, 'index'> = {
    place,
    mode,
    now: begin,
    secret: `secret-of-a-crash-${randomUUID()}`,
    senders: [...keys].map(([agentUrl, { publicJwk }]) => ({ agentUrl, key: { ...publicJwk } })),
    buys: buys.map((buy) => ({
      id: buy.id,
      schedule: scheduleOf(buy),
    })),
    wrongly: processes,
  };
  const buyer = await fleet(buying, { random, killing }, answer);
  const setTime = (now: number): void => {
    vi.setSystemTime(now);
    buyer.setTime(now);
  };
  const agenda = agendaOf(buys, {
    truth,
    post: (buy, body) => post(buyer, keys, buy, body),
    update: (buy, call) => called(buyer, buy, call, { status: 'submitted', task_id: `update-${buy.id}` }),
  });
  const comparing: Comparing = {
    buyer,
    truth,
    setTime,
    account: async () => {
      const real = await accountOf(buyer);
      return wrongAccount?.(real, truth) ?? real;
    },
    ends: new Map(),
  };
  const stepAt = (): number => (Date.now() < calmFrom ? HOUR : 6 * HOUR);
  try {
    for (const buy of buys) {
      await called(buyer, buy, orderOf(buy), { media_buy_id: buy.id, status: 'completed', packages: [] });
    }
    for (let at = begin + DAY + 37 * MINUTE; at < end; at += at < calmFrom ? DAY : 5 * DAY) {
      agenda.add({ at, run: () => compare(comparing) });
    }
    for (let action = agenda.next(); action && action.at < end; action = agenda.next()) {
      for (let step = stepAt(); action.at - Date.now() > step; step = stepAt()) {
        setTime(Date.now() + step);
        await caughtUp(buyer);
        await rest(buyer);
      }
      if (action.at > Date.now()) setTime(action.at);
      await action.run();
    }
    setTime(Math.max(end, Date.now()));
    await compare(comparing);
    truth.atEnd();
    buyer.stopKilling(true);
    judgeCompletions(
      comparing,
      (await completions()).map(({ key }) => key),
    );
  } finally {
    await buyer.end();
    vi.useRealTimers();
  }
  const problem = buyer.problem();
  if (problem) throw problem;
  return { wrong: truth.wrong, kills: buyer.kills(), ...truth.figures() };
}

/** A call of a process that is left alone meanwhile. @returns the operation's id. */
async function called(buyer: Fleet, buy: Buy, call: Call, answer: object): Promise<string> {
  buyer.stopKilling(true);
  const operationId = await buyer.ask({ what: 'call', agentUrl: agentOf(buy), call, answer });
  buyer.stopKilling(false);
  return operationId as string;
}

async function post(
  buyer: Fleet,
  keys: Awaited<ReturnType<typeof sellerKeys>>,
  buy: Buy,
  payload: Record<string, unknown>,
): Promise<Posted> {
  const key = keys.get(agentOf(buy))?.privateJwk;
  if (!key) throw new Error('a seller without a key');
  const { body, headers } = await signDelivery({ url: URL, body: payload, key });
  const text = typeof body === 'string' ? Buffer.from(body) : Buffer.from(body);
  try {
    const outcome = await buyer.ask({
      what: 'deliver',
      body: text.toString('base64'),
      headers: { ...headers },
    });
    const posted = postedOf(outcome as Outcome);
    // A fault of the store, or a lease of a process that died: nobody knows, and the seller tries again.
    return posted.status === 503 ? { ...posted, isStored: undefined } : posted;
  } catch (error) {
    if (!isGone(error)) throw error;
    return { status: 0, isStored: undefined, code: GONE };
  }
}

const listed = async (buyer: Fleet, state: 'queued' | 'leased' | 'dead'): Promise<SeenEvents> =>
  (await whileAway(() => buyer.ask({ what: 'list', state }))) as SeenEvents;

/** The processes have looked at each media buy that was due: a slow machine must not make them late by this clock. */
async function caughtUp(buyer: Fleet): Promise<void> {
  const late = performance.now() + START_MS;
  while (performance.now() < late) {
    try {
      if ((await whileAway(() => buyer.ask({ what: 'due' }))) === 0) return;
    } catch (error) {
      if (!isGone(error)) throw error;
    }
    await wait(10);
  }
  throw new Error('media buys are due, and no process looks at them');
}

/** The processes have done what can be done at this time, as far as can be seen from outside. */
async function rest(buyer: Fleet): Promise<boolean> {
  for (let turn = 0; turn < 3; turn += 1) {
    await wait(30);
    try {
      const lists: SeenEvents[] = [];
      for (const state of ['queued', 'leased'] as const) lists.push(await listed(buyer, state));
      if (!lists.some(({ records }) => records.some(({ acked }) => acked))) return true;
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  return false;
}

interface Comparing {
  readonly buyer: Fleet;
  readonly truth: Truth;
  readonly setTime: (now: number) => void;
  readonly account: () => Promise<readonly Account[]>;
  /** What became of the events that were handled, by key. */
  readonly ends: Map<string, string>;
}

/** What is under way comes to its end while a little time passes: then the account must be what is. */
async function compare(comparing: Comparing): Promise<void> {
  const { buyer, truth, setTime, account } = comparing;
  buyer.stopKilling(true);
  let found: readonly string[] = [];
  for (let tries = 0; tries < 200; tries += 1) {
    const isQuiet = await rest(buyer);
    if (isQuiet || tries > 150) {
      for (const [key, settle] of truth.unsure) {
        settle((await stateOf(buyer, truth.agentOf(key), key)) !== undefined);
      }
      const dead = await listed(buyer, 'dead');
      for (const { key } of dead.records) truth.died(key);
      found = truth.compare(await account(), Date.now());
      if (found.length === 0) break;
    }
    setTime(Date.now() + 30_000);
  }
  truth.keep(found);
  await lookAtHandled(comparing);
  buyer.stopKilling(false);
}

const stateOf = async (buyer: Fleet, agentUrl: string, key: string): Promise<string | undefined> =>
  (await whileAway(() => buyer.ask({ what: 'inspect', agentUrl, key }))) as string | undefined;

/**
 * What was handled is completed, or its record says what became of it: it is dead, or stale; or its process died before it could
 * complete it, and nobody was told that it is safe. Such a one is looked at again.
 */
async function lookAtHandled({ buyer, truth, ends }: Comparing): Promise<void> {
  for (const [key, { sender, at }] of truth.handled) {
    if (ends.has(key)) continue;
    const state = await stateOf(buyer, sender, key);
    if (state === 'queued' || state === 'leased') continue;
    ends.set(key, state ?? 'forgotten');
    if (state === undefined && Date.now() < at + KEPT)
      truth.keep([`${key}: was handled, and its record is gone`]);
  }
}

/** Each event was completed once at most, and by its handler; and what the store says is completed was noted by the database. */
function judgeCompletions({ truth, ends }: Comparing, keys: readonly string[]): void {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  const wrong: string[] = [];
  for (const [key, count] of counts) {
    if (count > 1) wrong.push(`${key}: completed ${count} times`);
    if (!truth.handled.has(key)) wrong.push(`${key}: completed, and no handler has had it`);
  }
  for (const [key, state] of ends)
    if (state === 'applied' && !counts.has(key))
      wrong.push(`${key}: is applied, and the database has not noted it`);
  truth.keep(wrong);
}

async function accountOf(buyer: Fleet): Promise<readonly Account[]> {
  const pages: Account[] = [];
  let after: string | undefined;
  do {
    const query: AccountQuery = { limit: 20, ...(after !== undefined && { after }) };
    const page = (await whileAway(() => buyer.ask({ what: 'account', query }))) as Account;
    pages.push(page);
    after = page.next;
  } while (after !== undefined);
  return pages;
}
