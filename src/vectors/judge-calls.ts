// Judges vectors (test cases) about clients of sellers: data and errors in answers, redirects, secrets. The judge of
// all vectors, judge.ts, calls this.
import { canonicalJson } from '../codec/canonical-json.ts';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { recoveryMember, type Recovery } from '../events/error-codes.ts';
import { retryAfterMsIn } from '../events/error-object.ts';
import { sellerText } from '../registrations/seller-error.ts';
import type { AnswerCase, ErrorAction, ErrorCase, RedirectsCase, SecretCase } from './vector-case.ts';
import type { AnswerError, Subject } from './subject.ts';

/** The result of judging a vector: passed or failed, with the expected and the actual result in words. */
export interface Judgement {
  readonly passed: boolean;
  readonly expected: string;
  readonly actual: string;
  readonly detail?: string;
  readonly notes?: readonly string[];
}

export const sameData = (a: unknown, b: unknown): boolean =>
  canonicalJson(a ?? null) === canonicalJson(b ?? null);

const shown = (value: unknown): string => JSON.stringify(value ?? null);

/** Judges if the subject (the implementation under test) reads the data that a vector expects from an answer. */
export async function judgeAnswer(
  { response, transport, data, error }: AnswerCase,
  answerData: NonNullable<Subject['answerData']>,
): Promise<Judgement> {
  const actual = await answerData(response, transport);
  const words = (value: unknown, type: string | null | undefined): string =>
    `data ${shown(value)}${type === undefined ? '' : `, error ${type ?? 'none'}`}`;
  const told = error === undefined ? undefined : (actual.error ?? null);
  return {
    passed: sameData(data, actual.data) && (error === undefined || error === told),
    expected: words(data, error),
    actual: words(actual.data, told),
  };
}

const ACTIONS: Readonly<Record<Recovery, ErrorAction>> = {
  transient: 'retry',
  correctable: 'surface_to_caller',
  terminal: 'escalate_to_human',
};

const actionOf = (error: AnswerError | undefined): ErrorAction =>
  error === undefined ? 'generic_error' : ACTIONS[error.recovery];

type Compared = readonly [name: string, expected: unknown, actual: unknown];

/**
 * Returns the members of an error that are compared: the members that the vector names and the subject (the
 * implementation under test) reports.
 */
function membersOf(expected: JsonObject, actual: AnswerError): readonly Compared[] {
  const { message } = expected;
  const isTold = typeof message === 'string' && actual.message?.includes(sellerText(message)) === true;
  const all: readonly Compared[] = [
    ['code', expected['code'], actual.code ?? null],
    ['message', message, isTold ? message : actual.message],
    ['recovery', recoveryMember(expected['recovery']), actual.recovery],
    ['field', expected['field'], actual.field],
    ['details', expected['details'], actual.details],
    ['retry_after', secondsOf(retryAfterMsIn(expected)), secondsOf(actual.retryAfterMs)],
  ];
  return all.filter(([, wanted, got]) => wanted !== undefined && wanted !== null && got !== undefined);
}

const secondsOf = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000);

function differences({ error, action }: ErrorCase, actual: AnswerError | undefined): readonly string[] {
  const found: string[] = [];
  if (error === null && actual) found.push(`error: expected none, got ${actual.code ?? actual.recovery}`);
  if (error && !actual) found.push('error: expected one, got none');
  const compared = error && actual ? membersOf(error, actual) : [];
  const all: readonly Compared[] =
    action === undefined ? compared : [...compared, ['action', action, actionOf(actual)]];
  for (const [name, wanted, got] of all) {
    if (!sameData(wanted, got)) found.push(`${name}: expected ${shown(wanted)}, got ${shown(got)}`);
  }
  return found;
}

/**
 * Judges if the subject (the implementation under test) finds the error that a vector expects, and reacts to it as
 * expected.
 */
export async function judgeError(
  vector: ErrorCase,
  answerError: NonNullable<Subject['answerError']>,
): Promise<Judgement> {
  const { response, transport, error, action } = vector;
  const actual = await answerError(response, transport);
  const found = differences(vector, actual);
  const words = (code: unknown, act: string | undefined): string =>
    [typeof code === 'string' ? code : 'no code', act].filter((word) => word !== undefined).join(', ');
  return {
    passed: found.length === 0,
    expected: words(isJsonObject(error) ? error['code'] : undefined, action),
    actual: words(actual?.code, actionOf(actual)),
    ...(found.length > 0 && { detail: found.join('\n') }),
  };
}

const sameUrl = (a: string, b: string): boolean =>
  URL.canParse(a) && URL.canParse(b) ? new URL(a).href === new URL(b).href : a === b;

/**
 * Judges if the subject (the implementation under test) finds a redirected document at the expected URL, or refuses it
 * as expected.
 */
export async function judgeRedirects(
  { target, url, redirects, expected }: RedirectsCase,
  discover: NonNullable<Subject['discover']>,
): Promise<Judgement> {
  const actual = await discover({ target, url, redirects });
  const { finalUrl } = expected.refused ? { finalUrl: undefined } : expected;
  const isPlace = actual.ok && (finalUrl === undefined || sameUrl(finalUrl, actual.url));
  return {
    passed: expected.refused ? !actual.ok : isPlace,
    expected: expected.refused
      ? `refused${expected.why === undefined ? '' : `, ${expected.why}`}`
      : (finalUrl ?? 'the document'),
    actual: actual.ok ? actual.url : `refused, ${actual.reason}`,
  };
}

/** Judges if a receiver refuses the vector's secret in its configuration. */
export function judgeSecret(
  { secret }: SecretCase,
  takesSecret: NonNullable<Subject['takesSecret']>,
): Judgement {
  const taken = takesSecret(secret);
  return { passed: !taken, expected: 'refused', actual: taken ? 'taken' : 'refused' };
}
