import { beginPoll, endPoll, type Pace } from '../../../src/poll/for-tests.ts';
import { type CallSeller, SellerError } from '../../../src/registrations/index.ts';
import {
  type Operation,
  type Operations,
  operationsOf,
  registrationOf,
  secretsOf,
} from '../../../src/registrations/for-tests.ts';
import type { Observe, Observed } from '../../../src/index.ts';
import type { RegistrationRow, StoreRegistrations } from '../../../src/stores/index.ts';
import { safeLogger } from '../../../src/for-tests.ts';
import { hashes, NEWEST } from '../../registrations/kit.ts';
import {
  type Actor,
  type ActorKind,
  breached,
  type Broken,
  CALL_MS,
  type Draft,
  type EventNames,
  judgeStep,
  KEY_MS,
  RETENTION_MS,
  SELLER,
  sell,
  storeOf,
  TASK,
  type World,
} from './world.ts';

/*
 * What processes do, by the package's own code. Each step on the store, each call and each event is a gate: an actor stops there,
 * and goes on when the exploration says so. It cannot be copied in the middle, so it is run again from its start, with what its
 * gates gave it before.
 */

const PACE: Pace = {
  fastMs: CALL_MS,
  slowMs: 2 * CALL_MS,
  giveUpMs: 1_000_000,
  silentMs: 1_000_000,
  leaseMs: CALL_MS,
  perSeller: 10,
  random: () => 0.5,
};

const secrets = secretsOf([NEWEST], hashes);

/** One step: what it does to the world, and what it gives the actor. */
type Gate = <T>(label: string, act: (draft: Draft) => T | Promise<T>) => Promise<T>;

/** What an actor works with. */
interface Hands {
  readonly actor: Actor;
  readonly gate: Gate;
  readonly registrations: StoreRegistrations;
  readonly operations: Operations;
  readonly observe: Observe;
  readonly call: CallSeller;
}

function gatedStore(actor: Actor, gate: Gate, broken: Broken): StoreRegistrations {
  const step = <T>(
    label: string,
    act: (of: StoreRegistrations) => Promise<T>,
    claimed: (value: T) => readonly RegistrationRow[],
  ) =>
    gate(`store: ${label}`, async (draft) => {
      const before = { ...draft };
      const value = await act(storeOf(draft, broken));
      // What follows the question is the end of the poll.
      if (actor.kind === 'poller') draft.polls = draft.polls.filter(({ who }) => who !== actor.name);
      judgeStep(before, draft, actor.name, claimed(value));
      const self = draft.actors.find(({ name }) => name === actor.name);
      if (self) self.endSeen = before.event;
      return value;
    });
  return {
    run: (sender, plan) =>
      step(
        'rows',
        (of) => of.run(sender, plan),
        () => [],
      ),
    due: (request) =>
      step(
        `due ${request.kind}`,
        (of) => of.due(request),
        ({ rows }) => rows,
      ),
    page: (query) =>
      step(
        'page',
        (of) => of.page(query),
        () => [],
      ),
  };
}

function handsOf(actor: Actor, gate: Gate, broken: Broken): Hands {
  const registrations = gatedStore(actor, gate, broken);
  let ids = 0;
  const operations = operationsOf({
    registrations,
    routes: {
      routeOf: async () => {
        const url = 'https://buyer.example/webhooks/route';
        return { base: 'https://buyer.example/webhooks', route: 'route', url, urls: [url] };
      },
      routeAt: async () => undefined,
      ours: () => undefined,
    },
    secrets,
    hashes,
    randomBytes: (count) => new Uint8Array(count),
    newId: () => `${actor.name}-${(ids += 1)}`,
    callMs: CALL_MS,
    retentionMs: RETENTION_MS,
    maxOpen: 1000,
    now: () => 0,
  });
  const observe: Observe = ({ operationId, taskId }) =>
    gate('the end is observed', (draft) => {
      if (draft.event === 'none')
        draft.names = { ...(operationId && { operationId }), ...(taskId && { taskId }) };
      if (draft.event !== 'done') draft.event = 'safe';
      return { kind: 'accepted' } as Observed;
    });
  const call: CallSeller = (_agentUrl, _operation, args) =>
    gate('the seller gets the call', (draft) => sell(draft, args));
  return { actor, gate, registrations, operations, observe, call };
}

const logger = safeLogger({ debug() {}, info() {}, warn() {}, error() {} });

const called = ({ operations, observe, call }: Hands, operation: Operation): Promise<unknown> =>
  registrationOf(operation, {
    operations,
    observe: () => observe,
    logger,
    raise: () => {},
    learn: () => {},
  }).callBy(call, new AbortController().signal);

