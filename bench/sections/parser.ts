import { parseStrictObject } from '../../src/codec/for-tests.ts';
import { envelope } from '../lib/deliveries.ts';
import {
  alternate,
  atMost,
  ownClock,
  plan,
  ratio,
  type Contestant,
  type Figure,
  type Figures,
} from '../lib/measure.ts';

const SIZES: readonly (readonly [string, number, number])[] = [
  ['1 KB', 1024, 20_000],
  ['10 KB', 10_240, 4000],
  ['100 KB', 102_400, 400],
  ['1 MB', 1_000_000, 40],
];

const DIFFERENT = 16;

const MOST = 1.5;

function contestant<T>(name: string, inputs: readonly T[], parse: (input: T) => unknown): Contestant {
  return {
    name,
    run(count) {
      for (let at = 0; at < count; at += 1) parse(inputs[at % inputs.length] as T);
    },
  };
}

function strict(bytes: Uint8Array): void {
  if (!parseStrictObject(bytes).ok) throw new Error('the strict parser refused a good body');
}

/** The strict parser, from bytes, over `JSON.parse`: of text that is ready, and of the same bytes decoded first. */
export async function measure(): Promise<Figures> {
  const results: Record<string, Figure> = {};
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  for (const [name, size, each] of SIZES) {
    const bytes = Array.from({ length: DIFFERENT }, (_, at) => envelope(at, size));
    const texts = bytes.map((one) => decoder.decode(one));
    const times = await alternate(
      [
        contestant('parse', texts, JSON.parse),
        contestant('decode', bytes, (one) => JSON.parse(decoder.decode(one))),
        contestant('strict', bytes, strict),
      ],
      plan(each),
      ownClock,
    );
    results[`${name}: strict parser ÷ JSON.parse`] = atMost(ratio(times, 'strict', 'parse'), MOST);
    results[`${name}: strict parser ÷ decoding and JSON.parse`] = ratio(times, 'strict', 'decode');
  }
  return results;
}
