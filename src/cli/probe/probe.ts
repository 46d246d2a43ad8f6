import { ACCEPTED_CASES } from './cases-accepted.ts';
import { BODY_CASES } from './cases-body.ts';
import { REFUSED_CASES, UNKNOWN_KEY_CASE } from './cases-refused.ts';
import { RATE_CASE, REPEATED_CASES } from './cases-repeated.ts';
import type { Expected, ProbeCase, ProbeResult } from './case.ts';
import { answerText, expectedText, gradeAnswer, noteOn } from './grade.ts';
import { NotBegun, type ProbeKit } from './kit.ts';
import { secretsIn } from './leaks.ts';
import { isPutOff } from './await-keys.ts';
import type { SignedDelivery } from '../../sender/sign.ts';

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
