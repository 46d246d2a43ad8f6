import { randomBytes, randomUUID } from 'node:crypto';
import { createReceiver, type Receiver, type Store } from '../../src/index.ts';
import { loadOnDemand } from '../../src/for-tests.ts';
import type { Event } from '../../src/events/index.ts';
import type { Poller } from '../../src/poll/index.ts';
import { pollerOf } from '../../src/poll/for-tests.ts';
import {
  type Alarm,
  type CallSeller,
  type JsonObject,
  type MovePlan,
  type MoveRequest,
  type MoveStep,
  type Registrations,
  type RegistrationsOptions,
  type Reporting,
  type RouteScheme,
  SellerBusyError,
  SellerError,
} from '../../src/registrations/index.ts';
import { registrationsOf } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { type Life, lifeUntil } from '../reliability/crash-points-life.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { type VirtualClock, virtualClock } from '../support/virtual-clock.ts';
import { ciphers } from './ciphers.ts';
import { hashes, NEWEST } from './kit.ts';

export const AGENT = 'https://seller.example/mcp';
export const OLD = 'https://old.example/webhooks';
export const NEW = 'https://new.example/webhooks';
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 86_400 * SECOND;

/** How a seller takes an update of a media buy. */
export type Manner =
  | 'done'
  /** After a minute. */
  | 'late'
  /** Twice: the connection breaks when it was done, and the repeat is answered. */
  | 'twice'
  /** No answer at all, and nothing is done. */
  | 'never'
  /** Its revision has become another one, once or always. Once, it takes the same call again, another one with its revision alone. */
  | 'conflict'
  | 'conflicts'
  /** Once it was told a revision, the first attempt is done, without an answer, and its repeat is an update of an old one. */
  | 'forgetful'
  /** The first attempt takes ten minutes, and its connection breaks; meanwhile the media buy is locked. */
  | 'locked'
  /** The media buy is locked for half a minute from the first attempt on, and nothing is done. */
  | 'briefly locked'
  | 'submitted'
  /** A task that never ends; one that is done, and says nothing of what came of it. */
  | 'endless'
  | 'empty'
  | 'input-required'
  /** A task that fails. */
  | 'fails'
  | 'refuses'
  /** Over its share, for five minutes. */
  | 'busy'
  /** It takes no registration in an update; or that, and the task of the update fails. */
  | 'unregistered'
  | 'unregistered, fails';

/** A configuration as the seller has it. */
export type Config = JsonObject & { readonly url?: string };

export interface SellerBuy {
  readonly id: string;
  manner: Manner;
  status: string;
  revision: number;
  reports?: Config | undefined;
  push?: Config | undefined;
  /** When its lock is over. */
  freeAt?: number;
  /** Attempts by key, in the order in which the keys came. */
  readonly attempts: Map<string, number>;
  /** Keys by which it was changed. */
  readonly applied: string[];
}

interface Task {
  readonly mediaBuyId: string;
  readonly args: JsonObject;
  polls: number;
}

export interface MovingSeller {
  readonly buys: Map<string, SellerBuy>;
  readonly calls: {
    readonly operation: string;
    readonly args: JsonObject;
    readonly ref?: string | undefined;
  }[];
  readonly call: CallSeller;
  /** Updates under way now, and the most there were. */
  underWay: number;
  most: number;
  /** Of all media buys that are bought from now on. */
  manner: Manner;
  /** Answers what is asked of no media buy. */
  others: CallSeller | undefined;
  /** What it says of a media buy, in place of what is so. */
  says: ((buy: SellerBuy) => unknown) | undefined;
  readonly buy: (id: string) => SellerBuy;
  readonly updates: (id?: string) => readonly JsonObject[];
}

const NEVER: AbortSignal = new AbortController().signal;

const hung = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    const end = (): void => reject(signal.reason as Error);
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });

const configIn = (args: JsonObject, name: string): Config | undefined => {
  const config = args[name];
  return typeof config === 'object' && config !== null ? (config as Config) : undefined;
};

