// Sends every test case to a receiver, one after another, and grades its answers. `probe-verb.ts` calls it.
import { createHash } from 'node:crypto';
import type { SignedDelivery } from '../../sender/sign.ts';
import type { PostResult } from '../../testing/seller-post.ts';
import { ACCEPTED_CASES, RATE_CASE, REPEATED_CASES } from './cases-events.ts';
import { OTHER_URL_CASE, REFUSED_CASES } from './cases-refused.ts';
import { type Expected, NotBegun, type ProbeCase, type ProbeKit, type ProbeResult } from './probe-kit.ts';

/**
 * Headers that HTTP itself needs. They are not searched for leaked key ids, because a key id may be as common as
 * `2026`.
 */
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

/** The shortest digest that is searched for, in bytes. */
const DIGEST_BYTES = 32;

/** Returns the forms in which a digest may be written; empty if the digest is too short. */
function formsOf(digest: Buffer): readonly string[] {
  if (digest.length < DIGEST_BYTES) return [];
  return [digest.toString('hex'), digest.toString('base64').replace(/=+$/, ''), digest.toString('base64url')];
}

/**
 * Returns the texts of a delivery that its refusal must not repeat: the key id, the digest in `Content-Digest`, and the
 * body's real digest.
 */
export function secretsIn({ headers, body }: SignedDelivery): readonly string[] {
  const kid = /;keyid="([^"]+)"/.exec(headers['Signature-Input'] ?? '')?.[1];
  const claimed = [...(headers['Content-Digest'] ?? '').matchAll(/=:([^:]*):/g)].map(([, text = '']) =>
    Buffer.from(text, 'base64'),
  );
  const own = createHash('sha256').update(body).digest();
  return [...(kid === undefined ? [] : [kid]), ...[own, ...claimed].flatMap(formsOf)];
}

/**
 * True if a text contains the secret as a separate word. A kid may be as short as `k`, so parts of words do not count.
 */
function tells(text: string, secret: string): boolean {
  const inWord = (char: string | undefined): boolean => char !== undefined && /[\w-]/.test(char);
  for (let at = text.indexOf(secret); at !== -1; at = text.indexOf(secret, at + 1)) {
    if (!inWord(text[at - 1]) && !inWord(text[at + secret.length])) return true;
  }
  return false;
}

/**
 * Returns the leak in a refusal; undefined if there is none. Body and headers must not contain key ids, digests, or
 * anything else that a prober could use (verification.md §2.24).
 */
export function leakOf({ body, headers }: PostResult, secrets: readonly string[]): string | undefined {
  const told = secrets.filter((secret) => secret !== '');
  if (told.some((secret) => tells(body, secret))) return 'the body discloses a key id or a digest';
  const name = Object.keys(headers).find(
    (own) => !PLAIN_HEADERS.has(own) && told.some((secret) => tells(headers[own] ?? '', secret)),
  );
  return name === undefined ? undefined : `the header ${name} discloses a key id or a digest`;
}

/** An answer in words, e.g. `401 webhook_signature_replayed`. */
function answerText({ status, outcome, code }: PostResult): string {
  return [status ?? outcome, code].filter((part) => part !== undefined).join(' ');
}

function expectedText({ status, code }: Expected): string {
  return code === undefined ? String(status) : `${status} ${code}`;
}

const isStatus = (expected: Expected['status'], status: number): boolean =>
  expected === '2xx' ? status >= 200 && status < 300 : status === expected;

/**
 * Returns the fault of the header `WWW-Authenticate`; undefined if there is none. The header must contain `Signature
 * error=` and the code, and nothing else. The code may be bare (contract.md §5.10) or in quotes (verification.md
 * §2.24).
 */
function challengeInvalidReason(answer: PostResult, code: string): string | undefined {
  const header = answer.headers['www-authenticate'];
  if (header === undefined) return '401 without WWW-Authenticate: the seller cannot know why';
  const found = /^Signature error="?([a-z0-9_]+)"?$/.exec(header)?.[1];
  if (found === undefined)
    return `WWW-Authenticate is ${JSON.stringify(header)}, expected Signature error="${code}" and nothing else`;
  return found === code ? undefined : `the code is ${found}`;
}

