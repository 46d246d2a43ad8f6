import { describe, expect, it } from 'vitest';
import { PROBE_CASES } from '../../src/cli/for-tests.ts';
import { type MistakeUse, mistakesFor, PARTS, WRONG_DELIVERIES } from '../../src/testing/for-tests.ts';
import { MISTAKES } from '../../src/testing/index.ts';
import { TABLE_MUTATIONS } from '../fuzz/table-mutations.ts';

/* That each row is refused as it says is tested where it is used: `fake-seller.test.ts`, `cli/probe`, `fuzz`, `vectors` (`drift.test.ts`). */

const namesOf = (use: MistakeUse): readonly string[] => mistakesFor(use).map(([name]) => name);
const rows = Object.entries(WRONG_DELIVERIES);

describe('the table of wrong deliveries', () => {
  it('has no name twice', () => {
    expect(PARTS.flatMap((part) => Object.keys(part))).toEqual(rows.map(([name]) => name));
    expect(rows.length).toBeGreaterThan(150);
  });

  it('has no row that nobody makes', () => {
    const used = new Set((['probe', 'seller', 'vectors', 'fuzz'] as const).flatMap(namesOf));
    expect(rows.map(([name]) => name).filter((name) => !used.has(name))).toEqual([]);
  });

  it('is what the probe sends, the fake seller makes and the fuzzer draws from', () => {
    const probed = PROBE_CASES.filter(({ name }) => WRONG_DELIVERIES[name]).map(({ name }) => name);
    expect(probed.toSorted()).toEqual(namesOf('probe').toSorted());
    expect(Object.keys(MISTAKES)).toEqual(namesOf('seller'));
    expect(TABLE_MUTATIONS.map(({ name }) => name)).toEqual(namesOf('fuzz'));
  });
});
