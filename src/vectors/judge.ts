// Judges one vector (test case): sends its requests to the subject (the implementation under test), and compares the
// answers with the expected ones. `runVectors` calls this for each vector.
import type {
  CanonicalizationCase,
  DeliveryCase,
  Expectation,
  ExtractionCase,
  VectorCase,
  VectorKind,
} from './vector-case.ts';
import {
  judgeAnswer,
  type Judgement,
  judgeError,
  judgeRedirects,
  judgeSecret,
  sameData,
} from './judge-calls.ts';
import { transportNamed } from './shapes/calls.ts';
import type { SubjectAnswer, CanonicalUrl, OpenReceiver, Subject } from './subject.ts';

/** True for statuses that only an authentic delivery with a readable body gets. */
const isAuthentic = ({ status }: SubjectAnswer): boolean =>
  (status >= 200 && status < 300) || status === 400 || status === 409;

const isProved = (answer: SubjectAnswer): boolean =>
  isAuthentic(answer) || answer.code === 'webhook_body_malformed';

/** The 4xx statuses that ask the sender to try again. Such an answer is no verdict about the sender. */
const LATER: readonly number[] = [408, 425, 429];

/** Matches codes of 503 and 429 answers that do not judge the signature (verification.md §2.9a, §2.25, §4.12). */
const UNDECIDED = /_unavailable$|_revocation_stale$|_rate_abuse$|^webhook_target_uri_malformed$/;

const mayBeUndecided = ({ code, status = 0 }: Expectation): boolean =>
  status >= 500 || LATER.includes(status) || UNDECIDED.test(code ?? '');

/**
 * Returns `holds`, or a text if the answer (e.g. 503) decides nothing about the sender and the vector expects a
 * decision.
 */
function verdict(expected: Expectation, answer: SubjectAnswer, holds: boolean): boolean | string {
  const { status } = answer;
  const refuses = status >= 400 && status < 500 && !LATER.includes(status);
  return holds || refuses || mayBeUndecided(expected) ? holds : `undecided (${status})`;
}

interface Member {
  readonly name: string;
  readonly expected: (expected: Expectation) => unknown;
  /** Returns the actual value; undefined if the tested implementation does not report it: then it is not compared. */
  readonly actual: (answer: SubjectAnswer, expected: Expectation) => unknown;
}

/** The members of an answer that are compared. An absent code counts as null, because a refusal must have a code. */
const MEMBERS: readonly Member[] = [
  {
    name: 'authentic',
    expected: ({ authentic }) => authentic,
    actual: (answer, expected) => verdict(expected, answer, isAuthentic(answer)),
  },
  {
    name: 'proved',
    expected: ({ proved }) => proved,
    actual: (answer, expected) => verdict(expected, answer, isProved(answer)),
  },
  { name: 'status', expected: ({ status }) => status, actual: ({ status }) => status },
  { name: 'code', expected: ({ code }) => code, actual: ({ code }) => code ?? null },
  { name: 'kind', expected: ({ kind }) => kind, actual: ({ kind }) => kind },
  {
    name: 'www_authenticate',
    expected: ({ wwwAuthenticate }) => wwwAuthenticate,
    actual: ({ wwwAuthenticate }) => wwwAuthenticate,
  },
  { name: 'body', expected: ({ body }) => body, actual: ({ body }) => body },
  { name: 'sender', expected: ({ sender }) => sender, actual: ({ sender }) => sender },
  { name: 'handled', expected: ({ handled }) => handled, actual: ({ handled }) => handled },
  { name: 'changed', expected: ({ changed }) => changed, actual: ({ changed }) => changed },
  { name: 'reemission', expected: ({ reemission }) => reemission, actual: ({ reemission }) => reemission },
  {
    name: 'event kind',
    expected: ({ eventKind }) => eventKind,
    actual: ({ eventKind }) => eventKind,
  },
  { name: 'family', expected: ({ family }) => family, actual: ({ family }) => family },
  {
    name: 'warnings',
    expected: ({ warnings }) => warnings && [...warnings].sort().join(' '),
    actual: ({ warnings }) => warnings && [...warnings].sort().join(' '),
  },
];

