import { describe, expect, it } from 'vitest';
import { answerIn, isContradicted, refusalIn, taskUnknownIn } from '../../src/registrations/for-tests.ts';
import { SellerError } from '../../src/registrations/index.ts';

describe('what a first answer says of the task', () => {
  it.each([
    [
      { status: 'submitted', task_id: 'task-1' },
      { status: 'submitted', taskId: 'task-1' },
    ],
    [{ status: 'rejected' }, { status: 'rejected' }],
    [
      { status: 'failed', task_id: 't', error: { code: 'X', message: 'y' } },
      { status: 'failed', taskId: 't', data: { error: { code: 'X', message: 'y' } } },
    ],
    [
      { kind: 'task', id: 'task-2', status: { state: 'working' } },
      { status: 'working', taskId: 'task-2' },
    ],
    [
      { id: 'x', taskId: 'task-3', status: { state: 'input-required' } },
      { status: 'input-required', taskId: 'task-3' },
    ],
    [{ result: { id: 'task-4', status: { state: 'submitted' } } }, { status: 'submitted', taskId: 'task-4' }],
    [
      { task: { id: 'task-5', status: { state: 'TASK_STATE_SUBMITTED' } } },
      { status: 'submitted', taskId: 'task-5' },
    ],
    [
      { statusUpdate: { taskId: 'task-6', status: { state: 'TASK_STATE_WORKING' } } },
      { status: 'working', taskId: 'task-6' },
    ],
    // The result itself: a media buy's own status is none of a task's.
    [
      { media_buy_id: 'mb-1', status: 'active' },
      { status: 'completed', data: { media_buy_id: 'mb-1', status: 'active' } },
    ],
    [{ products: [] }, { status: 'completed', data: { products: [] } }],
    [
      { media_buy_id: 'mb-1', errors: [{ code: 'LATE' }] },
      { status: 'completed', data: { media_buy_id: 'mb-1', errors: [{ code: 'LATE' }] } },
    ],
    [
      { result: { task: { id: 'task-7', status: { state: 'TASK_STATE_WORKING' } } } },
      { status: 'working', taskId: 'task-7' },
    ],
    // An agent's message: what is in its first data part, as a tool's answer.
    [
      { messageId: 'm', parts: [{ text: 'ok' }, { data: { status: 'submitted', task_id: 'task-8' } }] },
      { status: 'submitted', taskId: 'task-8' },
    ],
    [
      { result: { kind: 'message', messageId: 'm', parts: [{ kind: 'data', data: { products: [] } }] } },
      { status: 'completed', data: { products: [] } },
    ],
    [
      { message: { messageId: 'm', parts: [{ data: { products: [] } }] } },
      { status: 'completed', data: { products: [] } },
    ],
    [
      { content: [], structuredContent: { status: 'submitted', task_id: 'task-6' } },
      { status: 'submitted', taskId: 'task-6' },
    ],
  ])('%j', (answer, expected) => {
    expect(answerIn(answer, 'create_media_buy')).toEqual(expected);
    expect(refusalIn(answer)).toBeUndefined();
  });
});

