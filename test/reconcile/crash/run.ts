import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { vi } from 'vitest';
import type { Outcome, SeenEvents } from '../../../src/index.ts';

import type { Account } from '../../../src/reconcile/index.ts';
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
import { type Asked, type Buying, type Question, type Told, URL } from './wire.ts';

/*
 * A market whose buyer is three processes on one store, killed at random while a simulated month passes: when they ask the seller,
 * when a handler runs, when a delivery comes. What is judged is what the market in one process is judged by.
 */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const PROCESSES = 3;
const BUYER = fileURLToPath(new globalThis.URL('buyer.ts', import.meta.url));
/** The clock is moved however far the processes are: how soon they pull is judged in the market of one process. */
const PROMPT = DAY;

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
  readonly asked: Map<number, (value: { readonly value?: unknown; readonly error?: string }) => void>;
  isGone: boolean;
}

/** The processes of the buyer. */
interface Fleet {
  readonly kills: () => number;
  /** @throws Error where the process dies. */
  readonly ask: (asked: Asked) => Promise<unknown>;
  readonly setTime: (now: number) => void;
  readonly stopKilling: (isOver: boolean) => void;
  readonly end: () => Promise<void>;
}

const GONE = 'the process is gone';

async function fleet(
  buying: Buying,
  { random, killing }: { readonly random: Random; readonly killing: number },
  answer: (question: Question) => unknown,
): Promise<Fleet> {
  const cache = mkdtempSync(join(tmpdir(), 'owed-'));
  let processes: Process[] = [];
  let kills = 0;
  let count = 0;
  let now = buying.now;
  let isOver = false;
  const kill = (process: Process): void => {
    if (process.isGone) return;
    process.isGone = true;
    kills += 1;
    process.child.process.kill('SIGKILL');
  };
  const dies = (): boolean => !isOver && random.next() < killing;
  /** It is gone: another one takes its place. */
  const over = async (process: Process): Promise<void> => {
    await process.child.gone;
    const wasKilled = process.isGone;
    process.isGone = true;
    processes = processes.filter((one) => one !== process);
    for (const tellIt of process.asked.values()) tellIt({ error: GONE });
    process.asked.clear();
    if (wasKilled && !isEnding) await begin();
  };
  const begin = async (): Promise<void> => {
    const child = launch<Told>('a buyer', BUYER, { ...buying, now }, cache);
    const process: Process = { child, asked: new Map(), isGone: false };
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
      if (!process.isGone) child.process.send(reply);
      if (dies()) setTimeout(() => kill(process), random.below(8));
    });
    await child.ready;
    child.process.send({ kind: 'time', now } satisfies Told);
    processes = [...processes, process];
    void over(process);
  };
  let isEnding = false;
  await Promise.all(Array.from({ length: PROCESSES }, begin));
  return {
    kills: () => kills,
    setTime: (at) => {
      now = at;
      for (const { child, isGone } of processes)
        if (!isGone) child.process.send({ kind: 'time', now } satisfies Told);
    },
    stopKilling: (is) => {
      isOver = is;
    },
    ask: async (asked) => {
      let living = processes.filter(({ isGone }) => !isGone);
      for (let tries = 0; living.length === 0 && tries < 3000; tries += 1) {
        await wait(10);
        living = processes.filter(({ isGone }) => !isGone);
      }
      const process = random.pick(living);
      count += 1;
      const id = count;
      const answered = new Promise<unknown>((resolve, reject) => {
        process.asked.set(id, ({ value, error }) => {
          process.asked.delete(id);
          if (error === undefined) resolve(value);
          else reject(new Error(error));
        });
      });
      process.child.process.send({ kind: 'asked', id, asked } satisfies Told);
      if (asked.what === 'deliver' && dies()) setTimeout(() => kill(process), random.below(12));
      return answered;
    },
    end: async () => {
      isEnding = true;
      const all = [...processes];
      for (const process of all) {
        process.isGone = true;
        process.child.process.kill('SIGKILL');
      }
      await Promise.all(all.map(({ child }) => child.gone));
      rmSync(cache, { recursive: true, force: true });
    },
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
  const buying: Buying = {
    place,
    mode,
    now: begin,
    secret: `secret-of-a-crash-${randomUUID()}`,
    senders: [...keys].map(([agentUrl, { publicJwk }]) => ({ agentUrl, key: { ...publicJwk } })),
    buys: buys.map((buy) => ({
      id: buy.id,
      schedule: scheduleOf(buy),
    })),
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
  const stepAt = (): number => (Date.now() < calmFrom ? HOUR : 6 * HOUR);
  try {
    for (const buy of buys) {
      await called(buyer, buy, orderOf(buy), { media_buy_id: buy.id, status: 'completed', packages: [] });
    }
    for (let at = begin + DAY + 37 * MINUTE; at < end; at += at < calmFrom ? DAY : 5 * DAY) {
      agenda.add({ at, run: () => compare(buyer, truth, setTime) });
    }
    for (let action = agenda.next(); action && action.at < end; action = agenda.next()) {
      for (let step = stepAt(); action.at - Date.now() > step; step = stepAt()) {
        setTime(Date.now() + step);
        await rest(buyer);
      }
      if (action.at > Date.now()) setTime(action.at);
      await action.run();
    }
    setTime(Math.max(end, Date.now()));
    await compare(buyer, truth, setTime);
    truth.atEnd();
    return { wrong: truth.wrong, kills: buyer.kills(), ...truth.figures() };
  } finally {
    await buyer.end();
    vi.useRealTimers();
  }
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
    if (!(error instanceof Error) || error.message !== GONE) throw error;
    return { status: 0, isStored: undefined, code: GONE };
  }
}

