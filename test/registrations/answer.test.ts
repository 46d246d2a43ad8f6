import { describe, expect, it } from 'vitest';
import { answerIn, callRefusalIn, isFinal, refusalIn, SellerError } from '../../src/registrations/answer.ts';

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
    expect(answerIn(answer)).toEqual(expected);
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
    { status: 'bogus', task_id: 't' },
    { isError: true, content: [] },
    { messageId: 'm', role: 'agent', parts: [{ kind: 'text', text: 'done' }] },
    { content: [{ type: 'text', text: '{"status":"submitted"}' }] },
  ])('%s ends nothing', (answer) => {
    expect(() => answerIn(answer)).toThrow(expect.objectContaining({ code: 'answer_invalid' }));
  });

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
    const refusal = callRefusalIn(failed('TASK_STATE_REJECTED', 'INVALID_REQUEST'));
    expect(refusal).toMatchObject({ code: 'INVALID_REQUEST' });
    expect(callRefusalIn(failed('failed', 'BUDGET_TOO_LOW'))).toBeUndefined();
    expect(callRefusalIn(failed('working', 'INVALID_REQUEST'))).toBeUndefined();
    expect(refusalIn(failed('failed', 'INVALID_REQUEST'))).toBeUndefined();
    expect(callRefusalIn({ error: { code: 'LATE' } })).toMatchObject({ code: 'LATE' });
    // Over the tool transport a failed task says so itself.
    expect(callRefusalIn({ status: 'failed', error: { code: 'INVALID_REQUEST' } })).toBeUndefined();
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
