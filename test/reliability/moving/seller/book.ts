import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SellerLog } from '../../market/seller/log.ts';
import type { Channel, Manner, MovingAgent, MovingLine, OfBuy } from '../wire.ts';

/** A configuration as a buyer gives it. */
export interface Config {
  readonly url: string;
  readonly operation_id?: string;
  readonly authentication?: { readonly schemes: readonly string[]; readonly credentials: string };
}

export interface Buy extends OfBuy {
  readonly manner: Manner;
  readonly has: Partial<Record<Channel, Config>>;
  readonly had: Partial<Record<Channel, Config>>;
  /** The URLs that it was told first: what is renewed later takes their place. */
  readonly first: Partial<Record<Channel, string>>;
  /** Events that still go to the former URL. */
  readonly lags: Record<Channel, number>;
  revision: number;
  /** Requests by key, in the order in which the keys came. */
  readonly requests: Map<string, number>;
}

export interface Request {
  readonly media_buy_id: string;
  readonly idempotency_key: string;
  readonly revision?: number;
  readonly reporting_webhook?: Config;
  readonly push_notification_config?: Config;
}

/** What is said: an answer, an error, or nothing: then the connection ends. */
export type Said =
  | { readonly kind: 'answer'; readonly status: string; readonly value: object }
  | { readonly kind: 'error'; readonly code: string }
  | { readonly kind: 'nothing' };

interface Task {
  readonly taskId: string;
  readonly buy: Buy;
  readonly request: Request;
  readonly endsAt: number;
  readonly fails: boolean;
}

export type Log = SellerLog<MovingLine>;

/** The seller's own list of its media buys, and what becomes of their updates. */
export interface Book {
  readonly buys: () => Iterable<Buy>;
  /** @param name of the buy, as the buyer calls it: its number says how its updates are taken. */
  readonly create: (agent: MovingAgent, name: string, request: Omit<Request, 'media_buy_id'>) => Said;
  /** @param isThere whether somebody waits still. */
  readonly update: (agent: MovingAgent, request: Request, isThere: AbortSignal) => Promise<Said>;
  readonly list: (agent: MovingAgent, ids: readonly string[]) => readonly object[];
  readonly status: (agent: MovingAgent, taskId: string) => object | undefined;
}

export interface BookOptions {
  readonly log: Log;
  readonly waitMs: number;
  /** The end of a task is to be told, by what its update has registered. */
  readonly tell: (buy: Buy, to: Config, task: { readonly taskId: string; readonly status: string }) => void;
}

/** The longest time until a task has ended, ms. */
const TASK_MS = 300;

export const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** Numbers as names have them. */
const numberOf = (name: string): number => Number(/\d+$/.exec(name)?.[0] ?? 0);