/** Returns a line for each mismatch, or one line if the tested implementation reports none of the expected members. */
export function mismatches(expected: Expectation, answer: SubjectAnswer): readonly string[] {
  const members = MEMBERS.filter((member) => member.expected(expected) !== undefined);
  const told = members.filter((member) => member.actual(answer, expected) !== undefined);
  if (told.length === 0 && !toldCheck(expected, answer)) {
    const names = members.map(({ name }) => name).join(', ') || 'check';
    return [`the subject reports none of ${names}`];
  }
  return told.flatMap((member) => {
    const [wanted, got] = [member.expected(expected), member.actual(answer, expected)];
    return wanted === got ? [] : [differing(member.name, wanted, got)];
  });
}

const differing = (name: string, wanted: unknown, got: unknown): string =>
  `${name}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`;

const toldCheck = (expected: Expectation, answer: SubjectAnswer): boolean =>
  expected.check !== undefined && answer.check !== undefined;

/** Returns differences that do not fail the vector: the failed check's number, which differs between verifiers. */
function differences(expected: Expectation, answer: SubjectAnswer): readonly string[] {
  const [wanted, got] = [expected.check, answer.check];
  if (wanted === undefined || got === undefined || wanted === String(got).toLowerCase()) return [];
  return [`check: expected ${wanted}, got ${got}`];
}

/** Returns an answer in words, e.g. `401 webhook_signature_invalid (check 10)`. */
function summary(parts: {
  readonly status?: number | undefined;
  readonly code?: string | null | undefined;
  readonly kind?: string | undefined;
  readonly check?: string | number | undefined;
}): string {
  const { status, code, kind, check } = parts;
  const words = [status, code ?? kind].filter((word) => word !== undefined);
  return `${words.join(' ')}${check === undefined ? '' : ` (check ${check})`}`;
}

function describeExpectation(expected: Expectation): string {
  const text = summary(expected);
  if (text !== '') return text;
  return expected.authentic === false ? 'refused' : 'authentic';
}

function describeAnswer(answer: SubjectAnswer, expected: Expectation): string {
  // The number of the failed check is shown only if the vector expects one.
  const { status, code, kind, check } = answer;
  return summary({ status, code, kind, check: expected.check === undefined ? undefined : check });
}

/** The result of one conformance vector, as `runVectors` returns it: passed or failed, with both answers in words. */
export interface VectorResult {
  readonly name: string;
  /** The kind of vector. `unreadable`: the file, or a part of it, is not a vector of a known shape. */
  readonly kind: VectorKind | 'unreadable';
  readonly file: string;
  readonly passed: boolean;
  /** The expected result, in words. */
  readonly expected: string;
  /** The actual result, in words. */
  readonly actual: string;
  /** Details of a failure, in lines: the step, the members that differ, the two signature bases. */
  readonly detail?: string;
  /** Differences that do not make the vector fail, e.g. another number of the failed check. */
  readonly notes?: readonly string[];
}

const missing = (name: keyof Subject): TypeError => new TypeError(`the subject has no ${name}`);

const text = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value));

interface Judged extends Judgement {
  /** The answer to the last request. */
  readonly answer?: SubjectAnswer;
}

async function judgeSteps(vector: DeliveryCase, receiver: OpenReceiver): Promise<Judged> {
  let last: Judged = { passed: false, expected: 'a request', actual: 'nothing' };
  const notes: string[] = [];
  for (const { name, request, nowMs, handlerFails, expected } of vector.steps) {
    const answer = await receiver.deliver(request, { nowMs, handlerFails });
    const wrong = mismatches(expected, answer);
    const at = name === undefined ? '' : `${name}: `;
    notes.push(...differences(expected, answer).map((note) => at + note));
    last = {
      passed: wrong.length === 0,
      answer,
      expected: at + describeExpectation(expected),
      actual: at + describeAnswer(answer, expected),
      ...(wrong.length > 0 && { detail: wrong.join('\n') }),
      ...(notes.length > 0 && { notes }),
    };
    if (!last.passed) return last;
  }
  return last;
}

const encoder = new TextEncoder();

/** Returns the index of the first byte that differs, or the length of the shorter text if the other begins with it. */
function firstDifference(a: Uint8Array, b: Uint8Array): number {
  const at = a.findIndex((byte, i) => byte !== b[i]);
  return at < 0 ? a.length : at;
}

