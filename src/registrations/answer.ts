import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { textOf } from '../errors.ts';
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
  INVALID_REQUEST: 'Compare the arguments with what the seller documents for the operation.',
  IDEMPOTENCY_CONFLICT:
    'The same request key came with other arguments. Ask the seller what it has done by it before you create another registration.',
};

/** The longest text of a seller that is repeated in a message, characters. */
const MAX_SELLER_TEXT = 300;

/** A seller's words in a message of ours: short, and printable. */
export const sellerText = (text: string): string => printableText(text, MAX_SELLER_TEXT);

/** A seller has refused a call. */
export class SellerError extends Error {
  override readonly name = 'SellerError';
  /** One of `SellerErrorCode`, or a code of the seller's own. */
  readonly code: string;

  /** @param detail the seller's own message. */
  constructor(code: string, detail: string, options?: ErrorOptions) {
    const advice = isKnown(code) ? ` ${ADVICE[code]}` : '';
    super(`The seller answers ${reported({ code, message: detail })}.${advice}`, options);
    this.code = code;
  }
}

/** The status of a seller that is asked too often. */
export const TOO_MANY_REQUESTS = 429;

/** The seller is over its load or the caller's share, and has done nothing: the call is to be repeated. */
export class SellerBusyError extends Error {
  override readonly name = 'SellerBusyError';
  /** 429, or 503 with `Retry-After`. */
  readonly status: number;
  /** How long it asks to wait, ms. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, retryAfterMs: number | undefined) {
    const wait = retryAfterMs === undefined ? 'later' : `in ${retryAfterMs} ms`;
    super(`The seller answers ${status}: it is busy, and to be called again ${wait}.`);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The longest pause that a seller may ask for. Ms. */
export const LONGEST_PAUSE_MS = 86_400_000;

/** A time that a seller asks for, as it is obeyed: a day at most; undefined for what is none. */
export function waitMs(ms: unknown): number | undefined {
  return typeof ms === 'number' && ms > 0 ? Math.min(ms, LONGEST_PAUSE_MS) : undefined;
}

/** The seller does not know the task that it was asked about. How the task ended stays unknown. */
export class TaskUnknownError extends Error {
  override readonly name = 'TaskUnknownError';

