import { describe, expect, it } from 'vitest';
import {
  answerIn,
  callRefusalIn,
  isFinal,
  refusalIn,
  SellerError,
  taskUnknownIn,
} from '../../src/registrations/answer.ts';

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
    expect(() => answerIn(answer, 'create_media_buy')).toThrow(`(${said}): whether`);
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
    expect([answered.code, isFinal(answered)]).toEqual([code, true]);
    const thrown = Object.assign(new Error('because'), { code });
    expect(refusalIn(thrown)).toMatchObject({ code, message: answered.message, cause: thrown });
    expect(refusalIn(answered)).toBe(answered);
  });

  it('in a task that failed at once is one of a call, where operations have the code', () => {
    const failed = (state: string, code: string): object => ({
      id: 't',
      status: { state, message: { parts: [{ data: { error: { code, message: 'because' } } }] } },
    });
    const refusal = callRefusalIn(failed('TASK_STATE_REJECTED', 'INVALID_REQUEST'), 'create_media_buy');
    expect(refusal).toMatchObject({ code: 'INVALID_REQUEST' });
    expect(callRefusalIn(failed('failed', 'BUDGET_TOO_LOW'), 'create_media_buy')).toBeUndefined();
    expect(callRefusalIn(failed('working', 'INVALID_REQUEST'), 'create_media_buy')).toBeUndefined();
    expect(refusalIn(failed('failed', 'INVALID_REQUEST'))).toBeUndefined();
    expect(callRefusalIn({ error: { code: 'LATE' } }, 'create_media_buy')).toMatchObject({ code: 'LATE' });
    // Over the tool transport a failed task says so itself.
    expect(
      callRefusalIn({ status: 'failed', error: { code: 'INVALID_REQUEST' } }, 'create_media_buy'),
    ).toBeUndefined();
  });

  it.each([
    [{ adcp_error: { code: 'INVALID_REQUEST', message: 'no push' } }],
    [{ errors: [{ code: 'SLOW_DOWN' }, { code: 'INVALID_REQUEST', message: 'no push' }] }],
    [{ isError: true, structuredContent: { adcp_error: { code: 'INVALID_REQUEST', message: 'no push' } } }],
  ])('is one of a call in any member, where there is no result: %j', (answer) => {
    const refusal = callRefusalIn(answer, 'create_media_buy');
    expect(refusal).toMatchObject({ code: 'INVALID_REQUEST' });
    expect(refusal?.message).toContain('INVALID_REQUEST: no push');
  });

  it('beside a result is none', () => {
    const errors = [{ code: 'INVALID_REQUEST', message: 'one of the packages' }];
    expect(callRefusalIn({ media_buy_id: 'mb-1', errors }, 'create_media_buy')).toBeUndefined();
    expect(callRefusalIn({ errors: [{ code: 'SLOW_DOWN' }] }, 'create_media_buy')).toBeUndefined();
  });

  it('of another code is one that may pass', () => {
    const refusal = refusalIn({ error: { code: 'RATE_LIMITED' } }) ?? expect.fail('refused');
    expect([refusal.code, refusal.message, isFinal(refusal)]).toEqual([
      'RATE_LIMITED',
      'The seller answers RATE_LIMITED.',
      false,
    ]);
    // An error of the network says nothing of the seller's.
    expect(refusalIn(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))).toBeUndefined();
    expect(refusalIn(Object.assign(new Error('x'), { code: '__proto__' }))).toBeUndefined();
  });

  it('repeats no more than a line of what the seller said', () => {
    const refusal = refusalIn({ error: { code: 'C'.repeat(9000), message: 'm'.repeat(9000) } });
    expect(refusal?.message.length).toBeLessThan(700);
  });
});