/** Returns the line of a text that contains the byte, counted from 0, and the column in characters. */
function placeOf(text: string, byte: number): { readonly line: number; readonly column: number } {
  const before = new TextDecoder().decode(encoder.encode(text).subarray(0, byte));
  const lines = before.split('\n');
  return { line: lines.length - 1, column: lines.at(-1)?.length ?? 0 };
}

const line = (label: string, text: string | undefined): string => `  ${label} | ${text ?? '(no such line)'}`;

/**
 * Returns a comparison of two signature bases by lines, with a mark at the first byte that differs; undefined if equal.
 */
export function compareBases(expected: string, actual: string | undefined): string | undefined {
  if (expected === actual) return undefined;
  if (actual === undefined)
    return [
      'signature base: none could be built',
      ...expected.split('\n').map((text) => line('expected', text)),
    ].join('\n');
  const at = firstDifference(encoder.encode(expected), encoder.encode(actual));
  const { line: marked, column } = placeOf(expected, at);
  const [wanted, got] = [expected.split('\n'), actual.split('\n')];
  const rows = Array.from({ length: Math.max(wanted.length, got.length) }, (_, i) => {
    if (wanted[i] === got[i] && i !== marked) return line('        ', wanted[i]);
    const mark = i === marked ? [`${' '.repeat('  expected | '.length + column)}^`] : [];
    return [line('expected', wanted[i]), line('actual  ', got[i]), ...mark].join('\n');
  });
  return [
    `signature base: first difference at byte ${at} (line ${marked + 1}, column ${column + 1})`,
    ...rows,
  ].join('\n');
}

/** The number of the check that builds the signature base (verification.md §2.10). */
const BASE_CHECK = 10;

/** True if the verifier builds the signature base: it accepts the request, or refuses it by check 10 or a later one. */
function reachesBase({ authentic, check }: Expectation, answer: SubjectAnswer | undefined): boolean {
  // Check `9a` does not count: this library makes it after check 10, but other verifiers may make it earlier.
  return authentic === true || Number(check ?? answer?.check) >= BASE_CHECK;
}

/** Returns the difference of the tested signature base from the vector's; undefined if none, or if not compared. */
function baseDifference(
  { signatureBase, steps: [first] }: DeliveryCase,
  subject: Subject,
  answer: SubjectAnswer | undefined,
): string | undefined {
  if (signatureBase === undefined || !subject.signatureBase || !first) return undefined;
  if (!reachesBase(first.expected, answer)) return undefined;
  const actual = subject.signatureBase(first.request);
  // Check 10 compares the hosts first. For a URL without a canonical form, it then builds no signature base.
  if (actual === undefined && first.expected.code === 'webhook_target_uri_malformed') return undefined;
  return compareBases(signatureBase, actual);
}

async function judgeDelivery(vector: DeliveryCase, subject: Subject): Promise<Judgement> {
  if (!subject.open) throw missing('open');
  const receiver = await subject.open(vector.setup);
  let judged: Judged;
  try {
    judged = await judgeSteps(vector, receiver);
  } finally {
    await receiver.close?.();
  }
  const { answer, ...verdict } = judged;
  const difference = baseDifference(vector, subject, answer);
  if (difference === undefined) return verdict;
  const detail = [verdict.detail, difference].filter((part) => part !== undefined).join('\n');
  return { ...verdict, passed: false, detail };
}

type TargetUri = NonNullable<Subject['targetUri']>;
type Canonical = { readonly form: CanonicalUrl } | { readonly refusal: unknown };

function canonical(targetUri: TargetUri, url: string): Canonical {
  try {
    return { form: targetUri(url) };
  } catch (refusal) {
    return { refusal };
  }
}