/** A seller by the protocol, whose media buys each have a manner. It goes on with what it was told before, until an update is done. */
export function movingSeller(clock: Pick<VirtualClock, 'sleep' | 'now'>): MovingSeller {
  const answered = new Map<string, unknown>();
  const tasks = new Map<string, Task>();
  const seller: MovingSeller = {
    buys: new Map(),
    calls: [],
    underWay: 0,
    most: 0,
    manner: 'done',
    others: undefined,
    says: undefined,
    buy: (id) => {
      const found = seller.buys.get(id);
      if (!found) throw new Error(`the seller has no ${id}`);
      return found;
    },
    updates: (id) =>
      seller.calls
        .filter(
          ({ operation, args }) =>
            operation === 'update_media_buy' && (id ?? args['media_buy_id']) === args['media_buy_id'],
        )
        .map(({ args }) => args),
    call: async (agentUrl, operation, args, how) => {
      const { signal, ref } = how;
      const given = structuredClone(args);
      seller.calls.push({ operation, args: given, ref });
      if (operation === 'create_media_buy') return created(given);
      if (operation === 'get_media_buys') return { media_buys: listed(given) };
      if (operation === 'get_task_status') return asked(given);
      if (operation !== 'update_media_buy' && seller.others)
        return seller.others(agentUrl, operation, given, how);
      if (operation !== 'update_media_buy') throw new SellerError('UNSUPPORTED_FEATURE', `no ${operation}`);
      seller.underWay += 1;
      seller.most = Math.max(seller.most, seller.underWay);
      try {
        return await updated(given, signal);
      } finally {
        seller.underWay -= 1;
      }
    },
  };

  function created(args: JsonObject): unknown {
    const id = args['buyer_ref'] as string;
    seller.buys.set(id, {
      id,
      manner: seller.manner,
      status: 'active',
      revision: 1,
      reports: configIn(args, 'reporting_webhook'),
      push: configIn(args, 'push_notification_config'),
      attempts: new Map(),
      applied: [],
    });
    return { media_buy_id: id, packages: [] };
  }

  const listed = (args: JsonObject): readonly unknown[] =>
    (args['media_buy_ids'] as readonly string[]).flatMap((id) => {
      const buy = seller.buys.get(id);
      if (!buy) return [];
      return [
        seller.says?.(buy) ?? { media_buy_id: id, status: buy.status, revision: buy.revision, packages: [] },
      ];
    });

  function asked({ task_id: taskId }: JsonObject): unknown {
    const task = tasks.get(taskId as string);
    if (!task) throw new SellerError('REFERENCE_NOT_FOUND', 'no such task');
    const of = { task_id: taskId, task_type: 'update_media_buy' };
    task.polls += 1;
    if (task.polls < 2) return { ...of, status: 'submitted' };
    const { manner } = seller.buy(task.mediaBuyId);
    if (manner === 'endless') return { ...of, status: 'working' };
    if (manner === 'empty') return { ...of, status: 'completed' };
    if (manner.endsWith('fails')) {
      return { ...of, status: 'failed', error: { code: 'BUDGET_EXHAUSTED', message: 'nobody pays' } };
    }
    return { ...of, status: 'completed', result: applied(task.mediaBuyId, task.args) };
  }

  function applied(id: string, args: JsonObject): JsonObject {
    const buy = seller.buy(id);
    const key = args['idempotency_key'] as string;
    if (!buy.applied.includes(key)) {
      buy.applied.push(key);
      buy.revision += 1;
      buy.reports = configIn(args, 'reporting_webhook') ?? buy.reports;
      buy.push = configIn(args, 'push_notification_config') ?? buy.push;
    }
    return { media_buy_id: id, media_buy_status: buy.status, revision: buy.revision };
  }

  async function updated(args: JsonObject, signal: AbortSignal): Promise<unknown> {
    const id = args['media_buy_id'] as string;
    const key = args['idempotency_key'] as string;
    const buy = seller.buy(id);
    const attempt = (buy.attempts.get(key) ?? 0) + 1;
    buy.attempts.set(key, attempt);
    const known = answered.get(key);
    if (known !== undefined) return known;
    const answer = await MANNERS[buy.manner](buy, args, attempt, signal);
    answered.set(key, answer);
    return answer;
  }

  const old = (buy: SellerBuy, args: JsonObject): boolean =>
    args['revision'] !== undefined && args['revision'] !== buy.revision;
  const conflict = (): never => {
    throw new SellerError('CONFLICT', 'the revision is old');
  };
  const begun = (buy: SellerBuy, args: JsonObject, status: string): unknown => {
    const taskId = `task-${randomUUID()}`;
    tasks.set(taskId, { mediaBuyId: buy.id, args, polls: 0 });
    return { status, task_id: taskId };
  };
  const doneLate = async (buy: SellerBuy, args: JsonObject): Promise<void> => {
    await clock.sleep(10 * MINUTE, NEVER);
    answered.set(args['idempotency_key'] as string, applied(buy.id, args));
  };
  type Way = (buy: SellerBuy, args: JsonObject, attempt: number, signal: AbortSignal) => unknown;
  const done: Way = (buy, args) => (old(buy, args) ? conflict() : applied(buy.id, args));
  const unregistered = (args: JsonObject): void => {
    if (args['push_notification_config'] !== undefined)
      throw new SellerError('INVALID_REQUEST', 'no push_notification_config here');
  };
  const MANNERS: Readonly<Record<Manner, Way>> = {
    done,
    late: async (buy, args, attempt, signal) => {
      await clock.sleep(MINUTE, signal);
      signal.throwIfAborted();
      return done(buy, args, attempt, signal);
    },
    twice: (buy, args, attempt) => {
      const answer = applied(buy.id, args);
      if (attempt === 1) throw new Error('the connection has ended');
      return answer;
    },
    never: (_buy, _args, _attempt, signal) => hung(signal),
    conflict: (buy, args, attempt, signal) => {
      if (buy.revision === 1) {
        buy.revision += 4;
        conflict();
      }
      const isTaken = args['revision'] === buy.revision || buy.attempts.size === 1;
      return isTaken ? done(buy, args, attempt, signal) : conflict();
    },
    conflicts: (buy) => {
      buy.revision += 1;
      return conflict();
    },
    forgetful: (buy, args, attempt, signal) => {
      if (buy.attempts.size === 1) return conflict();
      if (buy.attempts.size > 2 || attempt > 1) return done(buy, args, attempt, signal);
      applied(buy.id, args);
      throw new Error('the connection has ended');
    },
    locked: (buy, args) => {
      if (buy.attempts.size === 1 && buy.attempts.get(args['idempotency_key'] as string) === 1) {
        void doneLate(buy, args);
        throw new Error('the connection has ended');
      }
      return conflict();
    },
    'briefly locked': (buy, args, attempt, signal) => {
      buy.freeAt ??= clock.now() + MINUTE / 2;
      return clock.now() < buy.freeAt ? conflict() : done(buy, args, attempt, signal);
    },
    submitted: (buy, args) => begun(buy, args, 'submitted'),
    endless: (buy, args) => begun(buy, args, 'submitted'),
    empty: (buy, args) => begun(buy, args, 'submitted'),
    'input-required': (buy, args) => begun(buy, args, 'input-required'),
    fails: (buy, args) => begun(buy, args, 'submitted'),
    refuses: () => {
      throw new SellerError('VALIDATION_ERROR', 'this webhook is not taken');
    },
    busy: (buy, args, attempt, signal) => {
      const attempts = [...buy.attempts.values()].reduce((sum, one) => sum + one, 0);
      if (attempts === 1) throw new SellerBusyError(429, 5 * MINUTE);
      return done(buy, args, attempt, signal);
    },
    unregistered: (buy, args, attempt, signal) => {
      unregistered(args);
      return done(buy, args, attempt, signal);
    },
    'unregistered, fails': (buy, args) => {
      unregistered(args);
      return begun(buy, args, 'submitted');
    },
  };
  return seller;
}

