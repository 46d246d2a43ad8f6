import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { explainHere } from './run-here.ts';

const root = fileURLToPath(new URL('../../../vectors', import.meta.url));

interface Vector {
  readonly expected_outcome: {
    readonly success: boolean;
    readonly error_code?: string;
    readonly failed_step?: number | string;
  };
}

const vectors = ['positive', 'negative'].flatMap((folder) =>
  readdirSync(join(root, folder)).map((name) => `${folder}/${name}`),
);

describe('explain: the checklist fails at the check that the vector names', () => {
  it('has all signature vectors', () => {
    expect(vectors.length).toBeGreaterThan(250);
  });

  it.each(vectors)('%s', async (name) => {
    const file = join(root, name);
    const ended = await explainHere([file]);
    if (ended.code === 2) throw new Error(ended.message);
    const { ok, steps, findings } = ended.explanation;
    const vector = JSON.parse(readFileSync(file, 'utf8')) as Vector;
    const failed = steps.find(({ verdict, id }) => verdict === 'fail' && id !== 'envelope');
    const { success, error_code: expected, failed_step: step } = vector.expected_outcome;
    expect({ success: failed === undefined, code: failed?.code }).toEqual({ success, code: expected });
    if (step !== undefined) expect(failed?.id).toBe(String(step));
    if (failed) expect(findings.map((finding) => finding.step)).toContain(failed.id);
    // An authentic body may be no valid envelope, which is no business of a signature vector.
    const passes = !steps.some(({ verdict }) => verdict === 'fail');
    expect({ code: ended.code, ok }).toEqual({ code: passes ? 0 : 1, ok: passes });
  });
});

describe('explain: a vector and the command line', () => {
  const edited = (name: string, more: object): string =>
    JSON.stringify({ ...(JSON.parse(readFileSync(join(root, name), 'utf8')) as object), ...more });
  const good = 'positive/001-basic-ed25519.json';
  const keySet = JSON.parse(readFileSync(join(root, 'keys.json'), 'utf8')) as {
    readonly keys: readonly Readonly<Record<string, unknown>>[];
  };
  const [key] = keySet.keys;

  it('knows a key of jwks_override by its name there', async () => {
    const kid = String(key?.['kid']);
    const override = { [kid]: { ...key, kid: 'another' } };
    const ended = await explainHere(['-'], edited(good, { jwks_ref: [], jwks_override: override }));
    expect(ended).toMatchObject({ code: 0, explanation: { ok: true } });
  });

  it('asks for keys when the vector names none and none are beside it, and for a known kid', async () => {
    const named = await explainHere(['-'], edited(good, { jwks_ref: ['nobody'] }));
    expect(named).toMatchObject({
      code: 2,
      message: expect.stringContaining('jwks_ref names "nobody"') as string,
    });
    const bare = await explainHere(['-'], edited(good, { jwks_ref: undefined }));
    expect(bare).toMatchObject({
      code: 2,
      message: expect.stringContaining('no key to verify with') as string,
    });
  });

  it('takes --keys instead of keys.json, and --edition instead of its own', async () => {
    const given = await explainHere(['-', '--keys', join(root, 'keys.json')], edited(good, {}));
    expect(given.code).toBe(0);
    const file = join(root, 'positive/048-request-key-edition-3.1.json');
    const older = await explainHere([file, '--edition', '3.0']);
    expect(older).toMatchObject({ code: 1, explanation: { findings: [{ step: '8', cause: 'edition' }] } });
  });
});
