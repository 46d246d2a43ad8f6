import type { CanonicalizationCase } from './case.ts';
import type { VectorResult } from './judge.ts';
import type { CanonicalUrl, Subject } from './subject.ts';

type TargetUri = NonNullable<Subject['targetUri']>;
type Canonical = { readonly form: CanonicalUrl } | { readonly refusal: unknown };

function canonical(targetUri: TargetUri, url: string): Canonical {
  try {
    return { form: targetUri(url) };
  } catch (refusal) {
    return { refusal };
  }
}

/** What a subject throws may have a code, as the library's does. */
function codeOf(refusal: unknown): string | undefined {
  const { code } = (refusal ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

function fitsForm(expected: CanonicalizationCase['expected'], actual: Canonical): boolean {
  if (expected.refused) {
    if (!('refusal' in actual)) return false;
    const code = codeOf(actual.refusal);
    return expected.code === undefined || code === undefined || expected.code === code;
  }
  if (!('form' in actual)) return false;
  const { targetUri, authority } = actual.form;
  return (expected.targetUri ?? targetUri) === targetUri && (expected.authority ?? authority) === authority;
}

/** Whether a URL gets the canonical form that a vector says, or none. */
export function judgeForm(
  { url, expected }: CanonicalizationCase,
  targetUri: TargetUri,
): Pick<VectorResult, 'passed' | 'expected' | 'actual' | 'detail'> {
  const actual = canonical(targetUri, url);
  const words = (...parts: readonly (string | undefined)[]): string =>
    parts.filter((part) => part !== undefined).join(', authority ');
  const refused = (code: string | undefined): string => (code === undefined ? 'refused' : `refused, ${code}`);
  const passed = fitsForm(expected, actual);
  return {
    passed,
    expected: expected.refused ? refused(expected.code) : words(expected.targetUri, expected.authority),
    actual:
      'form' in actual
        ? words(actual.form.targetUri, actual.form.authority)
        : refused(expected.refused && expected.code !== undefined ? codeOf(actual.refusal) : undefined),
    ...(!passed && { detail: `url ${JSON.stringify(url)}` }),
  };
}