function bodyInvalidReason({ body, code }: PostResult, expected: string): string | undefined {
  if (code === undefined)
    return `the body is ${JSON.stringify(body.slice(0, 80))}, expected {"error":{"code":"${expected}","message":"…"}}`;
  return code === expected ? undefined : `the code is ${code}`;
}

/**
 * Functions that check more of an answer than its status, by that status. Each returns the fault; undefined if there is
 * none.
 */
const WITH: Readonly<Partial<Record<number, (answer: PostResult, code: string) => string | undefined>>> = {
  400: bodyInvalidReason,
  401: challengeInvalidReason,
  405: ({ headers }) => (/\bPOST\b/.test(headers['allow'] ?? '') ? undefined : '405 without Allow: POST'),
  409: bodyInvalidReason,
  429: ({ headers }) =>
    /^\d+$/.test(headers['retry-after'] ?? '') ? undefined : '429 without Retry-After in seconds',
};

/**
 * Returns the fault of an answer that has `WWW-Authenticate` although its status is not 401. A seller stops delivering
 * the event at `Signature error=` (verification.md §2.25).
 */
function strayChallenge({ status, headers }: PostResult): string | undefined {
  const header = headers['www-authenticate'];
  if (status === 401 || header === undefined) return undefined;
  return `${status} with WWW-Authenticate (${JSON.stringify(header)}), which only a 401 may have`;
}

/**
 * Returns the note for the user if the answer has one of the other statuses that pass (`orStatus`); otherwise
 * undefined.
 */
function noteOn({ status }: PostResult, { orStatus }: Expected): string | undefined {
  return status === undefined ? undefined : orStatus?.[status];
}

/**
 * Grades an answer.
 * @param secrets texts that a refusal must not repeat.
 * @returns the fault of the answer; undefined if there is none.
 */
