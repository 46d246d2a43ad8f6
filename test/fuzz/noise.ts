import type { Random } from '../reliability/processes/random.ts';

/** What structured fields, URLs, base64 and JSON are made of, and what Latin-1 adds; no control characters but HTAB. */
const SIGNS = '"\\;,=:()?@%*-_+/.~&#{}[]<> \t\u00e9\u00ffAZaz09'.split('');

type Change = (text: string, at: number, random: Random) => string;

const CHANGES: readonly Change[] = [
  (text, at, random) => text.slice(0, at) + random.pick(SIGNS) + text.slice(at + 1),
  (text, at, random) => text.slice(0, at) + random.pick(SIGNS) + text.slice(at),
  (text, at) => text.slice(0, at) + text.slice(at + 1),
  (text, at) => text.slice(0, at),
  (text, at) => text.slice(at),
  (text, at, random) => text.slice(0, at) + text.slice(random.below(text.length + 1)),
  (text, at) => text + text.slice(at),
  // Of ASCII alone: the capital of ÿ is no Latin-1, and a door would send another character for it.
  (text, at) => text.slice(0, at) + text.slice(at).replaceAll(/[a-z]+/g, (small) => small.toUpperCase()),
];

/** One to three changes anywhere in the text. */
export function noisy(text: string, random: Random): string {
  const times = 1 + random.below(3);
  let changed = text;
  for (let i = 0; i < times; i += 1)
    changed = random.pick(CHANGES)(changed, random.below(changed.length + 1), random);
  return changed;
}

export const noisyBytes = (bytes: Uint8Array, random: Random): Uint8Array =>
  Buffer.from(noisy(Buffer.from(bytes).toString('latin1'), random), 'latin1');
