import { normaliseState, taskStatus } from '../events/status.ts';
import type { SellerAnswer } from './operation.ts';

/** Codes of the errors that operations answer. */
export type SellerErrorCode =
  'AUTH_REQUIRED' | 'AUTH_INVALID' | 'INSUFFICIENT_PERMISSIONS' | 'INVALID_REQUEST' | 'IDEMPOTENCY_CONFLICT';

/** What to do about each. */
const ADVICE: Record<SellerErrorCode, string> = {
  AUTH_REQUIRED: 'Send a bearer token in the transport: auth: { type: bearer, token }.',
  AUTH_INVALID: 'Get a new token from the seller: this one is wrong, or has expired.',
  INSUFFICIENT_PERMISSIONS: 'Ask the seller for the permission that this operation needs.',
  INVALID_REQUEST: 'Compare the arguments with what the seller says of the operation.',
  IDEMPOTENCY_CONFLICT:
    'The same request key came with other arguments: create another registration for them.',
};

/** A seller has refused a call. */
export class SellerError extends Error {
  override readonly name = 'SellerError';
  /** One of `SellerErrorCode`, or whatever the seller says. */
  readonly code: string;

  /** @param said the seller's own words. */
  constructor(code: string, said: string, options?: ErrorOptions) {
    const advice = isKnown(code) ? ` ${ADVICE[code]}` : '';
    super(`The seller answers ${code}${said === '' ? '' : `: ${said}`}.${advice}`, options);
    this.code = code;
  }
}

/** Whether a refusal is for good: the call was understood, and nothing has come of it. */
export function isFinal({ code }: SellerError): boolean {
  return isKnown(code);
}

function isKnown(code: string): code is SellerErrorCode {
  return Object.hasOwn(ADVICE, code);
}

type Members = Readonly<Record<string, unknown>>;

const membersOf = (value: unknown): Members =>
  typeof value === 'object' && value !== null ? (value as Members) : {};

const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** Of the seller's words so many characters are repeated. */
const MOST_SAID = 300;

/**
 * The refusal that an answer is, `{ error: { code, message } }`, or that a client threw with a code of `SellerErrorCode`. A
 * task that has failed is none.
 */
export function refusalIn(answer: unknown): SellerError | undefined {
  if (answer instanceof SellerError) return answer;
  if (answer instanceof Error) {
    const { code } = membersOf(answer);
    const isRefusal = typeof code === 'string' && isKnown(code);
    return isRefusal
      ? new SellerError(code, answer.message.slice(0, MOST_SAID), { cause: answer })
      : undefined;
  }
  const { code, message } = membersOf(membersOf(answer)['error']);
  if (typeof code !== 'string' || statusIn(answer)) return undefined;
  return new SellerError(code.slice(0, MOST_SAID), (textIn(message) ?? '').slice(0, MOST_SAID));
}

/**
 * What a first answer says of the task: of the tool transport `{ status, task_id }`, of the agent transport a task, as it is
 * or under `result` or `task`. One that says nothing of a task is the result itself.
 */
export function answerIn(answer: unknown): SellerAnswer {
  return statusIn(answer) ?? { status: 'completed' };
}

function statusIn(answer: unknown): SellerAnswer | undefined {
  const outer = membersOf(answer);
  return taskIn(outer) ?? taskIn(membersOf(outer['result'])) ?? taskIn(membersOf(outer['task']));
}

function taskIn(given: Members): SellerAnswer | undefined {
  const state = textIn(membersOf(given['status'])['state']);
  const status = taskStatus(state === undefined ? textIn(given['status']) : normaliseState(state));
  if (status === undefined) return undefined;
  const taskId =
    state === undefined ? textIn(given['task_id']) : (textIn(given['taskId']) ?? textIn(given['id']));
  return { status, ...(taskId !== undefined && { taskId }) };
}