/** The handler of the end's event, however it came. */
async function handled({ gate, operations }: Hands, names: EventNames, isWebhook: boolean): Promise<void> {
  await operations.find({ agentUrl: SELLER, status: 'completed', isWebhook, ...names });
  await gate('the handler succeeds', (draft) => {
    draft.event = 'done';
  });
  if (names.taskId !== undefined) await operations.endWatch(SELLER, names.taskId);
}

const BODIES: Record<ActorKind, (hands: Hands) => Promise<unknown>> = {
  creator: async (hands) => {
    const order = Number(hands.actor.name.slice(-1));
    const operation = await hands.operations.create({
      agentUrl: SELLER,
      taskType: 'create_media_buy',
      arguments: { order },
      ref: String(order),
      requestKeyMs: KEY_MS,
    });
    return called(hands, operation);
  },
  repeater: async (hands) => {
    const { operations } = await hands.operations.due(1, []);
    for (const operation of operations) await called(hands, operation);
  },
  poller: async ({ actor, gate, registrations, observe }) => {
    const tasks = { rows: registrations, hashes, retentionMs: RETENTION_MS };
    const due = await registrations.due({ kind: 'watch', max: 1, holdMs: CALL_MS, senders: [] });
    for (const { sender, id, dueAt } of due.rows) {
      const begun = await beginPoll(tasks, { sender, id, dueAt }, PACE);
      if (begun.kind !== 'poll') continue;
      const { held, watch } = begun;
      const isEnd = await gate('asks the seller', (draft) => asked(draft, actor.name, held.dueAt ?? 0));
      // Told to stop before its lease is over.
      if (isEnd === undefined) return;
      const status = isEnd ? 'completed' : 'submitted';
      const { operationId, taskId } = watch;
      const told = {
        sender,
        operationId,
        taskId,
        status,
        askedAt: 0,
        source: 'poll',
        observation: '1',
      } as const;
      if (isEnd) await observe(told);
      await endPoll(
        tasks,
        held,
        { kind: 'answered', isEnd, status, dataHash: undefined, isChange: isEnd, hintMs: undefined },
        { ...PACE, goesOn: false },
      );
    }
  },
  webhook: async (hands) => {
    const [, named = TASK] = hands.actor.name.split(': ');
    const names = { taskId: TASK, ...(named !== TASK && { operationId: named }) };
    const isFirst = await hands.gate('the webhook arrives', (draft) => {
      if (draft.event !== 'none') return false;
      draft.event = 'unsafe';
      draft.names = names;
      return true;
    });
    if (isFirst) await handled(hands, names, true);
  },
  worker: async (hands) => handled(hands, await hands.gate('takes the event', ({ names }) => names), false),
};

/** @returns whether the task has ended; undefined: its lease is over. */
function asked(draft: Draft, who: string, until: number): boolean | undefined {
  if (until <= draft.now) return undefined;
  const other = draft.polls.find((one) => one.who !== who && one.until > draft.now);
  if (other) breached(draft, 'one process polls a task within one lease', `${who} and ${other.who}`);
  const endSeen = draft.actors.find(({ name }) => name === who)?.endSeen;
  if (endSeen === 'safe' || endSeen === 'done') {
    breached(draft, 'nobody polls after a safe end', `${who} began when the end was ${endSeen}`);
  }
  draft.polls = [...draft.polls, { who, of: TASK, until }];
  return draft.isFinished;
}

/** A world in which one actor has taken its next step, or has come to its first one. */
export async function advanced(world: World, name: string, broken: Broken, isFirst: boolean): Promise<World> {
  const draft: Draft = { ...world, actors: world.actors.map((actor) => ({ ...actor })) };
  const actor = draft.actors.find((one) => one.name === name);
  if (!actor) throw new Error(`no actor ${name}`);
  const log = [...actor.log];
  let at = 0;
  let isTaken = isFirst;
  actor.next = await new Promise<string | undefined>((resolve) => {
    const gate: Gate = async <T>(label: string, act: (of: Draft) => T | Promise<T>): Promise<T> => {
      if (at === log.length && isTaken) {
        resolve(label);
        return new Promise(() => {});
      }
      if (at === log.length) {
        isTaken = true;
        log.push(await act(draft));
      }
      return log[at++] as T;
    };
    const body = BODIES[actor.kind](handsOf(actor, gate, broken));
    body.then(
      () => resolve(undefined),
      (error: unknown) => {
        if (!(error instanceof SellerError)) breached(draft, 'no step throws', String(error));
        resolve(undefined);
      },
    );
  });
  // Of one that has ended nothing matters any more.
  actor.log = actor.next === undefined ? [] : log;
  if (actor.next === undefined) actor.endSeen = 'none';
  return draft;
}

/** A world with one actor more. */
export const joined = (world: World, kind: ActorKind, name: string, broken: Broken): Promise<World> => {
  const actor: Actor = { kind, name, log: [], next: undefined, endSeen: 'none' };
  return advanced({ ...world, actors: [...world.actors, actor] }, name, broken, true);
};
