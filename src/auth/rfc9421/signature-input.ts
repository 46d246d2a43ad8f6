import type { Item } from 'structured-headers';
import type { Refusal } from '../../outcome.ts';
import type { Member } from './fields.ts';
import { innerListOf, readDictionary } from './fields.ts';
import { refuse } from './refuse.ts';
import { parseUsualSignatureInput } from './usual-input.ts';

/** The one label that is processed; others are ignored (verification.md §2.16). */
export const LABEL = 'sig1';

/** Parameters of the profile (contract.md §5.4); each is absent where the sender left it out. */
export interface SignatureParameters {
  /** Unix seconds. */
  readonly created?: number;
  /** Unix seconds. */
  readonly expires?: number;
  readonly nonce?: string;
  readonly keyid?: string;
  readonly alg?: string;
  readonly tag?: string;
}

/** What `Signature-Input` says under `sig1`. */
export interface SignatureInput {
  readonly kind: 'signature-input';
  /** Covered components in order: the bare name, or, where it has parameters, with their names (`"x";sf`). */
  readonly components: readonly string[];
  readonly parameters: SignatureParameters;
  /** The inner list with its parameters as received: the value of `@signature-params` in the base. */
  readonly raw: string;
}

type BareType = 'integer' | 'string';

const TYPES: Record<keyof SignatureParameters, BareType> = {
  created: 'integer',
  expires: 'integer',
  nonce: 'string',
  keyid: 'string',
  alg: 'string',
  tag: 'string',
};

/** The library gives `1.0` as 1, so that only the raw text tells an integer (RFC 8941 §3.3.1) from a decimal. */
const IS: Record<BareType, (value: unknown, raw: string) => boolean> = {
  integer: (value, raw) => typeof value === 'number' && /^-?[0-9]{1,15}$/.test(raw),
  string: (value) => typeof value === 'string',
};

const malformed = (detail: string): Refusal =>
  refuse(1, 'webhook_signature_header_malformed', `Signature-Input ${detail}.`);

/** Names are enough for a component with parameters: check 6 refuses it whatever their values. */
function readComponent([name, parameters]: Item): string | undefined {
  if (typeof name !== 'string') return undefined;
  const tail = [...parameters.keys()].map((parameter) => `;${parameter}`);
  return tail.length === 0 ? name : `"${name}"${tail.join('')}`;
}

function readInput(member: Member): SignatureInput | Refusal {
  const list = innerListOf(member);
  if (!list) return malformed('has a member that is no inner list');
  const components: string[] = [];
  for (const item of list[0]) {
    const component = readComponent(item);
    if (component === undefined) return malformed('covers something that is no string');
    components.push(component);
  }
  for (const [name, type] of Object.entries(TYPES)) {
    const value = list[1].get(name);
    if (value !== undefined && !IS[type](value, member.rawParameters.get(name) ?? '')) {
      return malformed(`has a parameter ${name} that is no ${type}`);
    }
  }
  const known = [...list[1]].filter(([name]) => Object.hasOwn(TYPES, name));
  const parameters: SignatureParameters = Object.fromEntries(known);
  return { kind: 'signature-input', components, parameters, raw: member.raw };
}

/**
 * The general way: any valid `Signature-Input`. Exported for the test that holds the fast way to the same results.
 */
export function parseAnySignatureInput(field: string): SignatureInput | Refusal {
  const members = readDictionary(field);
  if (typeof members === 'string') return malformed(members);
  for (const member of members.values()) {
    if (!innerListOf(member)) return malformed('has a member that is no inner list');
  }
  const member = members.get(LABEL);
  return member ? readInput(member) : malformed(`lacks the label ${LABEL}`);
}

/**
 * Reads the label `sig1` of a `Signature-Input` field (verification.md §2.1): a dictionary of inner
 * lists in which no label and no parameter stands twice, `created` and `expires` integers, the others strings.
 * Whether parameters are missing or wrong is for the later checks.
 * @param field the field's value; several lines joined with `, `.
 * @returns the input, or a refusal `webhook_signature_header_malformed`. Never throws.
 */
export function parseSignatureInput(field: string): SignatureInput | Refusal {
  return parseUsualSignatureInput(field) ?? parseAnySignatureInput(field);
}
