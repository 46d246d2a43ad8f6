import type { Expectation } from './case.ts';
import type { Answer } from './subject.ts';

/** Statuses that only an authentic delivery of a readable body gets: taken, or no valid envelope, or changed. */
const isAuthentic = ({ status }: Answer): boolean =>
  (status >= 200 && status < 300) || status === 400 || status === 409;

const isProved = (answer: Answer): boolean => isAuthentic(answer) || answer.code === 'webhook_body_malformed';

/** Of 4xx, those that ask for another try: they say nothing about the sender. */
const LATER: readonly number[] = [408, 425, 429];

/** Codes that are answered with 503 or 429, and not because of the signature (verification.md §2.9a, §2.25 and §4.12). */
const UNDECIDED = /_unavailable$|_revocation_stale$|_rate_abuse$|^webhook_target_uri_malformed$/;

const mayBeUndecided = ({ code, status = 0 }: Expectation): boolean =>
  status >= 500 || LATER.includes(status) || UNDECIDED.test(code ?? '');

/**
 * What an answer says of a sender: true, false, or in words that it says nothing. A receiver that only ever answers 503
 * has refused nobody.
 */
function verdict(expected: Expectation, answer: Answer, holds: boolean): boolean | string {
  const { status } = answer;
  const refuses = status >= 400 && status < 500 && !LATER.includes(status);
  return holds || refuses || mayBeUndecided(expected) ? holds : `undecided (${status})`;
}

interface Member {
  /** In the words of the vectors' files. */
  readonly name: string;
  readonly expected: (expected: Expectation) => unknown;
  /** Undefined: the implementation cannot tell, and it is not compared. */
  readonly actual: (answer: Answer, expected: Expectation) => unknown;
}

/** A code that is not told is none: an implementation that refuses has to say why. */
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

/** What does not fit, a line each. An expectation of which the subject tells nothing is not met. */
export function mismatches(expected: Expectation, answer: Answer): readonly string[] {
  const members = MEMBERS.filter((member) => member.expected(expected) !== undefined);
  const told = members.filter((member) => member.actual(answer, expected) !== undefined);
  if (told.length === 0 && !toldCheck(expected, answer)) {
    const names = members.map(({ name }) => name).join(', ') || 'check';
    return [`nothing can be compared: expected ${names}, which the subject does not tell`];
  }
  return told.flatMap((member) => {
    const [wanted, got] = [member.expected(expected), member.actual(answer, expected)];
    return wanted === got ? [] : [differing(member.name, wanted, got)];
  });
}

const differing = (name: string, wanted: unknown, got: unknown): string =>
  `${name}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`;

const toldCheck = (expected: Expectation, answer: Answer): boolean =>
  expected.check !== undefined && answer.check !== undefined;

/** What differs and fails nothing: verifiers number their checks each in its own way. */
export function differences(expected: Expectation, answer: Answer): readonly string[] {
  const [wanted, got] = [expected.check, answer.check];
  if (wanted === undefined || got === undefined || wanted === String(got).toLowerCase()) return [];
  return [`check: expected ${wanted}, got ${got}`];
}

/** `401 webhook_signature_invalid (check 10)`. */
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

export function describeExpectation(expected: Expectation): string {
  const said = summary(expected);
  if (said !== '') return said;
  return expected.authentic === false ? 'refused' : 'authentic';
}

export function describeAnswer(answer: Answer, expected: Expectation): string {
  // A check that the vector does not name is not wrong by not being said.
  const { status, code, kind, check } = answer;
  return summary({ status, code, kind, check: expected.check === undefined ? undefined : check });
}