describe('what is no answer of an operation', () => {
  it.each([
    null,
    undefined,
    'Internal Server Error',
    [],
    new Error('x'),
    new Response('', { status: 500 }),
    { error: 'boom' },
    { error: { code: -32600 } },
    { errors: [{ code: 'X' }] },
    { adcp_error: { code: 'X' } },
    { proto_error: { code: 'X' } },
    { status: 'bogus', task_id: 't' },
    { status: 'pending_approval' },
    { status: 'pending_approval', buyer_ref: 'b', workflow_step_id: 'w' },
    { status: 'active', media_buy_id: '' },
    { status: 7, message: 'wait' },
    { isError: true, content: [] },
    { messageId: 'm', role: 'agent', parts: [{ kind: 'text', text: 'done' }] },
    { content: [{ type: 'text', text: '{"status":"submitted"}' }] },
  ])('%s ends nothing', (answer) => {
    expect(() => answerIn(answer, 'create_media_buy')).toThrow(
      expect.objectContaining({ code: 'answer_invalid' }),
    );
  });

  it('a status that is not a task’s is one of the result, where that is there', () => {
    const buy = { media_buy_id: 'mb-1', status: 'pending_approval' };
    expect(answerIn(buy, 'update_media_buy')).toEqual({ status: 'completed', data: buy });
    const creatives = { status: 'in_review', creatives: [] };
    expect(answerIn(creatives, 'sync_creatives')).toEqual({ status: 'completed', data: creatives });
    for (const [status, shown] of [
      ['pending_approval', 'pending_approval'],
      ['\u001b[2J'.repeat(200), '?[2J?[2J'],
    ] as const) {
      const alone = { status, message: 'soon', errors: [], context: {} };
      expect(() => answerIn(alone, 'sync_creatives')).toThrow(`has a status that is not a task's (${shown}`);
    }
  });

  it.each([
    [{ error: 'boom' }, 'boom'],
    [
      { errors: [{ code: 'BUDGET_TOO_LOW', message: 'at least 5' }, { code: 'X' }] },
      'BUDGET_TOO_LOW: at least 5; X',
    ],
    [{ adcp_error: { code: 'BUSY', message: 'come\nback' } }, 'BUSY: come?back'],
    [{ structuredContent: { adcp_error: { message: 'later' } } }, 'later'],
    [
      {
        isError: true,
        content: [
          { type: 'text', text: 'out of' },
          { type: 'text', text: 'memory' },
        ],
      },
      'out of memory',
    ],
  ])('%j is told in the message', (answer, said) => {
    expect(() => answerIn(answer, 'create_media_buy')).toThrow(`(${said}): it is unknown`);
  });

  it('no more than a few lines of what the seller said', () => {
    const errors = Array.from({ length: 900 }, () => ({ code: 'C'.repeat(9000), message: 'm'.repeat(9000) }));
    const message = (): string => {
      try {
        answerIn({ errors }, 'create_media_buy');
      } catch (error) {
        return (error as Error).message;
      }
      return expect.fail('an answer');
    };
    expect(message().length).toBeLessThan(2100);
  });

  it.each(['TASK_NOT_FOUND', 'REFERENCE_NOT_FOUND', 'NOT_FOUND'])(
    '%s in whichever member is of a task that the seller does not know',
    (code) => {
      const error = { code, message: 'gone' };
      for (const answer of [{ error }, { adcp_error: error }, { errors: [{ message: 'x' }, error] }]) {
        expect(taskUnknownIn(answer)?.message).toMatch(/does not know the task.*gone/);
        expect(taskUnknownIn({ isError: true, structuredContent: answer })).toBeDefined();
      }
      expect(taskUnknownIn({ status: 'failed', task_id: 't', errors: [error] })).toBeUndefined();
    },
  );

  it('a refusal in a client’s envelope is one', () => {
    const answer = { isError: true, structuredContent: { error: { code: 'AUTH_INVALID' } } };
    expect(refusalIn(answer)).toMatchObject({ code: 'AUTH_INVALID' });
  });
});

