import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readCapture } from '../../../src/cli/capture/read-capture.ts';
import { explainDelivery } from '../../../src/cli/explain/explain.ts';
import { publicJwk } from '../../../src/cli/key-files.ts';
import type { EditionName } from '../../../src/edition.ts';
import type { Jwk } from '../../../src/sender/sign.ts';

const root = fileURLToPath(new URL('../../../vectors', import.meta.url));

interface Vector {
  readonly name: string;
  readonly edition?: EditionName;
  readonly expected_outcome: {
    readonly success: boolean;
    readonly error_code?: string;
    readonly failed_step?: number;
  };
  readonly [member: string]: unknown;
}

const { keys } = JSON.parse(readFileSync(join(root, 'keys.json'), 'utf8')) as { keys: Jwk[] };

/** What a capture cannot show: other senders, other schemes, what a store remembers. */
const BEYOND = ['senders', 'authentication', 'test_harness_state'];

const vectors = ['positive', 'negative'].flatMap((folder) =>
  readdirSync(join(root, folder)).map((file) => {
    const bytes = readFileSync(join(root, folder, file));
    return { file: `${folder}/${file}`, bytes, vector: JSON.parse(bytes.toString()) as Vector };
  }),
);

/** There is nothing to verify with: the command line says so, and does not begin. */
const keyless = (vector: Vector): boolean =>
  (vector['jwks_override'] as { readonly keys?: readonly unknown[] } | undefined)?.keys?.length === 0;

const judged = vectors.filter(({ vector }) => !BEYOND.some((member) => member in vector) && !keyless(vector));

describe('explain: the checklist fails at the check that the vector names', () => {
  it('has most of the vectors', () => {
    expect(judged.length).toBeGreaterThan(200);
  });

  it.each(judged.map((one) => [one.file, one] as const))('%s', async (file, { bytes, vector }) => {
    const capture = await readCapture(bytes, { file, readFile: () => Promise.reject(new Error('no files')) });
    const known = [...keys.filter(({ kid }) => capture.kids?.includes(String(kid))), ...capture.keys];
    const pins = [...new Map(known.map((jwk) => [jwk['kid'], publicJwk(jwk)])).values()];
    const { steps, findings } = await explainDelivery({
      capture,
      url: capture.url ?? '',
      sender: { agentUrl: 'https://seller.example/mcp', pins },
      receivedAt: capture.receivedAt ?? 0,
      edition: vector.edition,
    });
    const failed = steps.find(({ verdict, id }) => verdict === 'fail' && id !== 'envelope');
    const { success, error_code: code, failed_step: step } = vector.expected_outcome;
    expect({ success: failed === undefined, code: failed?.code }).toEqual({ success, code });
    if (step !== undefined) expect(failed?.id).toBe(String(step));
    if (failed) expect(findings.map((finding) => finding.step)).toContain(failed.id);
  });
});
