import * as fc from 'fast-check';

/** A JSON text, written by hand, and its value, which was never parsed. */
export interface Sample {
  readonly text: string;
  readonly value: unknown;
  /** Whether an object in it has a name twice. */
  readonly twice: boolean;
}

const SPACES = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 2 });

const escaped = (unit: string, upper: boolean): string => {
  const hex = unit.charCodeAt(0).toString(16).padStart(4, '0');
  return `\\u${upper ? hex.toUpperCase() : hex}`;
};

/** With the escapes that have to be, and others; in either case of hex digits. */
function written(text: string, escapes: readonly boolean[]): string {
  const characters = Array.from(text, (character, at) => {
    const short = JSON.stringify(character).slice(1, -1);
    if (escapes[at % escapes.length] !== true) return short;
    return [...Array(character.length).keys()]
      .map((unit) => escaped(character.charAt(unit), at % 2 === 1))
      .join('');
  });
  return `"${characters.join('')}"`;
}

/** Strings as JSON text, names among them. `unit`: what they are made of. */
function strings(values: fc.Arbitrary<string>): fc.Arbitrary<Sample & { readonly value: string }> {
  const escapes = fc.array(fc.boolean(), { minLength: 1, maxLength: 5 });
  return fc
    .tuple(values, escapes)
    .map(([value, some]) => ({ value, text: written(value, some), twice: false }));
}

const numbers = fc.oneof(
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .map((value) => ({ value, text: Object.is(value, -0) ? '-0' : String(value) })),
  fc.constantFrom(
    { text: '-0.0E-1', value: -0 },
    { text: '1e400', value: Infinity },
    { text: '-1E+999', value: -Infinity },
    { text: '1e-400', value: 0 },
    { text: `1${'0'.repeat(400)}`, value: Infinity },
    { text: '9007199254740993', value: 9_007_199_254_740_992 },
  ),
);

const literals = fc.constantFrom(true, false, null).map((value) => ({ text: String(value), value }));

interface Member {
  readonly name: Sample & { readonly value: string };
  readonly item: Sample;
}

/** Own members all, a later one of a name in the place of the earlier: ECMA-262, InternalizeJSONProperty. */
function objectOf(members: readonly Member[]): object {
  const made = {};
  for (const { name, item } of members) {
    const { value } = item;
    Object.defineProperty(made, name.value, { value, enumerable: true, configurable: true, writable: true });
  }
  return made;
}

/** Few, so that objects of one text are alike; some that look like indices, and `__proto__`. */
const NAMES = ['0', '7', '42', '__proto__', 'constructor', 'a', 'ab'];

/**
 * JSON texts of every kind, in which names are written with escapes.
 * @param unit what names are made of.
 */
export function jsonSamples(unit: fc.Arbitrary<string>): fc.Arbitrary<Sample> {
  const names = strings(fc.oneof(fc.string({ unit, maxLength: 8 }), fc.constantFrom(...NAMES)));
  const scalars = fc.oneof(numbers, literals).map((sample) => ({ ...sample, twice: false }));
  return fc.letrec<{ sample: Sample; items: Sample; members: Sample }>((tie) => ({
    sample: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.oneof(strings(fc.string({ unit: 'binary', maxLength: 5 })), scalars),
      tie('items'),
      tie('members'),
    ),
    items: fc.tuple(fc.array(tie('sample'), { maxLength: 4 }), SPACES).map(([items, space]) => ({
      text: `[${space}${items.map(({ text }) => text).join(`${space},`)}${space}]`,
      value: items.map(({ value }) => value),
      twice: items.some(({ twice }) => twice),
    })),
    members: fc
      .tuple(fc.array(fc.record({ name: names, item: tie('sample') }), { maxLength: 4 }), SPACES)
      .map(([members, space]) => ({
        text: `{${space}${members.map(({ name, item }) => `${name.text}${space}:${space}${item.text}`).join(`,${space}`)}}`,
        value: objectOf(members),
        twice:
          members.some(({ item }) => item.twice) ||
          new Set(members.map(({ name }) => name.value)).size < members.length,
      })),
  })).sample;
}

/** Any UTF-16 code unit and what JSON is made of. */
export const ANY_UNIT: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom('\\', '"', ':', '{', '}', '/', '\u2028', '\0', '\n', 'é', '😀'),
  fc.nat(0xffff).map((code) => String.fromCharCode(code)),
  fc.constantFrom('a', 'b', 'c'),
);

/** A text that two values share only where they are alike: also in the order of members, and where -0 stands. */
export function formOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(formOf).join()}]`;
  if (Object.is(value, -0)) return '-0';
  if (typeof value !== 'object' || value === null)
    return typeof value === 'number' ? String(value) : JSON.stringify(value);
  if (Object.getPrototypeOf(value) !== Object.prototype) return 'not a plain object';
  // In the order of the members; `Object.entries` gives own ones alone.
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}:${formOf(member)}`)
    .join()}}`;
}