describe('a refusal', () => {
  it.each([
    'AUTH_REQUIRED',
    'AUTH_INVALID',
    'INSUFFICIENT_PERMISSIONS',
    'INVALID_REQUEST',
    'IDEMPOTENCY_CONFLICT',
  ])('%s is an error with what to do, answered or thrown', (code) => {
    const answered = refusalIn({ error: { code, message: 'because' } }) ?? expect.fail('refused');
    expect(answered).toBeInstanceOf(SellerError);
    expect(answered.message).toMatch(new RegExp(`^The seller answers ${code}: because\\. \\w.*\\.$`));
    expect([answered.code, answered.recovery === 'transient']).toEqual([code, false]);
    const thrown = Object.assign(new Error('because'), { code });
    expect(refusalIn(thrown)).toMatchObject({ code, message: answered.message, cause: thrown });
    expect(refusalIn(answered)).toBe(answered);
  });

  it.each(['constructor', 'toString', '__proto__'])(
    'of the code %s has no advice but its recovery',
    (code) => {
      expect(refusalIn({ error: { code, message: 'because' } })?.message).toBe(
        `The seller answers ${code}: because.`,
      );
      expect(refusalIn({ error: { code, message: 'because', recovery: 'transient' } })?.message).toBe(
        `The seller answers ${code}: because. The same call may succeed later.`,
      );
    },
  );

  it('has what the seller says of it', () => {
    const error = {
      code: 'BUDGET_TOO_LOW',
      message: 'at least 500',
      recovery: 'correctable',
      field: 'packages[0].budget',
      details: { minimum: 500 },
      retry_after: 2,
    };
    const { retry_after: _seconds, message, ...said } = error;
    const refusal = refusalIn({ adcp_error: error });
    expect(refusal).toMatchObject({ ...said, retryAfterMs: 2000, isUnknown: false });
    expect(refusal?.message).toContain(`BUDGET_TOO_LOW: ${message}. Change`);
    const { field, details } = refusalIn({ error: { code: 'AUTH_INVALID' } }) ?? expect.fail('refused');
    expect([field, details]).toEqual([undefined, undefined]);
  });

  it('in a task that failed at once is one of a call', () => {
    const failed = (state: string, code?: string): object => ({
      id: 't',
      status: { state, message: { parts: [{ data: { error: { code, message: 'because' } } }] } },
    });
    const refusal = refusalIn(failed('TASK_STATE_REJECTED', 'INVALID_REQUEST'), 'create_media_buy');
    expect(refusal).toMatchObject({ code: 'INVALID_REQUEST' });
    expect(refusalIn(failed('failed', 'BUDGET_TOO_LOW'), 'create_media_buy')).toBeDefined();
    expect(refusalIn(failed('failed'), 'create_media_buy')).toBeUndefined();
    expect(refusalIn(failed('working', 'INVALID_REQUEST'), 'create_media_buy')).toBeUndefined();
    expect(refusalIn({ error: { code: 'LATE' } }, 'create_media_buy')).toMatchObject({ code: 'LATE' });
  });

  it('in an answer whose task has failed is none, but where no task is named: then it is of the call', () => {
    const failed = (code: string, more: object = {}): object => ({
      status: 'failed',
      error: { code },
      ...more,
    });
    expect(refusalIn(failed('INVALID_REQUEST', { task_id: 't' }), 'create_media_buy')).toBeUndefined();
    expect(refusalIn(failed('INVALID_REQUEST'), 'create_media_buy')).toMatchObject({
      code: 'INVALID_REQUEST',
    });
    expect(refusalIn({ status: 'failed', message: 'no' }, 'create_media_buy')).toBeUndefined();
    expect(refusalIn(failed('RATE_LIMITED'), 'create_media_buy')).toMatchObject({ recovery: 'transient' });
    expect(refusalIn(failed('RATE_LIMITED', { task_id: 't' }), 'create_media_buy')).toBeUndefined();
    const tool = (more?: object): object => ({
      isError: true,
      structuredContent: failed('BUDGET_TOO_LOW', more),
    });
    expect(refusalIn(tool(), 'create_media_buy')).toMatchObject({ code: 'BUDGET_TOO_LOW' });
    expect(refusalIn(tool({ task_id: 't' }), 'create_media_buy')).toBeUndefined();
  });

  const completed = (data: object): object => ({
    kind: 'task',
    id: 'call-1',
    status: { state: 'completed' },
    artifacts: [{ artifactId: 'a', parts: [{ kind: 'data', data }] }],
  });
  const BUDGET = { code: 'BUDGET_TOO_LOW', message: 'no push' };

  it.each([
    [{ adcp_error: BUDGET }],
    [{ proto_error: BUDGET }],
    [{ errors: [BUDGET, { code: 'RATE_LIMITED' }] }],
    [{ errors: [BUDGET], buyer_ref: 'b' }],
    [{ errors: [{ message: 'in words' }, BUDGET], media_buy_id: null }],
    [{ isError: true, structuredContent: { adcp_error: BUDGET } }],
    [{ isError: true, content: [{ type: 'text', text: JSON.stringify({ adcp_error: BUDGET }) }] }],
    [{ messageId: 'm', parts: [{ data: { errors: [BUDGET] } }] }],
    [{ jsonrpc: '2.0', error: { code: -32_000, message: 'm', data: { adcp_error: BUDGET } } }],
    [completed({ adcp_error: BUDGET })],
    [completed({ errors: [BUDGET] })],
    [Object.assign(new Error('MCP error'), { code: -32_000, data: { adcp_error: BUDGET } })],
    [Object.assign(new Error('MCP error'), { code: -32_000, data: BUDGET })],
  ])('is one of a call wherever it stands, where there is no result: %j', (answer) => {
    const refusal = refusalIn(answer, 'create_media_buy');
    expect(refusal).toMatchObject({ code: 'BUDGET_TOO_LOW', recovery: 'correctable' });
    expect(refusal?.message).toContain('BUDGET_TOO_LOW: no push');
  });

  it.each([
    [{ isError: true, content: [{ type: 'text', text: 'out of memory' }] }],
    [{ error: { code: -32_603, message: 'internal' } }],
    [Object.assign(new Error('MCP error -32603'), { code: -32_603 })],
    [{ error: 'boom' }],
    [{ error: { message: 'boom' } }],
    [new Error('HTTP 500')],
  ])('%j says nothing of what it is: the call was not answered', (answer) => {
    expect(refusalIn(answer, 'create_media_buy')).toBeUndefined();
  });

  it('sees the media buy in a Task that has failed, wherever a data part of it is', () => {
    const data = { media_buy_id: 'mb-1', errors: [{ code: 'PRODUCT_UNAVAILABLE', message: 'It is sold.' }] };
    const failed = (state: string, more: object): object => ({
      id: 'task-1',
      contextId: 'context-1',
      status: { state },
      ...more,
    });
    const parts = [{ data }];
    const message = { messageId: 'message-1', role: 'agent', parts };
    const first = { artifactId: 'a', parts: [{ data: { errors: data.errors } }] };
    const second = { artifactId: 'b', parts };
    for (const answer of [
      failed('failed', { kind: 'task', artifacts: [second] }),
      failed('TASK_STATE_FAILED', { artifacts: [second] }),
      failed('failed', { kind: 'task', artifacts: [first, second] }),
      { ...failed('failed', { artifacts: [first] }), status: { state: 'failed', message } },
      { task: failed('TASK_STATE_REJECTED', { artifacts: [second] }) },
    ]) {
      expect(refusalIn(answer, 'create_media_buy')).toMatchObject({ code: 'PRODUCT_UNAVAILABLE' });
      expect(isContradicted(answer, 'create_media_buy')).toBe(true);
      expect(isContradicted(answer, 'update_media_buy')).toBe(false);
    }
    expect(isContradicted(failed('failed', { artifacts: [first] }), 'create_media_buy')).toBe(false);
  });

  it('beside a result is none, unless it is no warning', () => {
    const errors = [{ code: 'INVALID_REQUEST', message: 'one of the packages' }];
    expect(refusalIn({ media_buy_id: 'mb-1', errors }, 'create_media_buy')).toBeUndefined();
    expect(refusalIn({ products: [], errors }, 'get_products')).toBeUndefined();
    const error = { code: 'NOT_CANCELLABLE', message: 'it runs' };
    expect(refusalIn({ media_buy_id: 'mb-1', error }, 'update_media_buy')).toBeDefined();
    expect(isContradicted({ media_buy_id: 'mb-1', error }, 'create_media_buy')).toBe(true);
    expect(isContradicted({ media_buy_id: 'mb-1', error }, 'update_media_buy')).toBe(false);
    const stale = { products: [1], adcp_error: { code: 'STALE_RESPONSE', message: 'old' } };
    expect(refusalIn(stale, 'get_products')).toBeUndefined();
    expect(answerIn(stale, 'get_products')).toMatchObject({ status: 'completed' });
  });

  it('by its recovery alone is one too; an unknown code without one is never taken for transient', () => {
    expect(refusalIn({ error: { recovery: 'terminal' } })).toMatchObject({ code: '', isUnknown: false });
    expect(refusalIn({ error: { code: 'NEW' } })).toMatchObject({ recovery: 'terminal', isUnknown: true });
    expect(refusalIn({ error: { code: 'NEW', recovery: 'transient' } })).toMatchObject({ isUnknown: false });
    const refusal = refusalIn({ error: { code: 'RATE_LIMITED' } });
    expect(refusal?.message).toBe('The seller answers RATE_LIMITED. The same call may succeed later.');
    // An error of the network says nothing of the seller's.
    expect(refusalIn(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))).toBeUndefined();
    expect(refusalIn(Object.assign(new Error('x'), { code: '__proto__' }))).toBeUndefined();
  });

  it('repeats no more than a line of what the seller said', () => {
    const refusal = refusalIn({ error: { code: 'C'.repeat(64), message: 'm'.repeat(9000) } });
    expect(refusal?.message.length).toBeGreaterThan(300);
    expect(refusal?.message.length).toBeLessThan(700);
  });
});