function gradeAnswer(answer: PostResult, expected: Expected, secrets: readonly string[]): string | undefined {
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

/** Settings of `awaitKeys`, which waits while a receiver remembers that it could not fetch the keys. */
export interface Patience {
  /** The longest wait in total, ms. A receiver remembers a failed fetch for at most 60 s (verification.md §5.19). */
  readonly ms: number;
  /** Unix ms. */
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
  /** Called once, before the first pause. */
  readonly begins: () => void;
  /**
   * Returns true if the receiver has requested all documents that the test cases need. Absent: the wait ends once the
   * answer is no 503.
   */
  readonly complete?: (() => boolean) | undefined;
}

/** The shortest and the longest pause between two deliveries, even if `Retry-After` says otherwise. Ms. */
const PAUSE = { least: 1_000, most: 10_000 } as const;

/**
 * True for a 503 after which a seller tries again: it has `Retry-After`, and no `WWW-Authenticate`, at which a seller
 * would stop.
 */
function isPutOff({ status, headers }: PostResult): boolean {
  return status === 503 && 'retry-after' in headers && !('www-authenticate' in headers);
}

function pauseAfter({ headers }: PostResult): number {
  const seconds = Number(headers['retry-after'] ?? 0);
  return Math.min(Math.max((Number.isFinite(seconds) ? seconds : 0) * 1000, PAUSE.least), PAUSE.most);
}

/**
 * Sends one valid event, signed anew each time, until the answer is no 503 and `patience.complete` returns true, or
 * until the time is over. A receiver that answers 503 may remember that its keys were missing before the probe served
 * them.
 * @returns false if the first answer was no 503, or if the last one still is.
 */
export async function awaitKeys(kit: ProbeKit, patience: Patience): Promise<boolean> {
  const { ms, now, pause, begins, complete = () => true } = patience;
  const event = kit.payloads.tool('submitted');
  const until = now() + ms;
  let answer = await kit.send(await kit.sign(event));
  if (!isPutOff(answer)) return false;
  let pauseMs = pauseAfter(answer);
  if (now() + pauseMs <= until) begins();
  while ((isPutOff(answer) || !complete()) && now() + pauseMs <= until) {
    await pause(pauseMs);
    answer = await kit.send(await kit.sign(event));
    if (isPutOff(answer)) pauseMs = pauseAfter(answer);
  }
  return !isPutOff(answer);
}

/** Error codes that do not show a wrong protocol name: another check than that of the name has failed. */
const NO_MATTER_OF_NAME: readonly (string | undefined)[] = [
  'webhook_signature_key_unknown',
  'webhook_signature_window_invalid',
];

/** A protocol name under which one valid event was sent, and the receiver's answer. */
export interface NameTried {
  readonly protocol: string;
  /** The answer, e.g. `401 webhook_signature_tag_invalid`. */
  readonly answered: string;
  /** True if the test cases are sent under this name. */
  readonly goesOn: boolean;
}

/**
 * Ranks a protocol name by its answer; 0 is best. An accepted event ranks first, then a refusal or delay for another
 * reason, then a refusal because of the name.
 */
function rankOf({ status, code }: PostResult): number {
  if (status !== undefined && isStatus('2xx', status)) return 0;
  return status !== 401 || NO_MATTER_OF_NAME.includes(code) ? 1 : 2;
}

/**
 * Sends one valid event under each name of the protocol, if there are several.
 * @returns the kit whose name got the best answer (the first of equal ones), and the answers to all names.
 */
export async function takenKit(
  kits: readonly [ProbeKit, ...ProbeKit[]],
): Promise<{ readonly kit: ProbeKit; readonly names: readonly NameTried[] }> {
  const [first, ...others] = kits;
  if (others.length === 0) return { kit: first, names: [] };
  const tried: { readonly kit: ProbeKit; readonly answer: PostResult }[] = [];
  for (const kit of kits) {
    tried.push({ kit, answer: await kit.send(await kit.sign(kit.payloads.tool('submitted'))) });
  }
  const [best] = tried.toSorted((a, b) => rankOf(a.answer) - rankOf(b.answer));
  const kit = best?.kit ?? first;
  const names = tried.map(({ kit: own, answer }) => ({
    protocol: own.protocol,
    answered: answerText(answer),
    goesOn: own === kit,
  }));
  return { kit, names };
}

/** Functions that are called before the test cases are sent. */
export interface ProbeStart {
  /** Chooses the kit whose protocol name the receiver accepts. Absent: the given kit is used. */
  readonly choose?: (() => Promise<ProbeKit>) | undefined;
  /**
   * Waits until the receiver has the keys. After a failed fetch, a receiver may wait before it requests them again.
   * Resolves with true if a wait was needed and the receiver has the keys now.
   */
  readonly awaitKeys?: ((kit: ProbeKit) => Promise<boolean>) | undefined;
}

/**
 * True for the test case that is sent first and only once, because a receiver may fetch the JWKS again only once in 30
 * s.
 */
const isUnknownKey = ({ name }: ProbeCase): boolean => name === 'unknown-key';

/** Every test case, in the order in which they are sent. */
export const PROBE_CASES: readonly ProbeCase[] = [
  ...REFUSED_CASES.filter(isUnknownKey),
  ...ACCEPTED_CASES,
  ...REPEATED_CASES,
  ...REFUSED_CASES.filter((probe) => !isUnknownKey(probe)),
  RATE_CASE,
];

const MISSING: Readonly<Record<NonNullable<ProbeCase['needs']>, string>> = {
  ed25519: 'no Ed25519 key',
  p256: 'no P-256 key',
  request: 'no key of purpose request-signing',
  other: 'no key of another purpose',
  revoked: 'no key whose kid ends in -revoked',
  rate: 'give --rate N, and the receiver a cap below N (maxNoncesPerKey)',
};

const COOLING = 'the receiver fetched its keys less than 30 s ago; probe it again after that';

const has = (kit: ProbeKit, needs: NonNullable<ProbeCase['needs']>): boolean =>
  needs === 'rate' ? kit.rate !== undefined : kit.keys[needs] !== undefined;

/**
 * Returns a copy of the kit that also records the texts (key ids, digests) that a refusal must not repeat. `secrets`
 * returns them.
 */
function listening(kit: ProbeKit): { readonly kit: ProbeKit; readonly secrets: () => readonly string[] } {
  const secrets = new Set(Object.values(kit.keys).map((key) => String(key['kid'])));
  const note = (delivery: SignedDelivery): SignedDelivery => {
    for (const secret of secretsIn(delivery)) secrets.add(secret);
    return delivery;
  };
  return {
    kit: {
      ...kit,
      send: (delivery) => kit.send(note(delivery)),
      begin: (delivery) => kit.begin(note(delivery)),
    },
    secrets: () => [...secrets],
  };
}

async function runCase(probe: ProbeCase, probeKit: ProbeKit): Promise<ProbeResult> {
  const { name, sends, needs } = probe;
  const expect: Expected = typeof probe.expect === 'function' ? probe.expect(probeKit) : probe.expect;
  const result = { name, sends, expected: expectedText(expect) };
  if (needs && !has(probeKit, needs))
    return { ...result, answered: '-', verdict: 'skipped', why: MISSING[needs] };
  const { kit, secrets } = listening(probeKit);
  try {
    const answer = await probe.run(kit);
    const answered = answerText(answer);
    const why = gradeAnswer(answer, expect, expect.status === '2xx' ? [] : secrets());
    if (why === undefined) {
      const note = noteOn(answer, expect);
      return { ...result, answered, verdict: 'pass', ...(note !== undefined && { note }) };
    }
    // For 30 s after a fetch, a receiver cannot decide about a new keyid (verification.md §5.4).
    if (isUnknownKey(probe) && isPutOff(answer))
      return { ...result, answered, verdict: 'undecided', why: COOLING };
    return { ...result, answered, verdict: 'fail', why };
  } catch (error) {
    if (error instanceof NotBegun) return { ...result, answered: '-', verdict: 'fail', why: error.message };
    throw error;
  }
}

async function runAll(cases: readonly ProbeCase[], kit: ProbeKit): Promise<readonly ProbeResult[]> {
  const results: ProbeResult[] = [];
  for (const probe of cases) results.push(await runCase(probe, kit));
  return results;
}

/**
 * Sends the test cases one after another, and grades the answers. @param wanted the names of test cases; empty: all.
 */
export async function probeReceiver(
  kit: ProbeKit,
  wanted: readonly string[] = [],
  { choose = async () => kit, awaitKeys = async () => false }: ProbeStart = {},
): Promise<ProbeResult[]> {
  // Without the host check, a receiver may accept a delivery at the other URL too, so this test case is left out.
  const hasOther = kit.otherUrl !== undefined && kit.hostCheck === 'strict';
  const cases = hasOther ? [...PROBE_CASES, OTHER_URL_CASE] : PROBE_CASES;
  const chosen = cases.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
  // The test case with an unknown keyid comes first, because a receiver fetches the keys for an unknown keyid at most
  // once in 30 s.
  const first = chosen.filter(isUnknownKey);
  const early = await runAll(first, kit);
  const taken = await choose();
  const waited = await awaitKeys(taken);
  // The answers in `early` are void if another protocol name was chosen after them. A 503 is void too if the probe had
  // to wait until the receiver had the keys. The test case can be sent again immediately, because a failed fetch does
  // not delay the receiver's next one.
  const isVoid = ({ answered }: ProbeResult): boolean =>
    taken !== kit || (waited && answered.startsWith('503'));
  const known = early.some(isVoid) ? await runAll(first, taken) : early;
  const others = chosen.filter((probe) => !isUnknownKey(probe));
  return [...known, ...(await runAll(others, taken))];
}
