import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { OperationSeen } from '../../../src/registrations/index.ts';
import type { Line, ToldOfTask } from '../processes/ledger.ts';
import { type Facts, judge } from './judge.ts';
import type { Task } from './wire.ts';

const TASK: Task = {
  agent: 'prompt',
  name: 'order-1',
  requestKey: 'request-1',
  taskId: 'task-1',
  taskType: 'create_media_buy',
  resultId: 'buy-1',
  createdAt: 0,
  answers: 'submitted',
  steps: [
    { status: 'working', at: 1 },
    { status: 'completed', at: 2 },
  ],
  hooks: [],
};

const ran = (key: string, told: Partial<ToldOfTask>): Line => ({
  what: 'run',
  key,
  pid: 1,
  attempt: 1,
  told: { taskId: 'task-1', status: 'completed', source: 'webhook', ...told },
});

const orphaned: OperationSeen = {
  agentUrl: 'http://127.0.0.1:1/prompt/mcp',
  operationId: 'operation-1',
  taskType: 'create_media_buy',
  state: 'orphaned',
  ref: 'order-1',
  createdAt: 0,
};

/** One task, on its way and at its end, each handled once. */
const KEPT: Facts = {
  tasks: [TASK],
  completions: [
    { key: 'a', owner: 'x' },
    { key: 'b', owner: 'y' },
  ],
  effects: [
    { key: 'a', copy: '' },
    { key: 'b', copy: '' },
  ],
  ledger: [ran('a', { status: 'working', step: 0 }), ran('b', { step: 1, resultId: 'buy-1' })],
  operations: [],
};
const NOTHING = { lost: [], completedTwice: [], effectsWrong: [], backwards: [], doneTwice: [] };
const verdictOf = (facts: Partial<Facts>): object => judge({ ...KEPT, ...facts });

describe('the judge', () => {
  it('finds nothing where the promise was kept, with transactions or without', () => {
    expect(verdictOf({})).toEqual(NOTHING);
    const { effects: _none, ...facts } = KEPT;
    expect(judge(facts)).toEqual(NOTHING);
    // Handlers may run again.
    expect(verdictOf({ ledger: [...KEPT.ledger, ...KEPT.ledger] })).toEqual(NOTHING);
  });

  it('calls a result lost that no handler completed, unless its operation is named orphaned', () => {
    const facts = { completions: KEPT.completions.slice(0, 1), effects: KEPT.effects?.slice(0, 1) ?? [] };
    expect(verdictOf(facts)).toEqual({ ...NOTHING, lost: ['order-1'] });
    expect(verdictOf({ ...facts, operations: [orphaned] })).toEqual(NOTHING);
    const other = { ...orphaned, ref: 'order-2' };
    expect(verdictOf({ ...facts, operations: [other] })).toEqual({ ...NOTHING, lost: ['order-1'] });
    const open = { ...orphaned, state: 'open' } as const;
    expect(verdictOf({ ...facts, operations: [open] })).toEqual({ ...NOTHING, lost: ['order-1'] });
  });

  it('sees a result completed twice: one event by two owners, or two events of it', () => {
    const again = [...KEPT.completions, { key: 'b', owner: 'z' }];
    expect(verdictOf({ completions: again })).toMatchObject({ completedTwice: ['order-1'] });
    const byPoll = {
      completions: [...KEPT.completions, { key: 'c', owner: 'z' }],
      ledger: [...KEPT.ledger, ran('c', { source: 'poll', step: 1, resultId: 'buy-1', taskId: '' })],
    };
    expect(verdictOf(byPoll)).toEqual({ ...NOTHING, completedTwice: ['order-1'] });
  });

  it('sees an effect of a transaction twice, and one that is missing', () => {
    const [first, second] = KEPT.effects ?? [];
    if (!first || !second) throw new Error('there are two');
    expect(verdictOf({ effects: [first, second, second] })).toEqual({
      ...NOTHING,
      effectsWrong: ['order-1'],
    });
    expect(verdictOf({ effects: [first] })).toEqual({ ...NOTHING, effectsWrong: ['order-1'] });
    // Of another status it is not the result's.
    expect(verdictOf({ effects: [second] })).toEqual(NOTHING);
  });

  it('sees a status after a later one, and one twice', () => {
    const back = { completions: KEPT.completions.toReversed() };
    expect(verdictOf(back)).toEqual({ ...NOTHING, backwards: ['order-1'] });
    const twice = {
      completions: [{ key: 'c', owner: 'z' }, ...KEPT.completions],
      ledger: [...KEPT.ledger, ran('c', { source: 'poll', status: 'working', step: 0 })],
    };
    expect(verdictOf(twice)).toEqual({ ...NOTHING, backwards: ['order-1'] });
  });

  it('sees an order that the seller has done twice', () => {
    const other = { ...TASK, taskId: 'task-2', resultId: 'buy-2', requestKey: 'request-2' };
    const facts = {
      tasks: [TASK, other],
      completions: [...KEPT.completions, { key: 'c', owner: 'z' }],
      effects: [...(KEPT.effects ?? []), { key: 'c', copy: '' }],
      ledger: [...KEPT.ledger, ran('c', { taskId: 'task-2', step: 1, resultId: 'buy-2' })],
    };
    expect(verdictOf(facts)).toEqual({ ...NOTHING, doneTwice: ['order-1'] });
  });
});

it('the seller shares no code with the buyer', () => {
  const folder = fileURLToPath(new URL('seller', import.meta.url));
  const files = readdirSync(folder).map((name) => `${folder}/${name}`);
  const main = fileURLToPath(new URL('fixtures/seller.ts', import.meta.url));
  const imports = [...files, main].flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b[^;]*?\bfrom '([^']+)'/gm)].map((match) => ({
      isType: match[0].startsWith('import type'),
      from: match[1] ?? '',
    })),
  );
  const own = /^(\.\/|\.\.\/seller\/)[a-z0-9]+\.ts$/;
  const others = imports.filter(({ from }) => from.startsWith('.') && !own.test(from));
  expect(imports.length).toBeGreaterThan(10);
  expect(others.filter(({ isType, from }) => !isType || from !== '../wire.ts')).toEqual([]);
  expect(imports.filter(({ from }) => from.includes('proto-webhooks'))).toEqual([]);
});