const listed = async (buyer: Fleet, state: 'queued' | 'leased' | 'dead'): Promise<SeenEvents> =>
  (await buyer.ask({ what: 'list', state })) as SeenEvents;

/** The processes have done what can be done at this time, as far as can be seen from outside. */
async function rest(buyer: Fleet): Promise<boolean> {
  for (let turn = 0; turn < 3; turn += 1) {
    await wait(30);
    try {
      const lists: SeenEvents[] = [];
      for (const state of ['queued', 'leased'] as const) lists.push(await listed(buyer, state));
      if (!lists.some(({ records }) => records.some(({ acked }) => acked))) return true;
    } catch (error) {
      if (!(error instanceof Error) || error.message !== GONE) throw error;
    }
  }
  return false;
}

/** What is under way comes to its end while a little time passes: then the account must be what is. */
async function compare(buyer: Fleet, truth: Truth, setTime: (now: number) => void): Promise<void> {
  buyer.stopKilling(true);
  const before = truth.wrong.length;
  for (let tries = 0; tries < 200; tries += 1) {
    truth.wrong.length = Math.min(truth.wrong.length, before);
    const isQuiet = await rest(buyer);
    if (isQuiet || tries > 150) {
      for (const [key, settle] of truth.unsure) settle(await isThere(buyer, truth, key));
      const dead = await listed(buyer, 'dead');
      for (const { key } of dead.records) truth.died(key);
      truth.compare(await accountOf(buyer), Date.now());
      if (truth.wrong.length === before) break;
    }
    setTime(Date.now() + 30_000);
  }
  buyer.stopKilling(false);
}

const isThere = async (buyer: Fleet, truth: Truth, key: string): Promise<boolean> =>
  (await buyer.ask({ what: 'inspect', agentUrl: truth.agentOf(key), key })) === true;

async function accountOf(buyer: Fleet): Promise<readonly Account[]> {
  const pages: Account[] = [];
  let after: string | undefined;
  do {
    const page = (await buyer.ask({
      what: 'account',
      query: { limit: 20, ...(after !== undefined && { after }) },
    })) as Account;
    pages.push(page);
    after = page.next;
  } while (after !== undefined);
  return pages;
}
