import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { NOW } from '../auth/rfc9421/support.ts';
import { FORM, inThisForm } from '../reliability/form.ts';
import { GENERATORS } from './codes.ts';
import { randomOf } from '../reliability/processes/random.ts';
import { ENDPOINTS } from './draft.ts';
import { fuzz, openWarm } from './fuzz.ts';
import { ALL, inputOf, inputWith, UNSIGNED } from './inputs.ts';
import { FAULTS, fuzzWith } from './planted.ts';
import { TABLE_MUTATIONS } from './table-mutations.ts';
import { BEARER_BESIDE } from './url-mutations.ts';
import { WAYS } from './ways.ts';
import { tell } from '../support/tell.ts';

/** A fixed one in `npm test`, so that a run that fails fails again. */
const SEED = FORM === 'long' ? Date.now() % 2 ** 31 : 20_260_101;
/** Deliveries of a part, and how many of them at least end in each code. Each part has a seed of its own. */
const { inputs, atLeast, hours, parts } = {
  short: { inputs: 500, atLeast: 2, hours: 0.5, parts: 1 },
  rows: { inputs: 3_000, atLeast: 20, hours: 0.5, parts: 1 },
  long: { inputs: 100_000, atLeast: 100, hours: 6, parts: 10 },
}[FORM];
const PARTS = Array.from({ length: parts }, (_, index) => ({ part: index + 1, seed: SEED + index }));

// The store's clock is read in two steps; a pause between them looks like a clock that was set back, in one way alone.
beforeAll(() => void vi.useFakeTimers({ toFake: ['Date'], now: NOW * 1000 }));
afterAll(() => void vi.useRealTimers());

describe(`fuzz: ${inputs} deliveries by every engine, door and the call with two arguments`, () => {
  it.each(PARTS)(
    `all of them agree, answer what is right, and every code is reached: part $part of ${parts}`,
    { timeout: hours * 3_600_000 },
    async ({ seed }) => {
      const { counts, findings } = await fuzz({ seed, inputs });
      if (FORM === 'long') tell({ seed, inputs, findings: findings.length });
      expect(findings).toEqual([]);
      const reachable = Object.entries(GENERATORS).filter(([, generator]) => generator !== 'elsewhere');
      const rare = reachable.map(([code]) => [code, counts.get(code) ?? 0] as const);
      console.info(
        `fuzzed ${inputs} deliveries; the rarest code: ${Math.min(...rare.map(([, count]) => count))}`,
      );
      expect(rare.filter(([, count]) => count < atLeast)).toEqual([]);
    },
  );

  it('the same seed gives the same bytes, another one others', () => {
    const bytes = (seed: number): string =>
      JSON.stringify(Array.from({ length: 50 }, (_, index) => inputOf(seed, index)));
    expect(bytes(1)).toBe(bytes(1));
    expect(bytes(1)).not.toBe(bytes(2));
  });
});

const TABLE_BY = ['node', 'verifier'].flatMap((name) =>
  ENDPOINTS.map((endpoint) => ({ name, endpoint }) as const),
);

it.each(inThisForm(TABLE_BY, ({ name, endpoint }) => name === 'verifier' || endpoint !== 'prefix'))(
  'the table of wrong deliveries, each row alone, by $name: $endpoint',
  async ({ name, endpoint }) => {
    const way = WAYS.find((one) => one.name === name);
    if (!way) throw new Error(`no way is named ${name}`);
    await using open = await openWarm(way, endpoint, SEED);
    const rows = TABLE_MUTATIONS.filter(({ endpoints }) => endpoints.includes(endpoint));
    expect(rows.length).toBeGreaterThan(50);
    const random = randomOf(SEED);
    for (const row of rows) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other: the code is that of the last outcome
      const { code } = await open.deliver(inputWith([row], endpoint, random).request);
      expect({ row: row.name, code }).toEqual({ row: row.name, code: row.gives });
    }
  },
);

it('a delivery without a signature whose bearer token was meant to stand beside it is one of another scheme', async () => {
  const both = [UNSIGNED, BEARER_BESIDE].map((wanted) => ALL.find(({ name }) => name === wanted));
  const input = inputWith(
    both.filter((mutation) => mutation !== undefined),
    'prefix',
    randomOf(SEED),
  );
  expect(input.mutations).toEqual([UNSIGNED, BEARER_BESIDE]);
  const [way] = WAYS;
  if (!way) throw new Error('there is no way');
  await using open = await openWarm(way, 'prefix', SEED);
  const { code } = await open.deliver(input.request);
  expect(input.expected).toEqual(new Set([code]));
});

it('what is sent in header fields is Latin-1, or doors would send something else than the direct call gets', () => {
  const beyond = /[\u0100-\uffff]/;
  const wide: string[] = [];
  const look = (index: number): void => {
    for (const [name, value] of inputOf(SEED, index).request.headers) if (beyond.test(value)) wide.push(name);
  };
  // The first that was found, and many others.
  for (let index = 0; index < 3_000; index += 1) look(index);
  look(289_782);
  expect(wide).toEqual([]);
});

/** `npm test` has the two that are found first. */
it.each(inThisForm(FAULTS, ({ name }) => /digests|engine/.test(name)))(
  'what the short run rests on: a fault that is planted is found: $name',
  async (fault) => {
    const fuzzFaulty = await fuzzWith(fault);
    const { findings } = await fuzzFaulty({ seed: SEED, inputs: 3_000, most: 1 });
    expect(findings).toHaveLength(1);
  },
);