describe('calls.md §1.2 and §1.3: whose word a status is', () => {
  const completed = (data: object, metadata?: object): object => ({
    kind: 'task',
    id: 'call-1',
    contextId: 'c',
    status: { state: 'completed' },
    artifacts: [{ artifactId: 'a', ...(metadata && { metadata }), parts: [{ kind: 'data', data }] }],
  });
  const BEGUN = ['submitted', 'working', 'input-required', 'auth-required'] as const;

  it.each(BEGUN)('%s inside a completed Task is of the inner task', (status) => {
    const data = { status, task_id: 'work-1', message: 'queued for approval' };
    const answer = { status, taskId: 'work-1', data, replaces: 'call-1' };
    expect(answerIn(completed(data), 'create_media_buy')).toEqual(answer);
    expect(answerIn(completed({ status }, { adcp_task_id: 'work-1' }), 'create_media_buy')).toMatchObject({
      status,
      taskId: 'work-1',
    });
    // Without an id of its own it is asked about by the only one that there is.
    expect(answerIn(completed({ status }), 'create_media_buy')).toMatchObject({ status, taskId: 'call-1' });
    expect(answerIn({ status, task_id: 'work-1', media_buy_id: 'mb' }, 'create_media_buy')).toMatchObject({
      status,
      taskId: 'work-1',
    });
  });

  it.each(['failed', 'canceled', 'rejected'] as const)('%s inside is that end', (status) => {
    const data = { status, reason: 'no inventory' };
    expect(answerIn(completed(data), 'create_media_buy')).toEqual({ status, taskId: 'call-1', data });
    const beside = { status, media_buy_id: 'mb1', media_buy_status: 'rejected' };
    expect(answerIn(completed(beside), 'update_media_buy')).toMatchObject({ status });
    expect(answerIn(beside, 'update_media_buy')).toMatchObject({ status });
  });

  it.each(['completed', 'canceled', 'rejected', 'active', 'paused', 'pending_start'])(
    '%s beside a media_buy_id is the media buy’s, and stays in the data',
    (status) => {
      const data = { media_buy_id: 'mb1', status };
      expect(answerIn(data, 'update_media_buy')).toEqual({ status: 'completed', data });
      expect(answerIn(completed(data), 'update_media_buy')).toEqual({
        status: 'completed',
        taskId: 'call-1',
        data,
      });
      expect(answerIn({ ...data, task_id: 't' }, 'update_media_buy')).toEqual({
        status: 'completed',
        taskId: 't',
        data,
      });
    },
  );

  it('failed is no media buy’s word', () => {
    expect(answerIn({ status: 'failed', media_buy_id: 'mb1' }, 'update_media_buy')).toMatchObject({
      status: 'failed',
    });
  });
});

