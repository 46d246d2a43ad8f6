import { canonicalJson } from '../codec/canonical-json.ts';
import type {
  CanonicalizationCase,
  DeliveryCase,
  Expectation,
  ExtractionCase,
  VectorCase,
  VectorKind,
} from './case.ts';
import { describeAnswer, describeExpectation, differences, mismatches } from './answer.ts';
import type { Answer, CanonicalUrl, OpenReceiver, Subject } from './subject.ts';

/** How one vector ended. */
export interface VectorResult {
  readonly name: string;
  /** `unreadable`: the file, or its part, is no vector of a known shape. */
  readonly kind: VectorKind | 'unreadable';
  readonly file: string;
  readonly passed: boolean;
  /** What the vector says must come, in words. */
  readonly expected: string;
  /** What came. */
  readonly actual: string;
  /** More of a failure, in lines: which step, which members, the two signature bases. */
  readonly detail?: string;
  /** What differs and decides nothing: the number of the check. */
  readonly notes?: readonly string[];
}

const missing = (name: keyof Subject): TypeError => new TypeError(`the subject has no ${name}`);

type Verdict = Pick<VectorResult, 'passed' | 'expected' | 'actual' | 'detail' | 'notes'>;

const text = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value));

interface Judged extends Verdict {
  /** To the last request. */
  readonly answer?: Answer;
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

/** Index of the first byte in which two texts differ; their length where one is the start of the other. */
function firstDifference(a: Uint8Array, b: Uint8Array): number {
  const at = a.findIndex((byte, i) => byte !== b[i]);
  return at < 0 ? a.length : at;
}

/** The line of a text that holds a byte, counted from 0, and the column in characters. */
function placeOf(text: string, byte: number): { readonly line: number; readonly column: number } {
  const before = new TextDecoder().decode(encoder.encode(text).subarray(0, byte));
  const lines = before.split('\n');
  return { line: lines.length - 1, column: lines.at(-1)?.length ?? 0 };
}

const line = (label: string, text: string | undefined): string => `  ${label} | ${text ?? '(no such line)'}`;

/**
 * Two signature bases line by line, with a mark under the first byte that differs.
 * @param actual undefined where none could be built.
 * @returns undefined where they are the same.
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

/** The check that builds the base (verification.md §2.10). */
const BASE_CHECK = 10;

/** Whether the verifier of a vector gets as far as its base: where it verifies, or where a later check refuses it. */
function reachesBase({ authentic, check }: Expectation, answer: Answer | undefined): boolean {
  // `9a` is decided after check 10, but other verifiers may decide it in its place: it is not compared.
  return authentic === true || Number(check ?? answer?.check) >= BASE_CHECK;
}

/** How the subject's base differs from the vector's. Undefined: it does not, or it is not compared. */
function baseDifference(
  { signatureBase, steps: [first] }: DeliveryCase,
  subject: Subject,
  answer: Answer | undefined,
): string | undefined {
  if (signatureBase === undefined || !subject.signatureBase || !first) return undefined;
  if (!reachesBase(first.expected, answer)) return undefined;
  const actual = subject.signatureBase(first.request);
  // Check 10 compares the authorities first: a URL without a canonical form has no base.
  if (actual === undefined && first.expected.code === 'webhook_target_uri_malformed') return undefined;
  return compareBases(signatureBase, actual);
}

async function judgeDelivery(vector: DeliveryCase, subject: Subject): Promise<Verdict> {
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

/** What a subject throws may have a code, as the library's does. */
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

/** Whether a URL gets the canonical form that a vector says, or none. */
function judgeForm({ url, expected }: CanonicalizationCase, targetUri: TargetUri): Verdict {
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

/** Words for the two transports, other editions' among them. */
const FORMATS: readonly (readonly [RegExp, string])[] = [
  [/^(?:tool|mcp)/i, 'tool'],
  [/^(?:agent|a2a)/i, 'agent'],
];

const formatOf = (word: string): string => FORMATS.find(([pattern]) => pattern.test(word))?.[1] ?? word;

function sameData(a: unknown, b: unknown): boolean {
  return canonicalJson(a ?? null) === canonicalJson(b ?? null);
}

function judgeExtraction({ payload, format, data }: ExtractionCase, { extract }: Subject): Verdict {
  if (!extract) throw missing('extract');
  const actual = extract(payload);
  const formatFits =
    format === undefined || (format === null ? undefined : formatOf(format)) === actual.format;
  const dataFits = data === undefined || sameData(data.value, actual.data);
  return {
    passed: formatFits && dataFits,
    expected: `format ${text(format ?? undefined)}, data ${text(data?.value ?? undefined)}`,
    actual: `format ${text(actual.format)}, data ${text(actual.data)}`,
  };
}

/** The function of the subject that runs a kind of vectors. */
const NEEDS: Readonly<Record<VectorCase['kind'], keyof Subject | undefined>> = {
  signature: 'open',
  hmac: 'open',
  bearer: 'open',
  envelope: 'open',
  sequence: 'open',
  canonicalization: 'targetUri',
  extraction: 'extract',
  unreadable: undefined,
};

/** The function that a vector needs and the subject lacks. */
export function lacking({ kind }: VectorCase, subject: Subject): keyof Subject | undefined {
  const needed = NEEDS[kind];
  return needed === undefined || subject[needed] !== undefined ? undefined : needed;
}

async function verdictOf(vector: VectorCase, subject: Subject): Promise<Verdict> {
  switch (vector.kind) {
    case 'unreadable':
      return { passed: false, expected: 'a vector', actual: vector.reason };
    case 'canonicalization':
      if (!subject.targetUri) throw missing('targetUri');
      return judgeForm(vector, subject.targetUri);
    case 'extraction':
      return judgeExtraction(vector, subject);
    case 'signature':
    case 'hmac':
    case 'bearer':
    case 'envelope':
    case 'sequence':
      return judgeDelivery(vector, subject);
  }
}

/** Runs one vector. What the subject throws is its answer: the vector failed. */
export async function judge(vector: VectorCase, subject: Subject): Promise<VectorResult> {
  const { name, kind, file } = vector;
  try {
    return { name, kind, file, ...(await verdictOf(vector, subject)) };
  } catch (error) {
    return { name, kind, file, passed: false, expected: 'an answer', actual: `threw ${String(error)}` };
  }
}
