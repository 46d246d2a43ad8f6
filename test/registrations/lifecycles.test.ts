import { readFileSync } from 'node:fs';
import { randomBytes, randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { TaskEvent } from '../../src/events/index.ts';
import { loadOnDemand } from '../../src/for-tests.ts';
import type { Handlers } from '../../src/index.ts';
import type { Poll } from '../../src/poll/index.ts';
import { pollerOf } from '../../src/poll/for-tests.ts';
import { a2aCaller } from '../../src/registrations/a2a.ts';
import { type CallSeller, mcpCaller } from '../../src/registrations/mcp.ts';
import { registrationsOf } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { sellerKey, testReceiver } from '../receiver/setup.ts';
import { type VirtualClock, virtualClock } from '../support/virtual-clock.ts';
import { hashes, NEWEST } from './kit.ts';
import { type LifecycleSeller, lifecycleSeller, type Says } from './lifecycle-seller.ts';
import { callBy, startBy } from '../support/any-client.ts';

/*
 * calls.md §1.3, row by row: sellers on the server SDKs of both transports, called by this package's callers, asked by its poller,
 * and heard by a receiver. Each case says which row and channel of that table it is of, and how the operation ends.
 */

const DAY_MS = 86_400_000;
const FAST_MS = 30_000;
const TASK = 'task-1';
const INNER = 'inner-1';
const BUY = { media_buy_id: 'mb-1' };
const LOW = { code: 'BUDGET_TOO_LOW', message: 'at least 500', recovery: 'correctable' };
const NOT_SURE = { code: 'IDEMPOTENCY_CONFLICT', message: 'another payload' };

type Transport = 'tool' | 'agent';
type Channel = 'answer' | 'poll' | 'webhook';
type Told = 'begun' | 'refused' | 'failed' | 'null' | 'replayed' | 'unanswered before' | 'done';

/** Rows of the table, in its order. */
const ROWS = {
  'tool begun': 'tool `submitted`',
  'agent begun': "agent, the same as the Task's state",
  'agent begun inside': 'agent, the same inside',
  'tool done': 'tool `completed`, with data',
  'agent done': 'agent `completed`, with data',
  'without data': 'tool or agent `completed`, without data',
  'tool error alone': 'tool `completed`, with an error alone',
  'agent error alone': 'agent `completed`, with an error alone',
  'tool ended': 'tool `failed`, `canceled`, `rejected`',
  'agent ended': "agent, the same as the Task's state",
  'agent ended inside': 'agent, the same inside',
  "a buy's word": "a media buy's `completed`",
  'another word': 'another word',
  'coded error': 'an error with a code',
  'error without code': 'an error without code',
  'once more': 'the same once more',
  'unanswered before': 'any of them after',
} as const;
type Row = keyof typeof ROWS;

/** How the operation is left. */
interface Outcome {
  readonly state: 'calling' | 'open' | 'ended' | 'refused' | 'orphaned';
  /** Which handlers ran, with the task of each event. */
  readonly handled: readonly string[];
  /** Of the operation. */
  readonly taskId?: string;
  /** Codes, without those of the store. */
  readonly alarms: readonly string[];
  /** Code with which the call rejected, else the name of what it rejected with. */
  readonly rejected?: string;
  /** How often the seller was called, a simulated day after the first call included. */
  readonly calls: number;
}

interface Case {
  readonly row: Row;
  readonly channel: Channel;
  readonly told: Told;
  readonly transport: Transport;
  /** Answers of the calls; begun where there are none. */
  readonly calls?: readonly Says[];
  /** Answers of the polls. */
  readonly polls?: readonly Says[];
  readonly webhooks?: readonly object[];
  readonly outcome: Partial<Outcome>;
  /** Words of the cell of the table that the outcome has to be. */
  readonly words: string;
  /** Of the last event. */
  readonly data?: unknown;
  readonly error?: string;
}

/* What sellers say. */

const tool = (structuredContent: object, more: object = {}): Says => ({
  kind: 'tool',
  result: { content: [], structuredContent, ...more },
});
const failedTool = (structuredContent: object): Says => tool(structuredContent, { isError: true });
const task = (state: string, data?: object, id = TASK): Says => ({
  kind: 'task',
  task: taskOf(state, data, id),
});
function taskOf(state: string, data?: object, id = TASK): object {
  const parts = [{ data }];
  return {
    id,
    contextId: 'context-1',
    status: { state: `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}` },
    ...(data && { artifacts: [{ artifactId: 'a', parts }] }),
  };
}
const row = (status: string, more: object = {}): Says =>
  tool({ task_id: TASK, task_type: 'create_media_buy', status, ...more });
const LOST: Says = { kind: 'lost' };

const BEGUN: Readonly<Record<Transport, Says>> = {
  tool: tool({ status: 'submitted', task_id: TASK }),
  agent: task('submitted'),
};

/* Webhooks of both transports, each under a key of its own. */
let key = 0;
const hook = (status: string, more: object = {}): object => ({
  idempotency_key: `key-of-a-webhook-${(key += 1)}`,
  task_id: TASK,
  task_type: 'create_media_buy',
  status,
  timestamp: new Date().toISOString(),
  ...more,
});
const agentHook = (state: string, data?: object): object => ({
  ...taskOf(state, data),
  metadata: { idempotency_key: `key-of-a-webhook-${(key += 1)}`, task_type: 'create_media_buy' },
});

const OPEN = { state: 'open', taskId: TASK } as const;
const ENDED = { state: 'ended' } as const;
const COMPLETED = 'an event `completed`';
const NAMED = 'an event of that name';

const CASES: readonly Case[] = [
  /* Begun. */
  ...(['submitted', 'working', 'input-required', 'auth-required'] as const).flatMap((status): Case[] => [
    {
      row: 'tool begun',
      channel: 'answer',
      told: 'begun',
      transport: 'tool',
      calls: [tool({ status, task_id: TASK })],
      outcome: OPEN,
      words: '`open` under `task_id`',
    },
    {
      row: 'agent begun',
      channel: 'answer',
      told: 'begun',
      transport: 'agent',
      calls: [task(status)],
      outcome: OPEN,
      words: "`open` under the Task's id",
    },
    {
      row: 'agent begun inside',
      channel: 'answer',
      told: 'begun',
      transport: 'agent',
      calls: [task('completed', { status, task_id: INNER })],
      outcome: { state: 'open', taskId: INNER },
      words: '`open` under the inner `task_id`',
    },
  ]),
  {
    row: 'tool begun',
    channel: 'poll',
    told: 'begun',
    transport: 'tool',
    polls: [row('submitted'), row('working', { progress: { percentage: 5 } })],
    outcome: { ...OPEN, handled: ['working task-1'] },
    words: '`open`; a change is an event',
  },
  {
    row: 'agent begun',
    channel: 'poll',
    told: 'begun',
    transport: 'agent',
    polls: [task('submitted'), task('working')],
    outcome: { ...OPEN, handled: ['working task-1'] },
    words: '`open`; a change is an event',
  },
  {
    row: 'agent begun inside',
    channel: 'poll',
    told: 'begun',
    transport: 'agent',
    polls: [task('completed', { status: 'working', task_id: INNER }), task('working', undefined, INNER)],
    outcome: { state: 'open', taskId: INNER, handled: ['working inner-1'] },
    words: '`open` under the inner `task_id`',
  },
  {
    row: 'tool begun',
    channel: 'webhook',
    told: 'begun',
    transport: 'tool',
    webhooks: [hook('working', { result: { percentage: 5 } })],
    outcome: { ...OPEN, handled: ['working task-1'] },
    words: 'an event of `task_id`; `open`',
  },
  {
    row: 'agent begun',
    channel: 'webhook',
    told: 'begun',
    transport: 'agent',
    webhooks: [agentHook('working')],
    outcome: { ...OPEN, handled: ['working task-1'] },
    words: 'an event of the Task; `open`',
  },
  {
    row: 'agent begun inside',
    channel: 'webhook',
    told: 'begun',
    transport: 'agent',
    webhooks: [agentHook('completed', { status: 'submitted', task_id: INNER })],
    outcome: { state: 'open', taskId: INNER, handled: ['submitted inner-1'] },
    words: 'an event of the inner `task_id`; `open` under it',
  },

  /* Done, also with members that are null. */
  {
    row: 'tool done',
    channel: 'answer',
    told: 'done',
    transport: 'tool',
    calls: [tool({ status: 'completed', media_buy_status: 'active', ...BUY })],
    outcome: { ...ENDED, handled: ['completed'] },
    words: COMPLETED,
    data: { media_buy_status: 'active', ...BUY },
  },
  {
    row: 'tool done',
    channel: 'answer',
    told: 'null',
    transport: 'tool',
    calls: [tool({ status: null, task_id: null, adcp_error: null, errors: null, packages: null, ...BUY })],
    outcome: { ...ENDED, handled: ['completed'] },
    words: COMPLETED,
    data: BUY,
  },
  {
    row: 'tool done',
    channel: 'poll',
    told: 'null',
    transport: 'tool',
    polls: [
      row('completed', {
        result: { ...BUY, packages: null },
        error: null,
        adcp_error: null,
        updated_at: null,
      }),
    ],
    outcome: { ...ENDED, handled: ['completed task-1'] },
    words: COMPLETED,
    data: { ...BUY, packages: null },
  },
  {
    row: 'tool done',
    channel: 'webhook',
    told: 'null',
    transport: 'tool',
    webhooks: [
      hook('completed', {
        result: { ...BUY, errors: null },
        message: null,
        context: null,
        operation_id: null,
        adcp_error: null,
      }),
    ],
    outcome: { ...ENDED, handled: ['completed task-1'] },
    words: COMPLETED,
    data: { ...BUY, errors: null },
  },
  {
    row: 'agent done',
    channel: 'answer',
    told: 'done',
    transport: 'agent',
    calls: [task('completed', BUY)],
    outcome: { ...ENDED, handled: ['completed task-1'] },
    words: COMPLETED,
    data: BUY,
  },
  {
    row: 'agent done',
    channel: 'answer',
    told: 'null',
    transport: 'agent',
    calls: [task('completed', { ...BUY, status: null, task_id: null, adcp_error: null })],
    outcome: { ...ENDED, handled: ['completed task-1'] },
    words: COMPLETED,
    data: BUY,
  },
  {
    row: 'agent done',
    channel: 'poll',
    told: 'null',
    transport: 'agent',
    polls: [task('completed', { ...BUY, adcp_error: null, status: null })],
    outcome: { ...ENDED, handled: ['completed task-1'] },
    words: COMPLETED,
  },
  {
    row: 'agent done',
    channel: 'webhook',
    told: 'null',
    transport: 'agent',
    webhooks: [agentHook('completed', { ...BUY, adcp_error: null, status: null })],
    outcome: { ...ENDED, handled: ['completed task-1'] },
    words: COMPLETED,
  },
  {
    row: 'without data',
    channel: 'answer',
    told: 'null',
    transport: 'tool',
    calls: [tool({ status: 'completed', task_id: TASK, result: null })],
    outcome: { ...OPEN, handled: ['other task-1'], alarms: ['nonconforming_sender'] },
    words: 'an event for `other`',
  },
  {
    row: 'without data',
    channel: 'answer',
    told: 'null',
    transport: 'agent',
    calls: [task('completed')],
    outcome: { ...OPEN, handled: ['other task-1'], alarms: ['nonconforming_sender'] },
    words: 'an event for `other`',
  },
  {
    row: 'without data',
    channel: 'poll',
    told: 'null',
    transport: 'tool',
    polls: [row('completed', { result: null }), row('completed', { result: null })],
    outcome: { ...OPEN, alarms: ['task_unresolved'] },
    words: 'then `unresolved` with an alarm',
  },
  {
    row: 'without data',
    channel: 'webhook',
    told: 'null',
    transport: 'tool',
    webhooks: [hook('completed', { result: null })],
    outcome: { ...OPEN, handled: ['other task-1'], alarms: ['nonconforming_sender'] },
    words: 'no end, an event for `other`',
  },
  {
    row: 'without data',
    channel: 'webhook',
    told: 'null',
    transport: 'agent',
    webhooks: [agentHook('completed')],
    outcome: { ...OPEN, handled: ['other task-1'], alarms: ['nonconforming_sender'] },
    words: 'no end, an event for `other`',
  },
  {
    row: "a buy's word",
    channel: 'answer',
    told: 'done',
    transport: 'tool',
    calls: [tool({ status: 'canceled', ...BUY })],
    outcome: { ...ENDED, handled: ['completed'] },
    words: COMPLETED,
    data: { status: 'canceled', ...BUY },
  },
  {
    row: "a buy's word",
    channel: 'answer',
    told: 'done',
    transport: 'agent',
    calls: [task('completed', { status: 'rejected', ...BUY })],
    outcome: { ...ENDED, handled: ['completed task-1'] },
    words: COMPLETED,
    data: { status: 'rejected', ...BUY },
  },
  {
    row: "a buy's word",
    channel: 'poll',
    told: 'done',
    transport: 'tool',
    polls: [row('completed', { result: { status: 'canceled', ...BUY } })],
    outcome: { ...ENDED, handled: ['completed task-1'] },
    words: 'stays in the data',
    data: { status: 'canceled', ...BUY },
  },
  {
    row: "a buy's word",
    channel: 'webhook',
    told: 'done',
    transport: 'agent',
    webhooks: [agentHook('completed', { status: 'canceled', ...BUY })],
    outcome: { ...ENDED, handled: ['completed task-1'] },
    words: 'stays in the data',
    data: { status: 'canceled', ...BUY },
  },
  {
    row: 'another word',
    channel: 'answer',
    told: 'done',
    transport: 'tool',
    calls: [tool({ status: 'pending_approval', ...BUY })],
    outcome: { ...ENDED, handled: ['completed'] },
    words: COMPLETED,
  },
  {
    row: 'another word',
    channel: 'poll',
    told: 'done',
    transport: 'tool',
    polls: [row('pending_approval')],
    outcome: { ...OPEN, alarms: ['poll_failing'] },
    words: 'alarm `poll_failing`',
  },
  {
    row: 'another word',
    channel: 'webhook',
    told: 'done',
    transport: 'tool',
    webhooks: [hook('archived')],
    outcome: { ...OPEN, handled: ['other task-1'], alarms: ['nonconforming_sender'] },
    words: 'an event for `other`',
  },

  /* Refused: once a day, and heard by who called. */
  {
    row: 'coded error',
    channel: 'answer',
    told: 'refused',
    transport: 'tool',
    calls: [failedTool({ adcp_error: LOW })],
    outcome: { state: 'refused', rejected: LOW.code },
    words: '§2',
  },
  {
    row: 'coded error',
    channel: 'answer',
    told: 'refused',
    transport: 'tool',
    calls: [
      {
        kind: 'tool',
        result: { isError: true, content: [{ type: 'text', text: JSON.stringify({ adcp_error: LOW }) }] },
      },
    ],
    outcome: { state: 'refused', rejected: LOW.code },
    words: '§2',
  },
  {
    row: 'coded error',
    channel: 'answer',
    told: 'refused',
    transport: 'tool',
    calls: [tool({ errors: [LOW] })],
    outcome: { state: 'refused', rejected: LOW.code },
    words: '§2',
  },
  {
    row: 'coded error',
    channel: 'answer',
    told: 'refused',
    transport: 'agent',
    calls: [{ kind: 'message', data: { errors: [LOW] } }],
    outcome: { state: 'refused', rejected: LOW.code },
    words: '§2',
  },
  {
    row: 'tool error alone',
    channel: 'answer',
    told: 'refused',
    transport: 'tool',
    calls: [tool({ status: 'completed', errors: [LOW], buyer_ref: 'r' })],
    outcome: { state: 'refused', rejected: LOW.code },
    words: '§2',
  },
  {
    row: 'tool error alone',
    channel: 'answer',
    told: 'refused',
    transport: 'tool',
    calls: [tool({ status: 'completed', result: { errors: [LOW] } })],
    outcome: { state: 'refused', rejected: LOW.code },
    words: '§2',
  },
  {
    row: 'agent error alone',
    channel: 'answer',
    told: 'refused',
    transport: 'agent',
    calls: [task('completed', { adcp_error: LOW })],
    outcome: { state: 'refused', rejected: LOW.code },
    words: '§2',
  },
  {
    row: 'agent error alone',
    channel: 'answer',
    told: 'refused',
    transport: 'agent',
    calls: [task('completed', { status: 'completed', errors: [LOW] })],
    outcome: { state: 'refused', rejected: LOW.code },
    words: '§2',
  },
  {
    row: 'tool ended',
    channel: 'answer',
    told: 'refused',
    transport: 'tool',
    calls: [tool({ status: 'failed', error: LOW })],
    outcome: { state: 'refused', rejected: LOW.code },
    words: 'with a coded error and no `task_id`: §2',
  },
  {
    row: 'agent ended',
    channel: 'answer',
    told: 'refused',
    transport: 'agent',
    calls: [task('failed', { adcp_error: LOW })],
    outcome: { state: 'refused', rejected: LOW.code },
    words: 'as such (§2)',
  },
  {
    row: 'agent ended',
    channel: 'answer',
    told: 'refused',
    transport: 'agent',
    calls: [task('rejected', { error: LOW })],
    outcome: { state: 'refused', rejected: LOW.code },
    words: 'as such (§2)',
  },
  {
    row: 'agent ended inside',
    channel: 'answer',
    told: 'refused',
    transport: 'agent',
    calls: [task('completed', { status: 'failed', errors: [LOW] })],
    outcome: { state: 'refused', rejected: LOW.code },
    words: 'with a coded error and no id of a task of its own: §2',
  },
  {
    row: 'coded error',
    channel: 'poll',
    told: 'refused',
    transport: 'tool',
    polls: [failedTool({ adcp_error: LOW })],
    outcome: { ...OPEN, alarms: ['poll_failing'] },
    words: '§2.8',
  },
  {
    row: 'tool ended',
    channel: 'poll',
    told: 'refused',
    transport: 'tool',
    polls: [tool({ status: 'failed', errors: [LOW] })],
    outcome: { ...OPEN, alarms: ['poll_failing'] },
    words: 'with a coded error and no `task_id`: §2.8',
  },
  {
    row: 'tool error alone',
    channel: 'poll',
    told: 'refused',
    transport: 'tool',
    polls: [row('completed', { result: { errors: [LOW] } }), row('completed', { result: { errors: [LOW] } })],
    outcome: { ...OPEN, alarms: ['task_unresolved'] },
    words: 'then `unresolved` with an alarm',
  },
  {
    row: 'agent error alone',
    channel: 'poll',
    told: 'refused',
    transport: 'agent',
    polls: [task('completed', { adcp_error: LOW })],
    outcome: { ...ENDED, handled: ['failed task-1'] },
    words: 'an event `failed`',
    error: LOW.code,
  },
  {
    row: 'tool error alone',
    channel: 'webhook',
    told: 'refused',
    transport: 'tool',
    webhooks: [hook('completed', { result: { adcp_error: LOW } })],
    outcome: { ...OPEN, handled: ['other task-1'], alarms: ['nonconforming_sender'] },
    words: 'no end, an event for `other`',
  },
  {
    row: 'agent error alone',
    channel: 'webhook',
    told: 'refused',
    transport: 'agent',
    webhooks: [agentHook('completed', { error: LOW })],
    outcome: { ...ENDED, handled: ['failed task-1'] },
    words: 'an event `failed`',
    error: LOW.code,
  },
  {
    row: 'coded error',
    channel: 'webhook',
    told: 'refused',
    transport: 'tool',
    webhooks: [hook('failed', { result: { errors: [LOW] } })],
    outcome: { ...ENDED, handled: ['failed task-1'] },
    words: 'the data of its status',
    error: LOW.code,
  },
  {
    row: 'error without code',
    channel: 'answer',
    told: 'failed',
    transport: 'tool',
    calls: [
      { kind: 'tool', result: { isError: true, content: [{ type: 'text', text: 'out of memory' }] } },
      failedTool({ adcp_error: LOW }),
    ],
    outcome: { state: 'orphaned', rejected: 'Error', alarms: ['operation_refused'], calls: 2 },
    words: '`calling`: not answered',
  },
  {
    row: 'error without code',
    channel: 'poll',
    told: 'failed',
    transport: 'tool',
    polls: [{ kind: 'tool', result: { isError: true, content: [{ type: 'text', text: 'out of memory' }] } }],
    outcome: OPEN,
    words: 'asked again',
  },
  {
    row: 'error without code',
    channel: 'webhook',
    told: 'failed',
    transport: 'tool',
    webhooks: [hook('failed', { result: { error: 'out of memory' } })],
    outcome: { ...ENDED, handled: ['failed task-1'] },
    words: 'the data of its status',
  },

  /* Failed. */
  ...(['failed', 'canceled', 'rejected'] as const).flatMap((status): Case[] => [
    {
      row: 'tool ended',
      channel: 'answer',
      told: 'failed',
      transport: 'tool',
      calls: [tool({ status, task_id: TASK, errors: [LOW] })],
      outcome: { ...ENDED, handled: [`${status} task-1`] },
      words: NAMED,
      error: LOW.code,
    },
    {
      row: 'tool ended',
      channel: 'poll',
      told: 'failed',
      transport: 'tool',
      polls: [row(status, { error: LOW })],
      outcome: { ...ENDED, handled: [`${status} task-1`] },
      words: NAMED,
      error: LOW.code,
    },
    {
      row: 'tool ended',
      channel: 'webhook',
      told: 'failed',
      transport: 'tool',
      webhooks: [hook(status, { result: { errors: [LOW] } })],
      outcome: { ...ENDED, handled: [`${status} task-1`] },
      words: NAMED,
      error: LOW.code,
    },
    {
      row: 'agent ended',
      channel: 'answer',
      told: 'failed',
      transport: 'agent',
      calls: [task(status, { message: 'no' })],
      outcome: { ...ENDED, handled: [`${status} task-1`] },
      words: NAMED,
    },
    {
      row: 'agent ended',
      channel: 'poll',
      told: 'failed',
      transport: 'agent',
      polls: [task(status, { adcp_error: LOW })],
      outcome: { ...ENDED, handled: [`${status} task-1`] },
      words: NAMED,
      error: LOW.code,
    },
    {
      row: 'agent ended',
      channel: 'webhook',
      told: 'failed',
      transport: 'agent',
      webhooks: [agentHook(status, { adcp_error: LOW })],
      outcome: { ...ENDED, handled: [`${status} task-1`] },
      words: NAMED,
      error: LOW.code,
    },
    {
      row: 'agent ended inside',
      channel: 'answer',
      told: 'failed',
      transport: 'agent',
      calls: [task('completed', { status, task_id: INNER, errors: [LOW] })],
      outcome: { ...ENDED, handled: [`${status} inner-1`] },
      words: NAMED,
      error: LOW.code,
    },
    {
      row: 'agent ended inside',
      channel: 'poll',
      told: 'failed',
      transport: 'agent',
      polls: [task('completed', { status, errors: [LOW] })],
      outcome: { ...ENDED, handled: [`${status} task-1`] },
      words: NAMED,
      error: LOW.code,
    },
    {
      row: 'agent ended inside',
      channel: 'webhook',
      told: 'failed',
      transport: 'agent',
      webhooks: [agentHook('completed', { status, errors: [LOW] })],
      outcome: { ...ENDED, handled: [`${status} task-1`] },
      words: NAMED,
      error: LOW.code,
    },
  ]),

  /* Once more. */
  {
    row: 'once more',
    channel: 'answer',
    told: 'replayed',
    transport: 'tool',
    calls: [LOST, tool({ replayed: true, ...BUY })],
    webhooks: [hook('completed', { task_id: 'invented', result: BUY })],
    outcome: {
      ...ENDED,
      handled: ['completed'],
      alarms: ['nonconforming_sender'],
      rejected: 'Error',
      calls: 2,
    },
    words: 'as the first answer',
    data: BUY,
  },
  {
    row: 'once more',
    channel: 'answer',
    told: 'replayed',
    transport: 'tool',
    calls: [LOST, tool({ status: 'submitted', task_id: TASK, replayed: true })],
    outcome: { ...OPEN, rejected: 'Error', calls: 2 },
    words: 'as the first answer',
  },
  {
    row: 'once more',
    channel: 'answer',
    told: 'replayed',
    transport: 'agent',
    calls: [LOST, task('completed', { replayed: true, ...BUY })],
    outcome: { ...ENDED, handled: ['completed task-1'], rejected: 'Error', calls: 2 },
    words: 'as the first answer',
    data: BUY,
  },
  ...(['tool', 'agent'] as const).flatMap((transport): Case[] => {
    const working =
      transport === 'tool' ? row('working', { updated_at: '2026-01-01T00:00:00Z' }) : task('working');
    const end = transport === 'tool' ? hook('completed', { result: BUY }) : agentHook('completed', BUY);
    const same = transport === 'tool' ? row('completed', { result: BUY }) : task('completed', BUY);
    return [
      {
        row: 'once more',
        channel: 'poll',
        told: 'replayed',
        transport,
        polls: [working, working],
        outcome: { ...OPEN, handled: ['working task-1'] },
        words: 'no event',
      },
      {
        row: 'once more',
        channel: 'webhook',
        told: 'replayed',
        transport,
        webhooks: [end, end],
        polls: [same],
        outcome: { ...ENDED, handled: ['completed task-1'] },
        words: 'no second run',
        data: BUY,
      },
      {
        row: 'unanswered before',
        channel: 'answer',
        told: 'unanswered before',
        transport,
        calls: [LOST, BEGUN[transport]],
        outcome: { ...OPEN, rejected: 'Error', calls: 2 },
        words: 'as above',
      },
      {
        row: 'unanswered before',
        channel: 'poll',
        told: 'unanswered before',
        transport,
        calls: [LOST, BEGUN[transport]],
        polls: [same],
        outcome: { ...ENDED, handled: ['completed task-1'], rejected: 'Error', calls: 2 },
        words: 'as above',
      },
      {
        row: 'unanswered before',
        channel: 'webhook',
        told: 'unanswered before',
        transport,
        calls: [LOST],
        webhooks: [end],
        outcome: { ...ENDED, handled: ['completed task-1'], rejected: 'Error', calls: 1 },
        words: 'it settles the operation too',
      },
      ...[LOW, NOT_SURE].flatMap((error): Case[] => {
        const alarms = [error === LOW ? 'operation_refused' : 'operation_orphaned'];
        const refusals =
          transport === 'tool'
            ? [
                failedTool({ adcp_error: error }),
                tool({ status: 'failed', error }),
                tool({ status: 'completed', errors: [error] }),
              ]
            : [
                task('failed', { adcp_error: error }),
                task('completed', { adcp_error: error }),
                task('completed', { status: 'failed', error }),
              ];
        return refusals.map((refusal) => ({
          row: 'unanswered before',
          channel: 'answer',
          told: 'unanswered before',
          transport,
          calls: [LOST, refusal],
          outcome: { state: 'orphaned', rejected: 'Error', alarms, calls: 2 },
          words: 'an error: §2.6',
        }));
      }),
    ];
  }),
];

/** Cells of the table of calls.md §1.3, a row each. */
function cellsOfSpec(): readonly (readonly string[])[] {
  const spec = readFileSync(new URL('../../docs/spec/calls.md', import.meta.url), 'utf8');
  const [, section = ''] = spec.split('### 1.3 ');
  const lines = (section.split('\n### ')[0] ?? '').split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(2).map((line) =>
    line
      .slice(2, -2)
      .split(' | ')
      .map((cell) => cell.trim()),
  );
}
const COLUMNS = { answer: 1, poll: 2, webhook: 3 } as const;

let seller: LifecycleSeller;
let clock: VirtualClock;
let ending: (() => Promise<unknown>)[];
beforeAll(async () => {
  seller = await lifecycleSeller();
});
afterAll(() => seller.close());
beforeEach(() => {
  clock = virtualClock();
  ending = [];
  seller.reset();
});
afterEach(async () => {
  for (const end of ending) await end();
  clock.end();
});

/** Until what needs the network, and none of the clock's time, has been done. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const tooLate = performance.now() + 120_000;
  while (!(await condition())) {
    if (performance.now() > tooLate) throw new Error('it has not come to pass');
    await turn();
  }
}

const CALLERS: Readonly<Record<Transport, () => CallSeller>> = {
  tool: () => mcpCaller({ allowLoopback: true }),
  agent: () => a2aCaller({ allowLoopback: true }),
};

/** A buyer of one seller, over one transport. */
async function buyer(transport: Transport, edition: '3.1' | '3.2' = '3.1') {
  const agentUrl = `${seller.url}/${transport}`;
  const call = CALLERS[transport]();
  const handled: TaskEvent[] = [];
  const ran: string[] = [];
  const handler = (name: string) => (event: unknown) => {
    const { taskId } = event as TaskEvent;
    handled.push(event as TaskEvent);
    ran.push(taskId === undefined || taskId === '' ? name : `${name} ${taskId}`);
  };
  const names = [
    'submitted',
    'working',
    'input-required',
    'auth-required',
    'completed',
    'failed',
    'canceled',
    'rejected',
  ];
  const handlers = Object.fromEntries(
    ['other', ...names].map((name) => [name, handler(name)]),
  ) as unknown as Handlers;
  const state = createMemoryState();
  const store = memoryStore({ state });
  const alarms: string[] = [];
  const onAlarm = ({ code }: { readonly code: string }): void => void alarms.push(code);
  const registrations = registrationsOf(
    {
      call,
      store,
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [NEWEST],
      allowLoopback: true,
      onAlarm,
    },
    {
      hashes,
      randomBytes: (count) => new Uint8Array(randomBytes(count)),
      newId: () => randomUUID(),
      now: clock.now,
      sleep: clock.sleep,
    },
  );
  const senders = [{ agentUrl, pins: [(await sellerKey()).publicJwk] }];
  const receiving = await testReceiver({
    store,
    registrations,
    senders,
    handlers,
    onAlarm,
    allowLoopback: true,
  });
  await receiving.receiver.start();
  await loadOnDemand();
  const polls: Poll[] = [];
  const poller = pollerOf(
    { receiver: receiving.receiver, registrations, onPoll: (poll) => void polls.push(poll) },
    { clock: clock.now, sleep: clock.sleep, random: () => 0.5 },
  );
  ending.push(
    () => poller.stop(),
    () => registrations.stop(),
    () => receiving.receiver.stop(),
  );
  const registration = await registrations.create({
    agentUrl,
    taskType: 'create_media_buy',
    arguments: { budget: 1 },
    edition,
  });
  return { ...receiving, registrations, registration, poller, polls, call, handled, ran, alarms, agentUrl };
}

async function outcomeOf({ transport, calls, polls = [], webhooks = [] }: Case) {
  const at = await buyer(transport);
  const { registration, registrations, call } = at;
  seller.calls = [...(calls ?? [BEGUN[transport]])];
  seller.polls = [...polls];
  let rejected: string | undefined;
  const attempt = async (): Promise<void> => {
    await callBy(registration, call).catch((error: Error & { readonly code?: string }) => {
      rejected ??= error.name === 'SellerError' ? error.code : 'Error';
    });
  };
  do await attempt();
  while (seller.calls.length > 0);
  for (const body of webhooks) {
    const { response } = await at.deliver({ operation_id: registration.operationId, ...body });
    expect(response.status).toBe(200);
  }
  const known = async () => registrations.get(registration);
  if (polls.length > 0) {
    await at.poller.start();
    for (let left = 10; left > 0 && seller.polls.length > 0; left -= 1) {
      const before = at.polls.length;
      await clock.pass(FAST_MS);
      if ((await known())?.state !== 'open') break;
      await until(() => at.polls.length > before);
    }
  }
  const isOver = ['refused', 'orphaned'].includes((await known())?.state ?? '');
  if (isOver) {
    void startBy(registrations, call);
    await clock.pass(DAY_MS);
  }
  // What would run once too often has its turns.
  for (let left = 50; left > 0; left -= 1) await turn();
  const is = await known();
  return {
    last: at.handled.at(-1),
    outcome: {
      state: is?.state,
      handled: at.ran,
      alarms: at.alarms,
      rejected,
      calls: seller.called,
      ...(is?.state === 'open' && { taskId: is.taskId }),
    },
  };
}

describe('calls.md §1.3, on the server SDKs of both transports', () => {
  const cells = cellsOfSpec();

  it('has the rows that are tried here, each on every channel that it tells of something', () => {
    const begins = Object.values(ROWS);
    expect(cells.map(([told = ''], at) => told.startsWith(begins[at] ?? '\0'))).toEqual(
      begins.map(() => true),
    );
    const tried = new Set(CASES.map(({ row: name, channel }) => `${name}: ${channel}`));
    const all = Object.keys(ROWS).flatMap((name) =>
      Object.keys(COLUMNS).map((channel) => `${name}: ${channel}`),
    );
    expect(all.filter((name) => !tried.has(name))).toEqual([]);
    const kinds = ['begun', 'refused', 'failed', 'null', 'replayed', 'unanswered before'];
    for (const transport of ['tool', 'agent']) {
      const told = CASES.filter((one) => one.transport === transport).map(
        (one) => `${one.told}: ${one.channel}`,
      );
      const wanted = kinds.flatMap((kind) => Object.keys(COLUMNS).map((channel) => `${kind}: ${channel}`));
      expect(wanted.filter((one) => !told.includes(one))).toEqual([]);
    }
  });

  it.each(CASES.map((one) => [`${one.transport}, ${one.channel}, ${one.told}: ${one.row}`, one] as const))(
    '%s (%#)',
    async (_name, one) => {
      const cell = cells[Object.keys(ROWS).indexOf(one.row)]?.[COLUMNS[one.channel]] ?? '';
      expect(cell).toContain(one.words);
      const { outcome, last } = await outcomeOf(one);
      expect(outcome).toEqual({ handled: [], alarms: [], rejected: undefined, calls: 1, ...one.outcome });
      if (one.data !== undefined) expect(last?.data).toEqual(one.data);
      if (one.error !== undefined) expect(last?.error).toMatchObject({ code: one.error });
    },
  );
});

describe('calls.md §3.1, on the server SDKs of both transports', () => {
  /** Polls so often, and gives by which operations the seller was asked. */
  async function askedBy(transport: Transport, edition: '3.1' | '3.2', polls: readonly Says[]) {
    const at = await buyer(transport, edition);
    seller.calls = [BEGUN[transport]];
    await callBy(at.registration, at.call);
    seller.polls = [...polls];
    // What the seller declares is asked for after its first answer, which nobody waits for.
    if (transport === 'tool') await until(() => seller.asked.includes('the list'));
    seller.asked.length = 0;
    await at.poller.start();
    for (let times = 1; times <= 2; times += 1) {
      await clock.pass(FAST_MS);
      await until(() => at.polls.length >= times);
    }
    expect(at.polls.map(({ result }) => result)).toEqual(['unchanged', 'unchanged']);
    return seller.asked;
  }

  it.each(['get_task_status', 'tasks_get', 'tasks/get', 'get_task'])(
    'a tool %s that tools/list has is what is asked, and the list is read once',
    async (name) => {
      seller.questions = [name];
      const polls = [row('submitted'), row('submitted')];
      expect(await askedBy('tool', '3.1', polls)).toEqual(['the list', name, name]);
    },
  );

  it('of several tools the name of the protocol is asked', async () => {
    seller.questions = ['get_task', 'get_task_status'];
    const polls = [row('submitted'), row('submitted')];
    expect(await askedBy('tool', '3.2', polls)).toEqual(['the list', 'get_task_status', 'get_task_status']);
  });

  const answers = ['call-1', 'call-2'].map((id) =>
    task('completed', { task_id: TASK, status: 'submitted' }, id),
  );

  it('the skill that the card lists comes first in 3.2', async () => {
    expect(await askedBy('agent', '3.2', answers)).toEqual(['get_task_status', 'get_task_status']);
  });

  it('before 3.2 that skill is asked where the transport does not know the task', async () => {
    const polls: readonly Says[] = [{ kind: 'unknown' }, ...answers];
    const asked = ['the transport', 'get_task_status', 'get_task_status'];
    expect(await askedBy('agent', '3.1', polls)).toEqual(asked);
  });

  it('without such a skill the transport is asked in every edition', async () => {
    seller.questions = [];
    const polls = [task('submitted'), task('submitted')];
    expect(await askedBy('agent', '3.2', polls)).toEqual(['the transport', 'the transport']);
  });
});