describe('calls.md §1.4: null is as good as absent', () => {
  const DATA = { media_buy_id: 'mb1', packages: [{ note: null }] };

  it.each([
    [{ ...DATA, adcp_error: null }],
    [{ ...DATA, error: null, errors: null, isError: null, status: null, task_id: null }],
    [{ ...DATA, replayed: true }],
    [{ structuredContent: { ...DATA, proto_error: null } }],
  ])('%j is completed', (answer) => {
    expect(refusalIn(answer, 'create_media_buy')).toBeUndefined();
    expect(answerIn(answer, 'create_media_buy')).toEqual({ status: 'completed', data: DATA });
  });

  it.each([
    { status: 'submitted', task_id: 't1', adcp_error: null, errors: null },
    { status: 'submitted', task_id: 't1', result: null, replayed: true },
  ])('%j is begun', (answer) => {
    const read = answerIn(answer, 'create_media_buy');
    expect([read.status, read.taskId, read.data]).toEqual(['submitted', 't1', undefined]);
  });

  it.each([
    {},
    { context: {} },
    { message: 'soon' },
    { adcp_error: null, errors: [] },
    { media_buy_id: null },
  ])('%j has no part of a result', (answer) => {
    const invalid = expect.objectContaining({ code: 'answer_invalid' }) as Error;
    expect(() => answerIn(answer, 'sync_creatives')).toThrow(invalid);
  });
});

