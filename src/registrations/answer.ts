import { MAX_TEXT } from '../codec/printable.ts';
import { agentData, dataParts, partsOf, stateOf } from '../events/agent-data.ts';
import type { TaskStatus } from '../events/event.ts';
import { taskStatus } from '../events/status.ts';
import { RegistrationError } from './errors.ts';
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

/** Of the seller's words so many characters are repeated. */
const MOST_SAID = 300;

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

/** The seller is over its load or the caller's share, and has done nothing: the call comes again. */
export class SellerBusyError extends Error {
  override readonly name = 'SellerBusyError';
  /** 429, or 503 with `Retry-After`. */
  readonly status: number;
  /** What it asks to wait, ms. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, retryAfterMs: number | undefined) {
    const wait = retryAfterMs === undefined ? 'later' : `in ${retryAfterMs} ms`;
    super(`The seller answers ${status}: it is busy, and to be called again ${wait}.`);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The seller does not know the task that it was asked about. That says nothing of how the task ended. */
export class TaskUnknownError extends Error {
  override readonly name = 'TaskUnknownError';

  /** @param said the seller's own words. */
  constructor(said: string, options?: ErrorOptions) {
    super(`The seller does not know the task${said === '' ? '' : `: ${said.slice(0, MOST_SAID)}`}.`, options);
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

/**
 * The refusal that an answer is, `{ error: { code, message } }`, or that a client threw with a code of `SellerErrorCode`. A
 * task that has failed is none.
 */
export function refusalIn(given: unknown): SellerError | undefined {
  const answer = unwrapped(given);
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

/** What a tool answers where the task that it was asked about is not there. */
const NO_TASK: ReadonlySet<string> = new Set(['TASK_NOT_FOUND', 'REFERENCE_NOT_FOUND', 'NOT_FOUND']);

/** That a seller does not know the task, where the answer to a question about one says so. */
export function taskUnknownIn(answer: unknown): TaskUnknownError | undefined {
  const refusal = refusalIn(answer);
  return refusal && NO_TASK.has(refusal.code)
    ? new TaskUnknownError(refusal.message, { cause: refusal })
    : undefined;
}

const FAILED: ReadonlySet<string> = new Set<TaskStatus>(['failed', 'rejected']);

/**
 * The refusal of a call: as `refusalIn`, or an agent's task that failed or was rejected at once with one of the errors that
 * operations have. An agent can hardly answer otherwise than by a task.
 */
export function callRefusalIn(answer: unknown): SellerError | undefined {
  const refusal = refusalIn(answer);
  if (refusal) return refusal;
  const failed = layersOf(answer).find((layer) => FAILED.has(stateOf(layer['status']) ?? ''));
  const found = failed && refusalIn(agentResult(failed));
  return found && isFinal(found) ? found : undefined;
}

/** Of what a client of the tool transport gives, and of an agent's message, the object in it. */
export function unwrapped(answer: unknown): unknown {
  const { structuredContent } = membersOf(answer);
  if (typeof structuredContent === 'object' && structuredContent !== null) return structuredContent;
  const layers = layersOf(answer);
  const message = [...layers, ...layers.map((layer) => membersOf(layer['message']))].find(isMessage);
  return message ? (dataParts(message)[0] ?? message) : answer;
}

/** Also what is around a message of the agent transport is no result. */
function isMessage(layer: Members): boolean {
  return textIn(layer['messageId']) !== undefined && partsOf(layer).length > 0;
}

/** Where the agent transport puts a task or a message: version 1.0 names it, and a client may show the whole answer. */
function layersOf(answer: unknown): readonly Members[] {
  const outer = membersOf(answer);
  const result = membersOf(outer['result']);
  return [outer, result, membersOf(outer['task']), membersOf(result['task'])];
}

/**
 * What a first answer says of the task: of the tool transport `{ status, task_id }`, of the agent transport a task, as it is
 * or under `result` or `task`. An object that says nothing of a task is the result itself.
 * @throws RegistrationError `answer_invalid` for what is no answer of an operation: whether it was done is not known.
 */
export function answerIn(given: unknown): SellerAnswer {
  const answer = unwrapped(given);
  const found = statusIn(answer);
  if (found) return withinBounds(found);
  const reason = notAResult(given, answer);
  if (reason === undefined) return { status: 'completed', data: answer };
  throw new RegistrationError(
    'answer_invalid',
    `The answer ${reason}: whether the operation was done is not known, and it stays to be repeated. Give the object that the operation answered.`,
  );
}

/** Of a task's id so much is shown of a webhook's too. */
function withinBounds(answer: SellerAnswer): SellerAnswer {
  const length = answer.taskId?.length ?? 0;
  if (length <= MAX_TEXT) return answer;
  throw new RegistrationError(
    'answer_invalid',
    `The answer has a task_id of ${length} characters, at most ${MAX_TEXT} are kept: tell the seller. The operation stays to be repeated.`,
  );
}

/** Members by which transports and operations say that something has failed. */
const FAILURES = ['error', 'adcp_error', 'isError'] as const;

/** Why an answer without a status that is known cannot be the result. */
function notAResult(given: unknown, answer: unknown): string | undefined {
  const prototype: unknown =
    typeof answer === 'object' && answer !== null ? Object.getPrototypeOf(answer) : undefined;
  if (prototype !== null && prototype !== Object.prototype) return 'is not a plain object';
  const members = membersOf(answer);
  if (membersOf(given)['isError'] === true) return 'is an error';
  const failure = FAILURES.find((name) => members[name] !== undefined && members[name] !== false);
  if (failure !== undefined) return `has a member ${failure} that is not understood`;
  // Without a task, status is a word of the result: a media buy has one of its own.
  if (textIn(members['task_id']) !== undefined) return 'has a task without a status that is known';
  const names = Object.keys(members).filter((name) => name !== 'context');
  if (names.length === 1 && names[0] === 'errors') return 'has errors alone';
  if (isMessage(members)) return "is an agent's message without a data part";
  return 'content' in members ? 'is of a client, without structuredContent' : undefined;
}

function statusIn(answer: unknown): SellerAnswer | undefined {
  for (const layer of layersOf(answer)) {
    const found = taskIn(layer);
    if (found) return found;
  }
  return undefined;
}

function taskIn(given: Members): SellerAnswer | undefined {
  const state = stateOf(given['status']);
  const status = taskStatus(state ?? textIn(given['status']));
  if (status === undefined) return undefined;
  const taskId =
    state === undefined ? textIn(given['task_id']) : (textIn(given['taskId']) ?? textIn(given['id']));
  const data = state === undefined ? toolResult(given) : agentResult(given);
  return { status, ...(taskId !== undefined && { taskId }), ...(data !== undefined && { data }) };
}

/** Members that an answer has beside a result that is not in a member of its own. */
const BESIDE: ReadonlySet<string> = new Set(['status', 'task_id', 'context', 'message']);

function toolResult(given: Members): unknown {
  if (Object.hasOwn(given, 'result')) return given['result'];
  const members = Object.entries(given).filter(([name]) => !BESIDE.has(name));
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/** As of a webhook of the agent transport. */
function agentResult(given: Members): unknown {
  return agentData({ form: 'task', body: given }).data;
}
