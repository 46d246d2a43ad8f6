import { ACCEPTED_CASES } from './cases-accepted.ts';
import { BODY_CASES } from './cases-body.ts';
import { REFUSED_CASES, UNKNOWN_KEY_CASE } from './cases-refused.ts';
import { RATE_CASE, REPEATED_CASES } from './cases-repeated.ts';
import type { Expected, ProbeCase, ProbeResult } from './case.ts';
import { answerText, expectedText, gradeAnswer } from './grade.ts';
import { NotBegun, type ProbeKit } from './kit.ts';

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

const has = (kit: ProbeKit, needs: NonNullable<ProbeCase['needs']>): boolean =>
  needs === 'rate' ? kit.rate !== undefined : kit.keys[needs] !== undefined;

async function runCase(probe: ProbeCase, kit: ProbeKit): Promise<ProbeResult> {
  const { name, sends, needs } = probe;
  const expect: Expected = typeof probe.expect === 'function' ? probe.expect(kit.edition) : probe.expect;
  const result = { name, sends, expected: expectedText(expect) };
  if (needs && !has(kit, needs)) return { ...result, answered: '-', verdict: 'skipped', why: MISSING[needs] };
  try {
    const answer = await probe.run(kit);
    const answered = answerText(answer);
    const secrets = Object.values(kit.keys).map((key) => String(key['kid']));
    const why = gradeAnswer(answer, expect, expect.status === '2xx' ? [] : secrets);
    if (why === undefined) return { ...result, answered, verdict: 'pass' };
    // verification.md, section 5, step 4: within 30 s of another refetch nothing decides about a new keyid.
    if (probe === UNKNOWN_KEY_CASE && answer.status === 503 && 'retry-after' in answer.headers) {
      return {
        ...result,
        answered,
        verdict: 'undecided',
        why: 'the receiver fetched its keys less than 30 s ago; probe it again after that',
      };
    }
    return { ...result, answered, verdict: 'fail', why };
  } catch (error) {
    if (error instanceof NotBegun) return { ...result, answered: '-', verdict: 'fail', why: error.message };
    throw error;
  }
}

/**
 * Sends every case, one after another, and grades the answers.
 * @param wanted names of cases; all where empty.
 */
export async function probeReceiver(kit: ProbeKit, wanted: readonly string[] = []): Promise<ProbeResult[]> {
  const results: ProbeResult[] = [];
  for (const probe of PROBE_CASES) {
    if (wanted.length === 0 || wanted.includes(probe.name)) results.push(await runCase(probe, kit));
  }
  return results;
}
