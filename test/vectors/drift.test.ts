import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { COUNTED, withCounts } from '../../scripts/vectors/counts.ts';
import { vectorFiles } from '../../scripts/vectors/files.ts';
import { ANSWERS } from '../../src/stages/for-tests.ts';
import { mistakesFor } from '../../src/testing/for-tests.ts';
import { runVectors } from '../../src/vectors/index.ts';
import type { CheckId, RefusedCode } from '../../src/index.ts';
import type { EnvelopeCode } from '../../src/events/index.ts';

const folder = fileURLToPath(new URL('../../vectors/', import.meta.url));
const made = vectorFiles();

interface SignatureFile {
  readonly name: string;
  readonly expected_outcome: {
    readonly error_code?: string;
    readonly status?: number;
    readonly failed_step?: CheckId;
  };
}

const signatures = (place: string): SignatureFile[] =>
  [...made].flatMap(([path, text]) =>
    path.startsWith(`${place}/`) ? [JSON.parse(text) as SignatureFile] : [],
  );

const all = [...made.values()].join('');

describe('vectors/ is what `npm run vectors` writes', () => {
  test('the same files', () => {
    const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.json'),
    );
    expect(found.sort()).toEqual([...made.keys()].sort());
  });

  test('the same bytes; else run `npm run vectors` and look at what changed', () => {
    const drifted = [...made].filter(([path, text]) => readFileSync(join(folder, path), 'utf8') !== text);
    expect(drifted.map(([path]) => path)).toEqual([]);
  });
});

describe('documents say how many vectors there are, as `npm run vectors` writes it from a run', async () => {
  const results = await runVectors();

  test.each(COUNTED)('%s', (file) => {
    const document = readFileSync(join(folder, '..', file), 'utf8');
    expect(withCounts(file, document, results)).toBe(document);
    // So that the comparison can fail.
    expect(withCounts(file, document, [...results, ...results])).not.toBe(document);
  });

  test('a run in which one failed is not written', () => {
    const failed = results.map((result) => ({ ...result, passed: false }));
    const document = readFileSync(join(folder, '../README.md'), 'utf8');
    expect(() => withCounts('README.md', document, failed)).toThrow(/0 passed, \d+ failed$/);
  });
});

describe('vectors/ covers verification.md §2', () => {
  test('at least 8 signatures that verify and 40 that do not, each with a name of its own', () => {
    const [positive, negative] = [signatures('positive'), signatures('negative')];
    expect(positive.length).toBeGreaterThanOrEqual(8);
    expect(negative.length).toBeGreaterThanOrEqual(40);
    const names = [...positive, ...negative].map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  test('at least 40 URLs with a canonical form, and some without', () => {
    const { cases } = JSON.parse(made.get('canonicalization.json') ?? '') as {
      cases: { reject?: boolean }[];
    };
    const rejected = cases.filter(({ reject }) => reject === true).length;
    expect([cases.length - rejected >= 40, rejected >= 10]).toEqual([true, true]);
  });

  test('every row of the table of wrong deliveries that is for vectors, with its status and code', () => {
    const { negative } = JSON.parse(made.get('envelope.json') ?? '') as {
      readonly negative: readonly { readonly id: string; readonly expected_error: string }[];
    };
    const refused = new Map([
      ...signatures('negative').map(
        ({ name, expected_outcome: { status, error_code } }) => [name, `${status} ${error_code}`] as const,
      ),
      ...negative.map(({ id, expected_error }) => [id, `400 ${expected_error}`] as const),
    ]);
    const rows = mistakesFor('vectors');
    expect(rows.map(([name]) => [name, refused.get(name)])).toEqual(
      rows.map(([name, { status, code }]) => [name, `${status} ${code}`]),
    );
  });

  test.each(Object.keys(ANSWERS) as RefusedCode[])('the code %s', (code) => {
    expect(all).toContain(`"${code}"`);
  });

  test('every check that can fail', () => {
    const checks: CheckId[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, '9a', 10, 11, 12, 14];
    const failed = new Set(
      signatures('negative').map(({ expected_outcome }) => expected_outcome.failed_step),
    );
    expect(checks.filter((check) => !failed.has(check))).toEqual([]);
  });

  test('every code of a negative signature vector is one that exists', () => {
    const envelope: Record<EnvelopeCode, true> = {
      missing_idempotency_key: true,
      missing_envelope_fields: true,
      invalid_envelope_status: true,
      invalid_envelope: true,
    };
    const known = new Set<string | undefined>([
      ...Object.keys(ANSWERS),
      'webhook_signature_revocation_stale',
    ]);
    for (const { name, expected_outcome: expected } of signatures('negative')) {
      expect(known.has(expected.error_code), name).toBe(true);
      expect(Object.hasOwn(envelope, expected.error_code ?? ''), name).toBe(false);
    }
  });
});
