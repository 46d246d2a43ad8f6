import type { PostResult } from '../../testing/seller-post.ts';
import type { Expected } from './case.ts';
import { leakOf } from './leaks.ts';

/** `401 webhook_signature_replayed`. */
export function answerText({ status, outcome, code }: PostResult): string {
  return [status ?? outcome, code].filter((part) => part !== undefined).join(' ');
}

export function expectedText({ status, code }: Expected): string {
  return code === undefined ? String(status) : `${status} ${code}`;
}

const isStatus = (expected: Expected['status'], status: number): boolean =>
  expected === '2xx' ? status >= 200 && status < 300 : status === expected;

/** contract.md §5.10 writes the code bare, verification.md §2.24 in quotes; nothing else may stand there. */
function challengeFlaw(answer: PostResult, code: string): string | undefined {
  const header = answer.headers['www-authenticate'];
  if (header === undefined) return '401 without WWW-Authenticate: the seller cannot tell why';
  const found = /^Signature error="?([a-z0-9_]+)"?$/.exec(header)?.[1];
  if (found === undefined)
    return `WWW-Authenticate is ${JSON.stringify(header)}, expected Signature error="${code}" and nothing else`;
  return found === code ? undefined : `the code is ${found}`;
}

function bodyFlaw({ body, code }: PostResult, expected: string): string | undefined {
  if (code === undefined)
    return `the body is ${JSON.stringify(body.slice(0, 80))}, expected {"error":{"code":"${expected}","message":"…"}}`;
  return code === expected ? undefined : `the code is ${code}`;
}

/** What has to go with a status, besides the status. */
const WITH: Readonly<Partial<Record<number, (answer: PostResult, code: string) => string | undefined>>> = {
  400: bodyFlaw,
  401: challengeFlaw,
  405: ({ headers }) => (/\bPOST\b/.test(headers['allow'] ?? '') ? undefined : '405 without Allow: POST'),
  409: bodyFlaw,
  429: ({ headers }) =>
    /^\d+$/.test(headers['retry-after'] ?? '') ? undefined : '429 without Retry-After in seconds',
};

/** verification.md §2.25: the challenge goes with 401 alone; `Signature error=` ends the event at its seller. */
function strayChallenge({ status, headers }: PostResult): string | undefined {
  const header = headers['www-authenticate'];
  if (status === 401 || header === undefined) return undefined;
  return `${status} with WWW-Authenticate (${JSON.stringify(header)}), which only a 401 may have`;
}

/** Of an answer that passes though another one was expected. */
export function noteOn({ status }: PostResult, { orStatus }: Expected): string | undefined {
  return status === undefined ? undefined : orStatus?.[status];
}

/**
 * @param secrets texts that no refusal may repeat.
 * @returns what is wrong with the answer, or undefined.
 */
export function gradeAnswer(
  answer: PostResult,
  expected: Expected,
  secrets: readonly string[],
): string | undefined {
  const { status, outcome } = answer;
  if (outcome === 'timeout') return 'no answer in time';
  if (outcome === 'connection_error' || status === undefined) return 'the connection broke';
  if (noteOn(answer, expected) !== undefined) return undefined;
  if (!isStatus(expected.status, status)) {
    const meaning = status === 503 ? ": a fault on the receiver's side, which sellers retry" : '';
    return `answered ${status}${meaning}`;
  }
  return WITH[status]?.(answer, expected.code ?? '') ?? strayChallenge(answer) ?? leakOf(answer, secrets);
}
