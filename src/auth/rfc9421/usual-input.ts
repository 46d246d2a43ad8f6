import { REQUIRED_COMPONENTS } from './components.ts';
import type { SignatureInput } from './signature-input.ts';

const START = 'sig1=(';

/** As the profile's own examples list them, and most senders. */
const USUAL_LIST = REQUIRED_COMPONENTS.map((name) => `"${name}"`).join(' ');

const PLAIN_LIST = /^"[a-z0-9@-]+"(?: "[a-z0-9@-]+")*$/;

/** Printable ASCII without the backslash: every string ends at its next quote. */
const NO_ESCAPES = /^[\x20-\x5b\x5d-\x7e]*$/;

const INTEGER = /^[0-9]{1,15}$/;

/**
 * What senders write: the label `sig1` alone, plain components, the six parameters in any order without escapes or
 * white space, each once, nothing else. In a tenth of the general way's time; undefined sends the field that way.
 */
export function parseUsualSignatureInput(field: string): SignatureInput | undefined {
  const close = field.indexOf(')');
  if (!field.startsWith(START) || close < 0 || !NO_ESCAPES.test(field)) return undefined;
  const list = field.slice(START.length, close);
  if (list !== USUAL_LIST && !PLAIN_LIST.test(list)) return undefined;
  const values = readParameters(field, close + 1);
  if (values === undefined) return undefined;
  const { created, expires, nonce, keyid, alg, tag } = values;
  if (!INTEGER.test(created) || !INTEGER.test(expires)) return undefined;
  return {
    kind: 'signature-input',
    components: list === USUAL_LIST ? REQUIRED_COMPONENTS : list.slice(1, -1).split('" "'),
    parameters: { created: Number(created), expires: Number(expires), nonce, keyid, alg, tag },
    raw: field.slice(START.length - 1),
  };
}

type Name = 'created' | 'expires' | 'nonce' | 'keyid' | 'alg' | 'tag';

interface Place {
  /** Its bit among those that were seen. */
  readonly bit: number;
  readonly quoted: boolean;
}

const PLACES: ReadonlyMap<string, Place> = new Map(
  ['created', 'expires', 'nonce', 'keyid', 'alg', 'tag'].map((name, index) => [
    name,
    { bit: 1 << index, quoted: index > 1 },
  ]),
);
const ALL = (1 << PLACES.size) - 1;

/** Text of each of the six; undefined where one is missing, stands twice, is unknown, or anything is between them. */
function readParameters(field: string, start: number): Readonly<Record<Name, string>> | undefined {
  const values: Record<Name, string> = { created: '', expires: '', nonce: '', keyid: '', alg: '', tag: '' };
  let seen = 0;
  let at = start;
  while (at < field.length) {
    const equals = field.indexOf('=', at);
    const name = field.slice(at + 1, equals);
    const place = PLACES.get(name);
    if (field[at] !== ';' || equals < 0 || !place || (seen & place.bit) !== 0) return undefined;
    seen |= place.bit;
    if (place.quoted && field[equals + 1] !== '"') return undefined;
    const from = equals + (place.quoted ? 2 : 1);
    const found = field.indexOf(place.quoted ? '"' : ';', from);
    if (found < 0 && place.quoted) return undefined;
    const end = found < 0 ? field.length : found;
    values[name as Name] = field.slice(from, end);
    at = place.quoted ? end + 1 : end;
  }
  return seen === ALL ? values : undefined;
}