/** A process of the buyer. */
export interface Process {
  readonly registrations: Registrations;
  readonly receiver: Receiver;
  readonly poller: Poller;
  readonly alarms: Alarm[];
  readonly events: Event[];
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** Of one that may die. */
  readonly life?: Life;
}

export interface ProcessOptions extends Partial<Pick<RegistrationsOptions, 'baseUrl' | 'call' | 'store'>> {
  readonly life?: Life;
  /** More of `createRegistrations`. */
  readonly more?: Partial<RegistrationsOptions>;
}

export interface Bought {
  readonly agentUrl?: string;
  readonly scheme?: RouteScheme;
  readonly reporting?: Reporting | null;
  readonly account?: JsonObject;
  readonly ref?: string;
  readonly webhook?: JsonObject;
}

/** Processes of one buyer on one store, and a seller, under one clock. */
export function movingWorld() {
  const clock = virtualClock(Date.now(), () => ciphers.running > 0);
  const seller = movingSeller(clock);
  const state = createMemoryState();
  const processes: Process[] = [];
  const process = async ({
    baseUrl = [NEW, OLD],
    call = seller.call,
    store,
    life,
    more = {},
  }: ProcessOptions = {}): Promise<Process> => {
    const alarms: Alarm[] = [];
    const events: Event[] = [];
    const opened: Store = store ?? memoryStore({ state });
    const registrations = registrationsOf(
      { store: opened, call, baseUrl, secrets: [NEWEST], ...more },
      {
        hashes,
        randomBytes: (count) => new Uint8Array(randomBytes(count)),
        newId: () => randomUUID(),
        now: clock.now,
        sleep: clock.sleep,
      },
    );
    const receiver = createReceiver({
      store: opened,
      registrations,
      durability: { require: 'process' },
      logger: SILENT_LOGGER,
      onAlarm: (alarm) => void alarms.push(alarm),
      retry: { baseMs: 1, maxMs: 1 },
      handlers: { other: async (event) => void events.push(event) },
    });
    await receiver.ready();
    await loadOnDemand();
    const poller = pollerOf(
      { receiver, registrations },
      { clock: clock.now, sleep: clock.sleep, random: () => 0.5 },
    );
    const made: Process = {
      registrations,
      receiver,
      poller,
      alarms,
      events,
      ...(life && { life }),
      start: async () => {
        await receiver.start();
        await registrations.start();
        await poller.start();
      },
      stop: async () => {
        await registrations.stop();
        await poller.stop();
        await receiver.stop();
      },
    };
    processes.push(made);
    return made;
  };
  return {
    clock,
    seller,
    process,
    /** Another handle on the store. */
    opened: () => ({ store: memoryStore({ state }) }),
    /** A media buy that the seller has agreed to. */
    buy: async ({ registrations }: Process, id: string, bought: Bought = {}): Promise<void> => {
      const {
        agentUrl = AGENT,
        scheme,
        reporting = { frequency: 'daily' },
        account,
        ref,
        webhook = {},
      } = bought;
      const of = { agentUrl, edition: '3.1' } as const;
      const made = await registrations.create({
        ...of,
        taskType: 'create_media_buy',
        ...(scheme && { scheme }),
        ...(ref !== undefined && { ref }),
        arguments: {
          buyer_ref: id,
          ...(account && { account }),
          ...(reporting && {
            reporting_webhook: {
              ...(await registrations.reportingWebhook(of, { ...(scheme && { scheme }), ...reporting })),
              ...webhook,
            },
          }),
        },
      });
      await made.call();
    },
    /** Ends, but for processes that are dead. */
    end: async () => {
      // What it sleeps for is over at once.
      const ended = Promise.all(
        processes.splice(0).flatMap((one) => (one.life?.isOver() ? [] : [one.stop()])),
      );
      await clock.pass(5 * MINUTE);
      await ended;
      clock.end();
    },
  };
}

