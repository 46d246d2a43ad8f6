import { createHash } from 'node:crypto';
import type { SignedDelivery } from '../../sender/sign.ts';
import type { PostResult } from '../../testing/seller-post.ts';
import type { Expected } from './kit.ts';

/** What HTTP itself writes: none of it is told by the receiver's own code, and a kid may be `2026`. */
const PLAIN_HEADERS: ReadonlySet<string> = new Set([
  'age',
  'allow',
  'connection',
  'content-length',
  'content-type',
  'date',
  'expires',
  'keep-alive',
  'last-modified',
  'retry-after',
  'transfer-encoding',
]);

/** Fewer bytes are no digest. */
const DIGEST_BYTES = 32;

/** A digest as it may be written. */
function formsOf(digest: Buffer): readonly string[] {
  if (digest.length < DIGEST_BYTES) return [];
  return [digest.toString('hex'), digest.toString('base64').replace(/=+$/, ''), digest.toString('base64url')];
}

/** What no refusal of this delivery may repeat: its key id, and the digests that it claims and has. */
export function secretsIn({ headers, body }: SignedDelivery): readonly string[] {
  const kid = /;keyid="([^"]+)"/.exec(headers['Signature-Input'] ?? '')?.[1];
  const claimed = [...(headers['Content-Digest'] ?? '').matchAll(/=:([^:]*):/g)].map(([, text = '']) =>
    Buffer.from(text, 'base64'),
  );
  const own = createHash('sha256').update(body).digest();
  return [...(kid === undefined ? [] : [kid]), ...[own, ...claimed].flatMap(formsOf)];
}

/** As a word of its own: a kid may be as short as `k`. */
function tells(text: string, secret: string): boolean {
  const inWord = (char: string | undefined): boolean => char !== undefined && /[\w-]/.test(char);
  for (let at = text.indexOf(secret); at !== -1; at = text.indexOf(secret, at + 1)) {
    if (!inWord(text[at - 1]) && !inWord(text[at + secret.length])) return true;
  }
  return false;
}

/** verification.md §2.24: no key ids, no digests, nothing that a prober could use, in body or headers. */
export function leakOf({ body, headers }: PostResult, secrets: readonly string[]): string | undefined {
  const told = secrets.filter((secret) => secret !== '');
  if (told.some((secret) => tells(body, secret))) return 'the body tells a key id or a digest';
  const name = Object.keys(headers).find(
    (own) => !PLAIN_HEADERS.has(own) && told.some((secret) => tells(headers[own] ?? '', secret)),
  );
  return name === undefined ? undefined : `the header ${name} tells a key id or a digest`;
}

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
