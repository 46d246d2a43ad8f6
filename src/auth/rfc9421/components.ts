import type { HeaderFields } from '../../delivery.ts';
import { fieldValue } from '../../delivery.ts';
import type { Target } from '../contract.ts';

/** What a request gives to its signature base. */
export interface RequestFacts {
  /** Request method; goes into the base in upper case. */
  readonly method: string;
  /** From `canonicalTargetUri`. */
  readonly target: Target;
  readonly headers: HeaderFields;
}

/** The five that every signature of the profile covers (contract.md §5.5). */
export const REQUIRED_COMPONENTS: readonly string[] = Object.freeze([
  '@method',
  '@target-uri',
  '@authority',
  'content-type',
  'content-digest',
]);

/** Scheme, path and query (with its `?`) of a canonical target URI. */
const CANONICAL_URI = /^(https?):\/\/[^/]*([^?]*)(.*)$/s;

function uriPart(facts: RequestFacts, part: 1 | 2 | 3): string {
  return CANONICAL_URI.exec(facts.target.targetUri)?.[part] ?? '';
}

/** RFC 9421 §2.2. All but the method come from the configured URL: proxies rewrite what a request says of itself. */
const DERIVED: ReadonlyMap<string, (facts: RequestFacts) => string> = new Map([
  ['@method', (facts: RequestFacts) => facts.method.toUpperCase()],
  ['@target-uri', (facts) => facts.target.targetUri],
  ['@authority', (facts) => facts.target.authority],
  ['@scheme', (facts) => uriPart(facts, 1)],
  ['@path', (facts) => uriPart(facts, 2)],
  // RFC 9421 §2.2.7: an absent query is a lone question mark.
  ['@query', (facts) => uriPart(facts, 3) || '?'],
  ['@request-target', (facts) => uriPart(facts, 2) + uriPart(facts, 3)],
]);

/** RFC 9421 §2: a component name is a field name in lower case. */
const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;

/** Whether `name`, in lower case, can be a field's. */
export const isFieldName = (name: string): boolean => FIELD_NAME.test(name);

/** RFC 9421 §2.5: the base is ASCII, and a line feed in a value would forge one of its lines. */
const FIELD_VALUE = /^[\t\x20-\x7e]*$/;

/** Value of a plain header field as the base holds it, or undefined where the request has no usable one. */
function plainField(name: string, headers: HeaderFields): string | undefined {
  return isFieldName(name) ? textOf(name, headers) : undefined;
}

function textOf(name: string, headers: HeaderFields): string | undefined {
  const value = fieldValue(headers, name);
  return value !== undefined && FIELD_VALUE.test(value) ? value : undefined;
}

/** `isCoverable` of each of the required five. */
export function coversRequired(headers: HeaderFields): boolean {
  return textOf('content-type', headers) !== undefined && textOf('content-digest', headers) !== undefined;
}

/** The lines of the required five, at once: what `componentValue` gives for each of them. */
export function requiredLines({ method, target, headers }: RequestFacts): string | undefined {
  const type = textOf('content-type', headers);
  const digest = textOf('content-digest', headers);
  if (type === undefined || digest === undefined) return undefined;
  return `"@method": ${method.toUpperCase()}\n"@target-uri": ${target.targetUri}\n"@authority": ${target.authority}\n"content-type": ${type}\n"content-digest": ${digest}\n`;
}

/** Whether `component` can be part of this request's base; without parameters, as check 6 wants it. */
export function isCoverable(component: string, headers: HeaderFields): boolean {
  return DERIVED.has(component) || plainField(component, headers) !== undefined;
}

/** Value of a component (RFC 9421 §2.1, §2.2), or undefined where the request has none. */
export function componentValue(component: string, facts: RequestFacts): string | undefined {
  return DERIVED.get(component)?.(facts) ?? plainField(component, facts.headers);
}