  /** @param detail the seller's own message. */
  constructor(detail: string, options?: ErrorOptions) {
    super(`The seller does not know the task${detail === '' ? '' : `: ${sellerText(detail)}`}.`, options);
  }
}

/** Whether a refusal is final: the seller understood the call and did nothing. */
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
 * task that has failed is no refusal.
 */
export function refusalIn(raw: unknown): SellerError | undefined {
  const answer = unwrapped(raw);
  if (answer instanceof SellerError) return answer;
  if (answer instanceof Error) {
    const { code } = membersOf(answer);
    const isRefusal = typeof code === 'string' && isKnown(code);
    return isRefusal ? new SellerError(code, answer.message, { cause: answer }) : undefined;
  }
  const { code, message } = membersOf(membersOf(answer)['error']);
  if (typeof code !== 'string' || statusIn(answer)) return undefined;
  return new SellerError(code.slice(0, MAX_SELLER_TEXT), textIn(message) ?? '');
}

/** An error as sellers report it: of the operation, or of a tool. */
interface Reported {
  readonly code?: string;
  readonly message?: string;
}

const reported = ({ code = '', message = '' }: Reported): string =>
  [code, message]
    .filter((part) => part !== '')
    .map(sellerText)
    .join(': ');

/** Of a list the first few. */
const MOST_ERRORS = 3;

function errorsOf(value: unknown): readonly Reported[] {
  if (Array.isArray(value)) return value.slice(0, MOST_ERRORS).flatMap(errorsOf);
  const { code, message } =
    typeof value === 'string' ? { code: undefined, message: value } : membersOf(value);
  const error = { code: textIn(code) ?? '', message: textIn(message) ?? '' };
  return error.code === '' && error.message === '' ? [] : [error];
}

/** What an answer reports as errors: in a member for them, else in the texts of a tool's result. */
function errorsIn(raw: unknown): readonly Reported[] {
  const answer = membersOf(unwrapped(raw));
  const found = ERROR_MEMBERS.flatMap((name) => errorsOf(answer[name]));
  return found.length === 0 && isFailedTool(raw) ? errorsOf(textsOf(raw).join(' ')) : found;
}

/** The same as text; empty where there is nothing. */
export const errorTextIn = (raw: unknown): string => errorsIn(raw).map(reported).join('; ');

/** Whether a tool-transport client says that the tool itself has failed. */
export function isFailedTool(raw: unknown): boolean {
  return membersOf(raw)['isError'] === true;
}

/** Whether the object of a failed tool says what became of the operation; of any other nothing is known. */
export function isOutcome(answer: unknown): boolean {
  return (refusalIn(answer) ?? statusIn(answer)) !== undefined;
}

function textsOf(raw: unknown): readonly string[] {
  const { content } = membersOf(raw);
  return Array.isArray(content) ? content.flatMap((part) => textIn(membersOf(part)['text']) ?? []) : [];
}

/** Codes with which a tool answers that it does not know a task. */
const NO_TASK: ReadonlySet<string> = new Set(['TASK_NOT_FOUND', 'REFERENCE_NOT_FOUND', 'NOT_FOUND']);

/** The error of an answer that says that the seller does not know the task; undefined for any other answer. */
export function taskUnknownIn(answer: unknown): TaskUnknownError | undefined {
  const refusal = refusalIn(answer) ?? reportedIn(answer);
  return refusal && NO_TASK.has(refusal.code)
    ? new TaskUnknownError(refusal.message, { cause: refusal })
    : undefined;
}

/** The first error with a code that an answer without a task's status reports in whichever member. */
export const reportedIn = (answer: unknown): SellerError | undefined =>
  statusIn(unwrapped(answer)) ? undefined : firstOf(answer, (code) => code !== '');

/** The first of the errors that an answer reports which operations have. */
export const finalIn = (answer: unknown): SellerError | undefined => firstOf(answer, isKnown);

function firstOf(answer: unknown, which: (code: string) => boolean): SellerError | undefined {
  const { code, message } = errorsIn(answer).find((error) => which(error.code ?? '')) ?? {};
  return code === undefined ? undefined : new SellerError(code.slice(0, MAX_SELLER_TEXT), message ?? '');
}

const FAILED: ReadonlySet<string> = new Set<TaskStatus>(['failed', 'rejected']);

/**
 * The refusal of a call: as `refusalIn`; or one of the errors that operations have, in whichever member, where the answer is not a
 * result, or is an agent's task that failed or was rejected at once: an agent answers nearly everything by a task.
 */
export function callRefusalIn(answer: unknown, taskType: string): SellerError | undefined {
  const refusal = refusalIn(answer);
  if (refusal) return refusal;
  const failed = layersOf(answer).find((layer) => FAILED.has(stateOf(layer['status']) ?? ''));
  const found = failed && refusalIn(agentResult(failed));
  if (found) return isFinal(found) ? found : undefined;
  return isResult(answer, taskType) ? undefined : finalIn(answer);
}

/** Whether an answer tells of a task, or is the result itself. */
function isResult(raw: unknown, taskType: string): boolean {
  const answer = unwrapped(raw);
  return statusIn(answer) !== undefined || notAResult(raw, answer, taskType) === undefined;
}

/** The object in the result of a tool-transport client, or in an agent's message; any other answer unchanged. */
export function unwrapped(answer: unknown): unknown {
  const { structuredContent } = membersOf(answer);
  if (typeof structuredContent === 'object' && structuredContent !== null) return structuredContent;
  const layers = layersOf(answer);
  const message = [...layers, ...layers.map((layer) => membersOf(layer['message']))].find(isMessage);
  return message ? (dataParts(message)[0] ?? message) : answer;
}

/** A message of the agent transport, which is no result itself. */
function isMessage(layer: Members): boolean {
  return textIn(layer['messageId']) !== undefined && partsOf(layer).length > 0;
}

/** Where the agent transport puts a task or a message: version 1.0 puts it in a member, and a client may return the whole answer. */
function layersOf(answer: unknown): readonly Members[] {
  const outer = membersOf(answer);
  const result = membersOf(outer['result']);
  return [outer, result, membersOf(outer['task']), membersOf(result['task'])];
}

/**
 * The task in a first answer: of the tool transport `{ status, task_id }`, of the agent transport a task, as it is
 * or under `result` or `task`. An object without a task is the result itself; a status in it that is no task's is one of the
 * result, which has to be there then: of a media buy its id.
 * @throws RegistrationError `answer_invalid` for anything else: whether the operation was done is then not known.
 */
export function answerIn(raw: unknown, taskType: string): SellerAnswer {
  const answer = unwrapped(raw);
  const found = statusIn(answer);
  if (found) return withinBounds(found);
  const reason = notAResult(raw, answer, taskType);
  if (reason === undefined) return { status: 'completed', data: answer };
  const said = errorTextIn(raw);
  throw new RegistrationError(
    'answer_invalid',
    `The answer ${reason}${said === '' ? '' : ` (${said})`}: whether the operation was done is not known, and the call is repeated. Pass the object that the operation answered.`,
  );
}

/** The length limit of a webhook's task id, applied to an answer. */
function withinBounds(answer: SellerAnswer): SellerAnswer {
  const length = answer.taskId?.length ?? 0;
  if (length <= MAX_TEXT) return answer;
  throw new RegistrationError(
    'answer_invalid',
    `The answer has a task_id of ${length} characters, the limit is ${MAX_TEXT}: report it to the seller. The call is repeated.`,
  );
}

/** Members with which operations report errors. */
const ERROR_MEMBERS = ['error', 'proto_error', 'adcp_error', 'errors'] as const;
/** Those, and of transports, that are in no result. */
const FAILURES = ['error', 'proto_error', 'adcp_error', 'isError'] as const;

/** Why an answer without a known status cannot be the result of the operation. */
function notAResult(raw: unknown, answer: unknown, taskType: string): string | undefined {
  const prototype: unknown =
    typeof answer === 'object' && answer !== null ? Object.getPrototypeOf(answer) : undefined;
  if (prototype !== null && prototype !== Object.prototype) return 'is not a plain object';
  const members = membersOf(answer);
  if (isFailedTool(raw)) return 'is an error';
  const failure = FAILURES.find((name) => members[name] !== undefined && members[name] !== false);
  if (failure !== undefined) return `has a member ${failure}`;
  const wrong = wrongStatus(members, taskType);
  if (wrong !== undefined) return wrong;
  const names = Object.keys(members).filter((name) => name !== 'context');
  if (names.length === 1 && names[0] === 'errors') return 'has errors alone';
  if (isMessage(members)) return "is an agent's message without a data part";
  return 'content' in members
    ? 'is the result of a tool-transport client without structuredContent'
    : undefined;
}

/** Of a status that is not a task's: without a task it is one of the result, a media buy's say, which has to be there. */
function wrongStatus(members: Members, taskType: string): string | undefined {
  if (textIn(members['task_id']) !== undefined) return 'has a task without a known status';
  const { status } = members;
  const hasResult = taskType.endsWith('media_buy')
    ? textIn(members['media_buy_id']) !== undefined
    : Object.keys(members).some((name) => !BESIDE.has(name) && name !== 'errors');
  return status === undefined || hasResult
    ? undefined
    : `has a status that is not a task's (${sellerText(textOf(status))}), and nothing of the result`;
}

function statusIn(answer: unknown): SellerAnswer | undefined {
  for (const layer of layersOf(answer)) {
    const found = taskIn(layer);
    if (found) return found;
  }
  return undefined;
}

function taskIn(body: Members): SellerAnswer | undefined {
  const state = stateOf(body['status']);
  const status = taskStatus(state ?? textIn(body['status']));
  if (status === undefined) return undefined;
  const taskId =
    state === undefined ? textIn(body['task_id']) : (textIn(body['taskId']) ?? textIn(body['id']));
  const data = state === undefined ? toolResult(body) : agentResult(body);
  return { status, ...(taskId !== undefined && { taskId }), ...(data !== undefined && { data }) };
}

/** Members of an answer that are not part of a result without a member of its own. */
const BESIDE: ReadonlySet<string> = new Set(['status', 'task_id', 'context', 'message']);

function toolResult(body: Members): unknown {
  if (Object.hasOwn(body, 'result')) return body['result'];
  const members = Object.entries(body).filter(([name]) => !BESIDE.has(name));
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/** As of a webhook of the agent transport. */
function agentResult(body: Members): unknown {
  return agentData({ form: 'task', body }).data;
}
