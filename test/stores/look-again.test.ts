import { describe, expect, it } from 'vitest';
import { checkVersion, lookAgain, missingSteps } from '../../src/stores/for-tests.ts';

/** A look that fails while it is told to, on a clock of the test's. */
function looking(): {
  readonly passed: () => Promise<void> | undefined;
  readonly due: () => void;
  readonly at: { ms: number; wrong: Error | undefined; looks: number };
} {
  const at = { ms: 1_000_000, wrong: undefined as Error | undefined, looks: 0 };
  const look = async (): Promise<void> => {
    at.looks += 1;
    if (at.wrong) throw at.wrong;
  };
  return { ...lookAgain(look, () => at.ms), at };
}

describe('lookAgain', () => {
  it('checks 10 s after the last check, not before', async () => {
    const { passed, at } = looking();
    at.ms += 9_999;
    expect(passed()).toBeUndefined();
    at.ms += 1;
    await passed();
    at.ms += 9_999;
    expect(passed()).toBeUndefined();
    at.ms += 1;
    await passed();
    expect(at.looks).toBe(2);
  });

  it('shares one check among concurrent calls', async () => {
    const { passed, at } = looking();
    at.ms += 10_000;
    await Promise.all([passed(), passed(), passed()]);
    expect(at.looks).toBe(1);
  });

  it('checks with each call while something is wrong, and every 10 s once it is fixed', async () => {
    const { passed, at } = looking();
    at.ms += 10_000;
    at.wrong = new Error('wrong');
    const both = await Promise.allSettled([passed(), passed()]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(passed()).rejects.toThrow('wrong');
    expect(at.looks).toBe(2);
    at.wrong = undefined;
    await passed();
    expect(passed()).toBeUndefined();
    at.ms += 10_000;
    expect(passed()).toBeDefined();
  });

  it('checks again when asked during a check', async () => {
    const { passed, due, at } = looking();
    due();
    const first = passed();
    due();
    await first;
    await passed();
    expect(at.looks).toBe(2);
    expect(passed()).toBeUndefined();
  });

  it('checks again when the clock was set back', async () => {
    const { passed, at } = looking();
    at.ms -= 10_000;
    await passed();
    expect(at.looks).toBe(1);
  });
});

describe('a package whose schema has version 6', () => {
  const at = { store: 'someStore', place: 'the database has', own: 'a schema' };
  const steps = ['makes 4', 'makes 5', 'makes 6'];

  it.each([
    [0, /^someStore: the schema "s" has no tables of the store\. Run migrate\(pool\) when you deploy\.$/],
    [3, /has schema version 3, this package needs 6, and nothing upgrades it\. Let the build/],
    [4, /has schema version 4, this package needs 6\. Run migrate\(pool\) when you deploy\.$/],
    [5, /has schema version 5, this package needs 6\. Run migrate\(pool\) when you deploy\.$/],
    [7, /has schema version 7, this package knows 6\. Upgrade proto-webhooks/],
    [Number.NaN, /has schema version NaN, this package knows 6\./],
  ])('refuses version %d', (version, message) => {
    expect(() => checkVersion(at, 6, version, 'the schema "s"')).toThrow(message);
  });

  it('runs the steps that are missing, in their order', () => {
    const missing = (version: number): unknown => missingSteps(at, steps, version);
    expect(missing(0)).toEqual(['makes 4', 'makes 5', 'makes 6']);
    expect(missing(4)).toEqual(['makes 5', 'makes 6']);
    expect(missing(6)).toEqual([]);
    for (const version of [1, 2, 3, 7, -1, Number.NaN]) {
      expect(() => missing(version)).toThrow('schema version');
    }
    checkVersion(at, 6, 6, 'the schema "s"');
  });
});
