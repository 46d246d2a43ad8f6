import type { SignedDelivery } from '../../sender/sign.ts';
import type { PostResult } from '../../testing/seller-post.ts';
import { ACCEPTED_CASES, RATE_CASE, REPEATED_CASES } from './cases-events.ts';
import { BODY_CASES } from './cases-body.ts';
import { REFUSED_CASES, UNKNOWN_KEY_CASE } from './cases-refused.ts';
import { answerText, expectedText, gradeAnswer, noteOn, secretsIn } from './grade.ts';
import { type Expected, NotBegun, type ProbeCase, type ProbeKit, type ProbeResult } from './kit.ts';

/** How a receiver that remembers a failed fetch is waited for. */
export interface Patience {
  /** Ms in all. A receiver remembers a failed fetch for at most 60 s (verification.md §5.19). */
  readonly ms: number;
  /** Unix ms. */
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
  /** Called once, before the first pause. */
  readonly begins: () => void;
  /** Whether everything else that the receiver has to fetch was asked for; absent: there is nothing else. */
  readonly complete?: (() => boolean) | undefined;
}

/** Ms between two deliveries, whatever `Retry-After` says. */
const PAUSE = { least: 1_000, most: 10_000 } as const;

/** 503 with `Retry-After`, and nothing that a seller would take for the end of the event. */
export function isPutOff({ status, headers }: PostResult): boolean {
  return status === 503 && 'retry-after' in headers && !('www-authenticate' in headers);
}

function pauseAfter({ headers }: PostResult): number {
  const seconds = Number(headers['retry-after'] ?? 0);
  return Math.min(Math.max((Number.isFinite(seconds) ? seconds : 0) * 1000, PAUSE.least), PAUSE.most);
}

/**
 * Sends one good event, signed anew each time, until it is no longer put off. Until then nothing can be said of the
 * receiver: its keys are served only while the probe runs, and it may have asked for them before.
 * @returns whether it was put off at first and is no longer.
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

/** Every case, in the order in which they are sent. */
export const PROBE_CASES: readonly ProbeCase[] = [
  UNKNOWN_KEY_CASE,
  ...ACCEPTED_CASES,
  ...REPEATED_CASES,
  ...REFUSED_CASES,
  ...BODY_CASES,
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

/** The same kit, which notes what must not come back. */
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

async function runCase(probe: ProbeCase, given: ProbeKit): Promise<ProbeResult> {
  const { name, sends, needs } = probe;
  const expect: Expected = typeof probe.expect === 'function' ? probe.expect(given) : probe.expect;
  const result = { name, sends, expected: expectedText(expect) };
  if (needs && !has(given, needs))
    return { ...result, answered: '-', verdict: 'skipped', why: MISSING[needs] };
  const { kit, secrets } = listening(given);
  try {
    const answer = await probe.run(kit);
    const answered = answerText(answer);
    const why = gradeAnswer(answer, expect, expect.status === '2xx' ? [] : secrets());
    if (why === undefined) {
      const note = noteOn(answer, expect);
      return { ...result, answered, verdict: 'pass', ...(note !== undefined && { note }) };
    }
    // verification.md §5.4: within 30 s of another refetch nothing decides about a new keyid.
    if (probe === UNKNOWN_KEY_CASE && isPutOff(answer))
      return { ...result, answered, verdict: 'undecided', why: COOLING };
    return { ...result, answered, verdict: 'fail', why };
  } catch (error) {
    if (error instanceof NotBegun) return { ...result, answered: '-', verdict: 'fail', why: error.message };
    throw error;
  }
}

/**
 * Sends every case, one after another, and grades the answers.
 * @param wanted names of cases; all where empty.
 * @param awaitKeys waits until the receiver has the keys, which it may not ask for at once after a fetch that failed; tells
 * whether it had to, and has them now.
 */
export async function probeReceiver(
  kit: ProbeKit,
  wanted: readonly string[] = [],
  awaitKeys: (kit: ProbeKit) => Promise<boolean> = async () => false,
): Promise<ProbeResult[]> {
  const chosen = PROBE_CASES.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
  const results: ProbeResult[] = [];
  const [first, ...rest] = chosen;
  // The unknown keyid goes before everything else, while nothing was refetched on its account.
  const early = first === UNKNOWN_KEY_CASE ? await runCase(first, kit) : undefined;
  const waited = await awaitKeys(kit);
  if (early) {
    // What was answered while keys could not be had says nothing, and such an attempt is no refetch.
    results.push(waited && early.answered.startsWith('503') ? await runCase(UNKNOWN_KEY_CASE, kit) : early);
  }
  for (const probe of early ? rest : chosen) results.push(await runCase(probe, kit));
  return results;
}
