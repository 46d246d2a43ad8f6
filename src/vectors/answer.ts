import type { Expectation } from './case.ts';
import type { Answer } from './subject.ts';

/** Statuses that only an authentic delivery of a readable body gets: taken, or no valid envelope, or changed. */
const isAuthentic = ({ status }: Answer): boolean =>
  (status >= 200 && status < 300) || status === 400 || status === 409;

const isProved = (answer: Answer): boolean => isAuthentic(answer) || answer.code === 'webhook_body_malformed';

interface Member {
  /** In the words of the vectors' files. */
  readonly name: string;
  readonly expected: (expected: Expectation) => unknown;
  /** Undefined: the implementation cannot tell, and it is not compared. */
  readonly actual: (answer: Answer) => unknown;
}

/** A code that is not told is none: an implementation that refuses has to say why. */
const MEMBERS: readonly Member[] = [
  { name: 'authentic', expected: ({ authentic }) => authentic, actual: isAuthentic },
  { name: 'proved', expected: ({ proved }) => proved, actual: isProved },
  { name: 'status', expected: ({ status }) => status, actual: ({ status }) => status },
  { name: 'code', expected: ({ code }) => code, actual: ({ code }) => code ?? null },
  {
    name: 'check',
    expected: ({ check }) => check,
    actual: ({ check }) => (check === undefined ? undefined : String(check)),
  },
  { name: 'kind', expected: ({ kind }) => kind, actual: ({ kind }) => kind },
  {
    name: 'www_authenticate',
    expected: ({ wwwAuthenticate }) => wwwAuthenticate,
    actual: ({ wwwAuthenticate }) => wwwAuthenticate,
  },
  { name: 'sender', expected: ({ sender }) => sender, actual: ({ sender }) => sender },
  { name: 'handled', expected: ({ handled }) => handled, actual: ({ handled }) => handled },
  { name: 'changed', expected: ({ changed }) => changed, actual: ({ changed }) => changed },
  { name: 'reemission', expected: ({ reemission }) => reemission, actual: ({ reemission }) => reemission },
  {
    name: 'warnings',
    expected: ({ warnings }) => warnings && [...warnings].sort().join(' '),
    actual: ({ warnings }) => warnings && [...warnings].sort().join(' '),
  },
];

/** What does not fit, a line each. */
export function mismatches(expected: Expectation, answer: Answer): readonly string[] {
  return MEMBERS.flatMap((member) => {
    const wanted = member.expected(expected);
    const got = member.actual(answer);
    if (wanted === undefined || got === undefined || wanted === got) return [];
    return [`${member.name}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`];
  });
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