describe('errors that stand elsewhere', () => {
  const conflict = { data: { adcp_error: { code: 'CONFLICT', message: 'm' } } };
  const failedTask = (artifact: readonly object[], message: readonly object[]): object => ({
    id: 't',
    status: { state: 'failed', message: { parts: message } },
    artifacts: [{ parts: artifact }],
  });

  it.each([
    ['before the last part of the artifact', failedTask([conflict, { data: { n: 1 } }], [])],
    ['in the message beside an artifact', failedTask([{ data: { n: 1 } }], [conflict])],
  ])('in a Task: %s', (_, answer) => {
    expect(refusalIn(answer)).toMatchObject({ code: 'CONFLICT', recovery: 'transient' });
  });

  it('in a Task: warnings of another part are none', () => {
    const warning = { data: { errors: [{ code: 'CONFLICT', message: 'm' }] } };
    expect(refusalIn(failedTask([warning, { data: { n: 1 } }], []))).toBeUndefined();
  });

  const error = { code: 'BUDGET_TOO_LOW', message: 'at least 500', recovery: 'correctable' };
  const text = (value: object) => ({ type: 'text', text: JSON.stringify(value) });

  it.each([
    ['beside an empty structure', { structuredContent: {}, content: [text({ adcp_error: error })] }],
    ['beside a structure', { structuredContent: { note: 1 }, content: [text({ errors: [error] })] }],
    ['behind another object', { content: [text({ note: 1 }), text({ adcp_error: error })] }],
  ])('in a text of a failed tool, %s', (_where, result) => {
    const refusal = refusalIn({ isError: true, ...result }, 'create_media_buy');
    expect(refusal).toMatchObject({ code: 'BUDGET_TOO_LOW', recovery: 'correctable' });
    expect(refusalIn(result, 'create_media_buy')).toBeUndefined();
  });

  it('in members of what a client throws: all of them count', () => {
    const thrown = (members: object): Error => Object.assign(new Error('slower'), members);
    const code = 'RATE_LIMITED';
    expect(refusalIn(thrown({ code, retry_after: 4 }))).toMatchObject({ code, retryAfterMs: 4000 });
    const own = { code: 'OURS', recovery: 'transient', retry_after: 4, field: 'f' };
    const cause = thrown(own);
    expect(refusalIn(cause)).toMatchObject({ code: 'OURS', recovery: 'transient', field: 'f', cause });
    expect(refusalIn(thrown({ code: 'RATE_LIMITED', recovery: 'terminal' }))?.recovery).toBe('terminal');
    for (const other of [{ code: 'ECONNRESET' }, { code: 'OURS' }, { code: 'OURS', recovery: 'later' }])
      expect(refusalIn(thrown(other))).toBeUndefined();
  });
});

describe('begun work is no result', () => {
  const TYPES = ['create_media_buy', 'sync_creatives'];

  it.each([
    { kind: 'task', id: 'a', status: { state: 'unknown' } },
    { task: { id: 'a', status: { state: 'TASK_STATE_UNSPECIFIED' } } },
    { result: { task: { id: 'a', status: { state: 'queued' } } } },
    { jsonrpc: '2.0', id: 1, result: { id: 'a', status: { state: 'queued' } } },
    { status: 'queued', task_id: 't', eta: 'soon' },
    { status: 'Working', task_id: 't', progress: 5 },
    { status: 'SUBMITTED', task_id: 't', creatives: [] },
    { status: 7, task_id: 't', creatives: [] },
  ])('%j', (answer) => {
    for (const type of TYPES)
      expect(() => answerIn(answer, type)).toThrow(expect.objectContaining({ code: 'answer_invalid' }));
  });

  it('and what stands in any answer is no data of a completion', () => {
    const envelope = { adcp_version: '3.1', context_id: 'c', timestamp: 'now', ext: {}, errors: [] };
    const inside = (data: object): object => ({
      id: 'call-1',
      status: { state: 'completed' },
      artifacts: [{ parts: [{ data }] }],
    });
    for (const type of TYPES) {
      const done = { status: 'completed', task_id: 't' };
      expect(answerIn({ ...done, ...envelope }, type)).toEqual({ status: 'completed', taskId: 't' });
      const { data, ...told } = answerIn(inside({ ...done, ...envelope }), type);
      expect([told, data]).toEqual([{ status: 'completed', taskId: 't', replaces: 'call-1' }, undefined]);
      expect(answerIn({ ...done, ...envelope, creatives: [] }, type).data).toMatchObject({ creatives: [] });
    }
    const failed = { status: 'failed', task_id: 't', errors: [{ message: 'm' }] };
    expect(answerIn(failed, 'sync_creatives').data).toEqual({ errors: [{ message: 'm' }] });
  });
});
