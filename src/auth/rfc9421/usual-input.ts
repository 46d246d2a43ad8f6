import { REQUIRED_COMPONENTS } from './components.ts';
import type { SignatureInput } from './signature-input.ts';

const START = 'sig1=(';

/** As the profile's own examples list them, and most senders. */
const USUAL_LIST = REQUIRED_COMPONENTS.map((name) => `"${name}"`).join(' ');
const USUAL_START = `${START}${USUAL_LIST})`;

const PLAIN_LIST = /^"[a-z0-9@-]+"(?: "[a-z0-9@-]+")*$/;

/**
 * What senders write: the label `sig1` alone, plain components, the six parameters in any order without escapes or
 * white space, each once, nothing else. In a tenth of the general way's time; undefined sends the field that way.
 */
export function parseUsualSignatureInput(field: string): SignatureInput | undefined {
  const usual = field.startsWith(USUAL_START);
  const close = usual ? USUAL_START.length - 1 : field.indexOf(')');
  const components = usual ? REQUIRED_COMPONENTS : plainList(field, close);
  const parameters = readParameters(field, close + 1);
  if (components === undefined || parameters === undefined) return undefined;
  return { kind: 'signature-input', components, parameters, raw: field.slice(START.length - 1) };
}

function plainList(field: string, close: number): readonly string[] | undefined {
  if (!field.startsWith(START)) return undefined;
  const list = field.slice(START.length, close);
  return PLAIN_LIST.test(list) ? list.slice(1, -1).split('" "') : undefined;
}

type Parameters = Required<SignatureInput['parameters']>;
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface Place {
  readonly name: keyof Parameters;
  /** What stands between the semicolon and the value's digits or characters. */
  readonly start: string;
  /** Its bit among those that were seen. */
  readonly bit: number;
}

const NAMES = ['created', 'expires', 'nonce', 'keyid', 'alg', 'tag'] as const;

/** By the code of the first letter: no two names share one. */
const PLACES: ReadonlyMap<number, Place> = new Map(
  NAMES.map((name, index) => {
    const start = name === 'created' || name === 'expires' ? `${name}=` : `${name}="`;
    return [name.charCodeAt(0), { name, start, bit: 1 << index }];
  }),
);
const ALL = (1 << PLACES.size) - 1;

const SEMICOLON = 0x3b;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The six; undefined where one is missing, stands twice, is unknown or escaped, or anything is between them. */
function readParameters(field: string, start: number): Parameters | undefined {
  const found: Mutable<Parameters> = { created: 0, expires: 0, nonce: '', keyid: '', alg: '', tag: '' };
  let seen = 0;
  let at = start;
  while (at < field.length) {
    const place = PLACES.get(field.charCodeAt(at + 1));
    if (field.charCodeAt(at) !== SEMICOLON || !place || (seen & place.bit) !== 0) return undefined;
    if (!field.startsWith(place.start, at + 1)) return undefined;
    seen |= place.bit;
    const from = at + 1 + place.start.length;
    const { name } = place;
    if (name === 'created' || name === 'expires') {
      at = digitsEnd(field, from);
      if (at < 0) return undefined;
      found[name] = Number(field.slice(from, at));
    } else {
      const end = stringEnd(field, from);
      if (end < 0) return undefined;
      found[name] = field.slice(from, end);
      at = end + 1;
    }
  }
  return seen === ALL ? found : undefined;
}

/** Longest integer (RFC 8941 §3.3.1). */
const MAX_DIGITS = 15;

/** Behind the digits that begin at `from`; -1 where there are none, or too many. */
function digitsEnd(field: string, from: number): number {
  let at = from;
  while (isDigit(field.charCodeAt(at))) at += 1;
  return at === from || at - from > MAX_DIGITS ? -1 : at;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Where the closing quote of a string without escapes stands; -1 where there is none, or anything but printable ASCII. */
function stringEnd(field: string, from: number): number {
  for (let at = from; at < field.length; at += 1) {
    const code = field.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH || code < 0x20 || code > 0x7e) return -1;
  }
  return -1;
}
