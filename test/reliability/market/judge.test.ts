import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { OperationSeen } from '../../../src/registrations/index.ts';
import type { Line, ToldOfTask } from '../processes/ledger.ts';
import { judgeMarket, MARKET_KEPT, type MarketFacts } from './judge.ts';
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

const ran = (key: string, told: Partial<ToldOfTask>): readonly Line[] => [
  {
    what: 'run',
    key,
    pid: 1,
    run: 1,
    told: { taskId: 'task-1', status: 'completed', source: 'webhook', ...told },
  },
  { what: 'effect', key, pid: 1, copy: '' },
];

const orphaned: OperationSeen = {
  agentUrl: 'http://127.0.0.1:1/prompt/mcp',
  operationId: 'operation-1',
  taskType: 'create_media_buy',
  state: 'orphaned',
  ref: 'order-1',
  createdAt: 0,
};

/** One task, on its way and at its end, each handled once. */
const HANDLED: MarketFacts = {
  tasks: [TASK],
  completions: [
    { key: 'a', owner: 'x' },
    { key: 'b', owner: 'y' },
  ],
  effects: [],
  ledger: [...ran('a', { status: 'working', step: 0 }), ...ran('b', { step: 1, resultId: 'buy-1' })],
  operations: [],
  forgetful: new Set(),
  refused: new Set(),
  made: new Set(),
};
const verdictOf = (facts: Partial<MarketFacts>): object => judgeMarket({ ...HANDLED, ...facts });

/** What is judged of any seller has tests of its own (`processes/judge.test.ts`): these are of orders and their channels. */
describe('the judge of orders', () => {
  it('finds nothing where the promise was kept', () => {
    expect(verdictOf({})).toEqual(MARKET_KEPT);
    // Handlers may run again.
    expect(verdictOf({ ledger: [...HANDLED.ledger, ...HANDLED.ledger] })).toEqual(MARKET_KEPT);
  });

  const forgetful = new Set([orphaned.agentUrl]);

  it('calls a result lost that no handler completed, unless the rules let its operation be named orphaned', () => {
    const facts = { completions: HANDLED.completions.slice(0, 1), forgetful };
    const lost = { ...MARKET_KEPT, lost: ['order-1'] };
    expect(verdictOf(facts)).toEqual(lost);
    expect(verdictOf({ ...facts, operations: [orphaned] })).toEqual(MARKET_KEPT);
    expect(verdictOf({ ...facts, operations: [{ ...orphaned, ref: 'order-2' }] })).toEqual(lost);
    expect(verdictOf({ ...facts, operations: [{ ...orphaned, state: 'open' }] })).toEqual(lost);
  });

  it('names what is orphaned at an agent that knows a request by its key, and calls its result lost', () => {
    const operations = [orphaned];
    const wrong = { ...MARKET_KEPT, orphanedWrongly: ['order-1'] };
    expect(verdictOf({ operations })).toEqual(wrong);
    const completions = HANDLED.completions.slice(0, 1);
    expect(verdictOf({ operations, completions })).toEqual({ ...wrong, lost: ['order-1'] });
    // Of another agent nothing is excused by this one.
    const other = new Set(['http://127.0.0.1:1/forgetful/mcp']);
    expect(verdictOf({ operations, forgetful: other })).toEqual(wrong);
  });

  it('names what is orphaned though its call was answered and the answer is kept', () => {
    const facts = { operations: [orphaned], forgetful, made: new Set(['order-1']) };
    expect(verdictOf(facts)).toEqual({ ...MARKET_KEPT, orphanedWrongly: ['order-1'] });
  });

  it('excuses an order that the seller has refused and never begun, and no other order', () => {
    const facts = { operations: [orphaned], refused: new Set(['order-1']) };
    const nothing = { ...facts, tasks: [], ledger: [], completions: [] };
    const wrong = { ...MARKET_KEPT, orphanedWrongly: ['order-1'] };
    expect(verdictOf(nothing)).toEqual(MARKET_KEPT);
    expect(verdictOf({ ...nothing, refused: new Set(['order-2']) })).toEqual(wrong);
    expect(verdictOf(facts)).toEqual(wrong);
  });

  it('excuses an order whose first answer is an error that names a media buy', () => {
    const facts = { operations: [orphaned], completions: [], ledger: [] };
    const failed = { ...TASK, steps: [{ status: 'failed', at: 1 }] };
    const wrong = { ...MARKET_KEPT, lost: ['order-1'], orphanedWrongly: ['order-1'] };
    expect(verdictOf({ ...facts, tasks: [{ ...failed, answers: 'end' }] })).toEqual(MARKET_KEPT);
    expect(verdictOf({ ...facts, tasks: [failed] })).toEqual(wrong);
    expect(verdictOf({ ...facts, tasks: [{ ...TASK, answers: 'end' }] })).toEqual(wrong);
  });

  it('calls one lost whose effect is not there, and sees one twice', () => {
    const { ledger } = HANDLED;
    const inTransaction = { ledger: ledger.filter(({ what }) => what === 'run') };
    const [first, second] = [
      { key: 'a', copy: '' },
      { key: 'b', copy: '' },
    ];
    expect(verdictOf({ ...inTransaction, effects: [first, second] })).toEqual(MARKET_KEPT);
    // Of another status it is not the result's.
    expect(verdictOf({ ...inTransaction, effects: [first] })).toEqual({ ...MARKET_KEPT, lost: ['order-1'] });
    const again = { ...inTransaction, effects: [first, second, second] };
    expect(verdictOf(again)).toEqual({ ...MARKET_KEPT, effectsTwice: ['order-1'] });
  });

  it('sees a result completed twice: one event by two owners, or two events of it', () => {
    const again = [...HANDLED.completions, { key: 'b', owner: 'z' }];
    expect(verdictOf({ completions: again })).toMatchObject({ completedTwice: ['order-1'] });
    const byPoll = {
      completions: [...HANDLED.completions, { key: 'c', owner: 'z' }],
      ledger: [...HANDLED.ledger, ...ran('c', { source: 'poll', step: 1, resultId: 'buy-1', taskId: '' })],
    };
    expect(verdictOf(byPoll)).toEqual({ ...MARKET_KEPT, completedTwice: ['order-1'] });
  });

  it('sees a status after a later one, and one twice', () => {
    const backwards = { ...MARKET_KEPT, backwards: ['task-1'] };
    expect(verdictOf({ completions: HANDLED.completions.toReversed() })).toEqual(backwards);
    const twice = {
      completions: [{ key: 'c', owner: 'z' }, ...HANDLED.completions],
      ledger: [...HANDLED.ledger, ...ran('c', { source: 'poll', status: 'working', step: 0 })],
    };
    expect(verdictOf(twice)).toEqual(backwards);
  });

  it('sees an order that the seller has done twice', () => {
    const other = { ...TASK, taskId: 'task-2', resultId: 'buy-2', requestKey: 'request-2' };
    const facts = {
      tasks: [TASK, other],
      completions: [...HANDLED.completions, { key: 'c', owner: 'z' }],
      ledger: [...HANDLED.ledger, ...ran('c', { taskId: 'task-2', step: 1, resultId: 'buy-2' })],
    };
    expect(verdictOf(facts)).toEqual({ ...MARKET_KEPT, doneTwice: ['order-1'] });
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
