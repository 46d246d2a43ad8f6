import type { RequestFacts } from './components.ts';
import { componentValue, REQUIRED_COMPONENTS, requiredLines } from './components.ts';

/**
 * The text that is signed (RFC 9421 §2.5): one line a component, then `@signature-params`.
 * Signers and verifiers share it; encode it with `TextEncoder`.
 * @param components names without parameters, in the order of `signatureParams`, e.g. `['@method', 'content-type']`.
 * @param facts method, canonical target, header fields.
 * @param signatureParams the inner list with its parameters, exactly as in `Signature-Input` after `sig1=`. A
 * verifier passes the text as received: serialised again it could differ from what the sender signed.
 * @returns undefined where a component has no value in this request, or where a field of it is not printable ASCII.
 */
export function signatureBase(
  components: readonly string[],
  facts: RequestFacts,
  signatureParams: string,
): string | undefined {
  if (!/^[\x20-\x7e]*$/.test(signatureParams)) return undefined;
  // The usual list is this very one: see `parseUsualSignatureInput`.
  const usual = components === REQUIRED_COMPONENTS;
  const lines = usual ? requiredLines(facts) : linesOf(components, facts);
  return lines === undefined ? undefined : `${lines}"@signature-params": ${signatureParams}`;
}

function linesOf(components: readonly string[], facts: RequestFacts): string | undefined {
  let lines = '';
  for (const component of components) {
    const value = componentValue(component, facts);
    if (value === undefined) return undefined;
    lines += `"${component}": ${value}\n`;
  }
  return lines;
}