export function bookOf({ log, waitMs, tell }: BookOptions): Book {
  const buys = new Map<string, Buy>();
  const tasks = new Map<string, Task>();
  /** Updates that were done, and answers, by key. */
  const done = new Set<string>();
  const answers = new Map<string, Said>();
  const idOf = (agent: string, name: string): string => `${agent}-${name}`;

  const take = (
    buy: Buy,
    { reporting_webhook: reports, push_notification_config: push }: Partial<Request>,
  ) => {
    for (const [channel, config] of [
      ['reports', reports],
      ['push', push],
    ] as const) {
      if (!config) continue;
      const was = buy.has[channel];
      if (was && was.url !== config.url) buy.had[channel] = was;
      buy.has[channel] = config;
      buy.first[channel] ??= config.url;
    }
  };
  const noteHas = ({ agent, buy, has: { reports, push } }: Buy, key: string): void =>
    log.write({
      what: 'has',
      agent,
      buy,
      key,
      ...(reports && { reports: reports.url }),
      ...(push && { push: push.url }),
    });

  const apply = (agent: MovingAgent, buy: Buy, request: Request): void => {
    const { idempotency_key: key } = request;
    if (done.has(key)) return;
    done.add(key);
    buy.revision += 1;
    take(buy, request);
    buy.lags.reports = agent.lags;
    buy.lags.push = agent.lags;
    noteHas(buy, key);
  };
  const result = (buy: Buy): Said => ({
    kind: 'answer',
    status: 'completed',
    value: { media_buy_id: buy.buy, media_buy_status: 'active', revision: buy.revision, packages: [] },
  });
  const CONFLICT: Said = { kind: 'error', code: 'CONFLICT' };
  const NOTHING: Said = { kind: 'nothing' };

  const begun = (agent: MovingAgent, buy: Buy, request: Request): Said => {
    const taskId = `task-${randomUUID()}`;
    const inMs = Math.ceil(Math.random() * TASK_MS);
    const task = { taskId, buy, request, endsAt: Date.now() + inMs, fails: buy.manner === 'fails' };
    tasks.set(taskId, task);
    setTimeout(() => end(agent, task), inMs).unref();
    return { kind: 'answer', status: 'submitted', value: { task_id: taskId } };
  };
  const statusOf = ({ fails }: Task): string => (fails ? 'failed' : 'completed');
  const ended = new Set<string>();
  function end(agent: MovingAgent, task: Task): void {
    const { taskId, buy, request, fails } = task;
    if (ended.has(taskId)) return;
    ended.add(taskId);
    const key = request.idempotency_key;
    log.write({ what: 'ended', agent: buy.agent, buy: buy.buy, key, taskId, status: statusOf(task) });
    if (!fails) apply(agent, buy, request);
    const to = request.push_notification_config;
    if (to && buy.manner !== 'silent') tell(buy, to, { taskId, status: statusOf(task) });
  }

  type Way = (
    agent: MovingAgent,
    buy: Buy,
    request: Request,
    of: { readonly attempt: number; readonly isThere: AbortSignal },
  ) => Said | Promise<Said>;
  const isOld = ({ revision }: Buy, request: Request): boolean =>
    request.revision !== undefined && request.revision !== revision;
  const does: Way = (agent, buy, request) => {
    if (isOld(buy, request)) return CONFLICT;
    apply(agent, buy, request);
    return result(buy);
  };
  const gone = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
  const WAYS: Readonly<Record<Manner, Way>> = {
    done: does,
    late: async (...given) => {
      await sleep(waitMs / 4);
      return does(...given);
    },
    'too-late': async (agent, buy, request, { attempt }) => {
      if (attempt > 1) return does(agent, buy, request, { attempt, isThere: AbortSignal.abort() });
      await sleep(waitMs + 100);
      apply(agent, buy, request);
      return result(buy);
    },
    hangs: async (agent, buy, request, of) => {
      if (of.attempt > 1 || buy.requests.size > 1) return does(agent, buy, request, of);
      await gone(of.isThere);
      return NOTHING;
    },
    'ends-before': (agent, buy, request, of) =>
      of.attempt === 1 && buy.requests.size === 1 ? NOTHING : does(agent, buy, request, of),
    'ends-after': (agent, buy, request, { attempt }) => {
      apply(agent, buy, request);
      return attempt === 1 && buy.requests.size === 1 ? NOTHING : result(buy);
    },
    conflict: (agent, buy, request, of) => {
      // The same call again says nothing of a revision, and is taken: whoever was answered has died.
      if (buy.requests.size === 1 && of.attempt > 1) return does(agent, buy, request, of);
      if (buy.requests.size > 1) {
        return request.revision === buy.revision ? does(agent, buy, request, of) : CONFLICT;
      }
      buy.revision += 4;
      return CONFLICT;
    },
    forgetful: (agent, buy, request, of) => {
      // A revision has to be known first: without one a repeat is no old update.
      if (buy.requests.size === 1) return CONFLICT;
      if (buy.requests.size > 2 || of.attempt > 1) return does(agent, buy, request, of);
      apply(agent, buy, request);
      return NOTHING;
    },
    submitted: begun,
    silent: begun,
    fails: begun,
    refuses: () => ({ kind: 'error', code: 'VALIDATION_ERROR' }),
  };

  return {
    buys: () => buys.values(),
    create: (agent, name, request) => {
      const id = idOf(agent.name, name);
      let buy = buys.get(id);
      if (!buy) {
        const manner = agent.manners[numberOf(name) % agent.manners.length] ?? 'done';
        const lags = { reports: 0, push: 0 };
        buy = {
          agent: agent.name,
          buy: id,
          manner,
          has: {},
          had: {},
          first: {},
          lags,
          revision: 1,
          requests: new Map(),
        };
        buys.set(id, buy);
        take(buy, request);
        noteHas(buy, request.idempotency_key);
      }
      return result(buy);
    },
    update: async (agent, request, isThere) => {
      const buy = buys.get(request.media_buy_id);
      if (!buy || buy.agent !== agent.name) return { kind: 'error', code: 'MEDIA_BUY_NOT_FOUND' };
      const { idempotency_key: key } = request;
      const attempt = (buy.requests.get(key) ?? 0) + 1;
      buy.requests.set(key, attempt);
      const known = answers.get(key);
      if (known) return known;
      const said = await WAYS[buy.manner](agent, buy, request, { attempt, isThere });
      if (said.kind === 'answer') answers.set(key, said);
      return said;
    },
    list: (agent, ids) =>
      ids.flatMap((id) => {
        const buy = buys.get(id);
        if (buy?.agent !== agent.name) return [];
        return [{ media_buy_id: id, status: 'active', revision: buy.revision, packages: [] }];
      }),
    status: (agent, taskId) => {
      const task = tasks.get(taskId);
      if (task?.buy.agent !== agent.name) return undefined;
      const isOver = Date.now() >= task.endsAt;
      if (isOver) end(agent, task);
      const at = new Date(task.endsAt).toISOString();
      const of = { task_id: taskId, task_type: 'update_media_buy', protocol: 'media-buy', created_at: at };
      if (!isOver) return { ...of, status: 'submitted', updated_at: at };
      const { value } = result(task.buy) as Said & { readonly kind: 'answer' };
      const how = task.fails
        ? { error: { code: 'BUDGET_EXHAUSTED', message: 'nobody pays' } }
        : { result: value };
      return { ...of, status: statusOf(task), updated_at: at, completed_at: at, ...how };
    },
  };
}