export type MovingWorld = ReturnType<typeof movingWorld>;

/**
 * A process that dies at its n-th point: around each step of its store, and each call to the seller. Dead, it does nothing, and never
 * stops.
 */
export async function mortalProcess(
  world: MovingWorld,
  diesAt: number,
  options: ProcessOptions = {},
): Promise<{ readonly process: Process; readonly life: Life }> {
  const life = lifeUntil(diesAt);
  const { store } = world.opened();
  const { registrations: rows } = store;
  if (!rows) throw new Error('the store has registrations');
  const mortal =
    <A extends readonly unknown[], T>(name: string, call: (...given: A) => Promise<T>) =>
    async (...given: A): Promise<T> => {
      await life.point(`before ${name}`);
      const result = await call(...given);
      await life.point(`after ${name}`);
      return result;
    };
  const alive =
    <A extends readonly unknown[], T>(call: (...given: A) => Promise<T>) =>
    (...given: A): Promise<T> =>
      life.isOver() ? new Promise(() => {}) : call(...given);
  const process = await world.process({
    ...options,
    life,
    call: mortal('call', world.seller.call),
    store: {
      ...store,
      registrations: {
        ...rows,
        run: (sender, plan) => mortal('run', () => rows.run(sender, plan))(),
        due: alive((request: Parameters<typeof rows.due>[0]) => rows.due(request)),
        page: alive((query: Parameters<typeof rows.page>[0]) => rows.page(query)),
      },
    },
  });
  life.begin();
  return { process, life };
}

/** All steps of a plan, page by page. */
export async function allSteps(
  { registrations }: Process,
  request: MoveRequest = {},
): Promise<readonly MoveStep[]> {
  const steps: MoveStep[] = [];
  let plan: MovePlan | undefined;
  do {
    plan = await registrations.plan({ ...request, ...(plan?.next !== undefined && { after: plan.next }) });
    steps.push(...plan.steps);
  } while (plan.next !== undefined);
  return steps;
}

/** Lets time pass until something is so, at most for so long. */
export async function passUntil(
  { clock }: MovingWorld,
  isSo: () => Promise<boolean> | boolean,
  mostMs: number = DAY,
): Promise<void> {
  for (let passed = 0; passed < mostMs; passed += 10 * SECOND) {
    if (await isSo()) return;
    await clock.pass(10 * SECOND);
  }
}

/** Lets so much time pass while registrations of these processes do nothing of themselves; start them again. */
export async function passWithout(
  { clock }: MovingWorld,
  processes: readonly Process[],
  ms: number,
): Promise<void> {
  const stopped = Promise.all(
    processes.flatMap(({ registrations, poller }) => [registrations.stop(), poller.stop()]),
  );
  await clock.pass(SECOND);
  await stopped;
  await clock.pass(ms);
}

/** Whether everything that can be moved has been. */
export const isMoved = async (process: Process, request: MoveRequest = {}): Promise<boolean> =>
  (await allSteps(process, request)).length === 0;