/** Returns the code of an error that the tested implementation threw, if the error has a code like this library's. */
function codeOf(refusal: unknown): string | undefined {
  const { code } = (refusal ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

function fitsForm(expected: CanonicalizationCase['expected'], actual: Canonical): boolean {
  if (expected.refused) {
    if (!('refusal' in actual)) return false;
    const code = codeOf(actual.refusal);
    return expected.code === undefined || code === undefined || expected.code === code;
  }
  if (!('form' in actual)) return false;
  const { targetUri, authority } = actual.form;
  return (expected.targetUri ?? targetUri) === targetUri && (expected.authority ?? authority) === authority;
}

/** Judges the canonical form that the tested implementation gives to a URL, or its refusal of the URL. */
function judgeForm({ url, expected }: CanonicalizationCase, targetUri: TargetUri): Judgement {
  const actual = canonical(targetUri, url);
  const words = (...parts: readonly (string | undefined)[]): string =>
    parts.filter((part) => part !== undefined).join(', authority ');
  const refused = (code: string | undefined): string => (code === undefined ? 'refused' : `refused, ${code}`);
  const passed = fitsForm(expected, actual);
  return {
    passed,
    expected: expected.refused ? refused(expected.code) : words(expected.targetUri, expected.authority),
    actual:
      'form' in actual
        ? words(actual.form.targetUri, actual.form.authority)
        : refused(expected.refused && expected.code !== undefined ? codeOf(actual.refusal) : undefined),
    ...(!passed && { detail: `url ${JSON.stringify(url)}` }),
  };
}

function judgeExtraction({ payload, format, data }: ExtractionCase, { extract }: Subject): Judgement {
  if (!extract) throw missing('extract');
  const actual = extract(payload);
  const formatFits =
    format === undefined ||
    (format === null ? undefined : (transportNamed(format) ?? format)) === actual.format;
  const dataFits = data === undefined || sameData(data.value, actual.data);
  return {
    passed: formatFits && dataFits,
    expected: `format ${text(format ?? undefined)}, data ${text(data?.value ?? undefined)}`,
    actual: `format ${text(actual.format)}, data ${text(actual.data)}`,
  };
}

/** For each kind of vector, the function that it needs of the tested implementation. */
const NEEDS: Readonly<Record<VectorCase['kind'], keyof Subject | undefined>> = {
  signature: 'open',
  hmac: 'open',
  bearer: 'open',
  envelope: 'open',
  sequence: 'open',
  canonicalization: 'targetUri',
  extraction: 'extract',
  answer: 'answerData',
  error: 'answerError',
  redirects: 'discover',
  secret: 'takesSecret',
  unreadable: undefined,
};

/** Returns the function that a vector needs and the tested implementation lacks; undefined if it lacks none. */
export function lacking({ kind }: VectorCase, subject: Subject): keyof Subject | undefined {
  const needed = NEEDS[kind];
  return needed === undefined || subject[needed] !== undefined ? undefined : needed;
}

type CallCase = Extract<VectorCase, { readonly kind: 'answer' | 'error' | 'redirects' | 'secret' }>;

async function judgeCall(vector: CallCase, subject: Subject): Promise<Judgement> {
  const { answerData, answerError, discover, takesSecret } = subject;
  if (vector.kind === 'answer' && answerData) return judgeAnswer(vector, answerData);
  if (vector.kind === 'error' && answerError) return judgeError(vector, answerError);
  if (vector.kind === 'redirects' && discover) return judgeRedirects(vector, discover);
  if (vector.kind === 'secret' && takesSecret) return judgeSecret(vector, takesSecret);
  throw missing(NEEDS[vector.kind] ?? 'open');
}

async function verdictOf(vector: VectorCase, subject: Subject): Promise<Judgement> {
  switch (vector.kind) {
    case 'unreadable':
      return { passed: false, expected: 'a vector', actual: vector.reason };
    case 'canonicalization':
      if (!subject.targetUri) throw missing('targetUri');
      return judgeForm(vector, subject.targetUri);
    case 'extraction':
      return judgeExtraction(vector, subject);
    case 'answer':
    case 'error':
    case 'redirects':
    case 'secret':
      return judgeCall(vector, subject);
    case 'signature':
    case 'hmac':
    case 'bearer':
    case 'envelope':
    case 'sequence':
      return judgeDelivery(vector, subject);
  }
}

/** Runs one vector. If the tested implementation throws an error, the vector fails, with the error as `actual`. */
export async function judge(vector: VectorCase, subject: Subject): Promise<VectorResult> {
  const { name, kind, file } = vector;
  try {
    return { name, kind, file, ...(await verdictOf(vector, subject)) };
  } catch (error) {
    return { name, kind, file, passed: false, expected: 'an answer', actual: `threw ${String(error)}` };
  }
}
