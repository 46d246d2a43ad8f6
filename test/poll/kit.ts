import { randomBytes, randomUUID } from 'node:crypto';
import type { Poll, Poller, PollerOptions } from '../../src/poll/index.ts';
import { loadOnDemand } from '../../src/for-tests.ts';
import { type PollEnd, pollerOf } from '../../src/poll/for-tests.ts';
import type {
  CallSeller,
  JsonObject,
  OperationRequest,
  Registration,
  Registrations,
} from '../../src/registrations/index.ts';
import { registrationsOf } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { AGENT, testReceiver, type TestReceiver, type TestReceiverOptions } from '../receiver/setup.ts';
import { hashes, NEWEST } from '../registrations/kit.ts';
import { type VirtualClock, virtualClock } from '../support/virtual-clock.ts';

/** A question, as the seller got it. */
export interface Question {
  readonly at: number;
  readonly agentUrl: string;
  readonly operation: string;
  readonly args: JsonObject;
}

/** Answers questions about tasks, in the seller's place, and keeps its own log of them. */
export interface TestSeller {
  readonly call: CallSeller;
  readonly questions: Question[];
  /** By task; what is thrown is the answer. */
  readonly answers: Map<string, (question: Question) => unknown>;
  /** How long it takes, ms of the clock. */
  takesMs: number;
  /** Questions under way now, and the most there were, by agent URL. */
  readonly most: Map<string, number>;
}

const taskOf = ({ task_id: taskId, id }: JsonObject): string => (taskId ?? id) as string;

function testSeller(clock: VirtualClock): TestSeller {
  const underWay = new Map<string, number>();
  const seller: TestSeller = {
    questions: [],
    answers: new Map(),
    takesMs: 0,
    most: new Map(),
    call: async (agentUrl, operation, args, { signal }) => {
      const question = { at: clock.now(), agentUrl, operation, args };
      seller.questions.push(question);
      const now = (underWay.get(agentUrl) ?? 0) + 1;
      underWay.set(agentUrl, now);
      seller.most.set(agentUrl, Math.max(now, seller.most.get(agentUrl) ?? 0));
      try {
        if (seller.takesMs > 0) await clock.sleep(seller.takesMs, signal);
        signal?.throwIfAborted();
        const answer = seller.answers.get(taskOf(args));
        return answer ? await answer(question) : { task_id: taskOf(args), status: 'submitted' };
      } finally {
        underWay.set(agentUrl, (underWay.get(agentUrl) ?? 1) - 1);
      }
    },
  };
  return seller;
}

/** A process of the buyer. */
export interface Process extends TestReceiver {
  readonly registrations: Registrations;
  readonly poller: Poller;
  readonly polls: Poll[];
}

export interface World {
  readonly clock: VirtualClock;
  readonly seller: TestSeller;
  /** @param works whether its worker runs what is queued. */
  readonly process: (
    options?: Partial<PollerOptions> & { readonly call?: CallSeller },
    receiving?: TestReceiverOptions,
    works?: boolean,
  ) => Promise<Process>;
  readonly end: () => Promise<void>;
}

/** Processes of one buyer on one store, under one clock. Half of each jitter, so that times are what they are said to be. */
export function world(random: () => number = () => 0.5): World {
  const clock = virtualClock();
  const seller = testSeller(clock);
  const state = createMemoryState();
  const processes: Process[] = [];
  return {
    clock,
    seller,
    process: async ({ call = seller.call, ...options } = {}, receiving = {}, works = true) => {
      const store = receiving.store ?? memoryStore({ state });
      const registrations = registrationsOf(
        { store, call, baseUrl: 'https://buyer.example/webhooks', secrets: [NEWEST] },
        {
          hashes,
          randomBytes: (count) => new Uint8Array(randomBytes(count)),
          newId: () => randomUUID(),
          now: clock.now,
          sleep: clock.sleep,
        },
      );
      const made = await testReceiver({
        store,
        registrations,
        retry: { baseMs: 1, maxMs: 1 },
        ...receiving,
      });
      if (works) await made.receiver.start();
      else await made.receiver.ready();
      // Loaded when it is first needed, which takes time that is not this clock's.
      await loadOnDemand();
      const polls: Poll[] = [];
      const poller = pollerOf(
        {
          receiver: made.receiver,
          registrations,
          onPoll: (poll) => void polls.push(poll),
          ...options,
        },
        { clock: clock.now, sleep: clock.sleep, random },
      );
      const process: Process = { ...made, registrations, poller, polls };
      processes.push(process);
      return process;
    },
    end: async () => {
      await Promise.all(processes.map(({ poller }) => poller.stop()));
      await Promise.all(processes.map(({ receiver }) => receiver.stop()));
      clock.end();
    },
  };
}

/** The outcome of a poll that learned nothing new. */
export const UNCHANGED: PollEnd = {
  kind: 'answered',
  isEnd: false,
  status: 'submitted',
  dataHash: undefined,
  isChange: false,
  hintMs: undefined,
};

export const REQUEST: OperationRequest = {
  agentUrl: AGENT,
  taskType: 'create_media_buy',
  arguments: { budget: 1 },
};

/** An operation whose seller has answered that it will take its time. */
export async function submitted(
  { registrations }: Pick<Process, 'registrations'>,
  taskId: string,
  request: Partial<OperationRequest> = {},
): Promise<Registration> {
  const made = await registrations.create({ ...REQUEST, ...request });
  await made.settle({ status: 'submitted', task_id: taskId });
  return made;
}
