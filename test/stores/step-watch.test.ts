import { afterEach, describe, expect, it, vi } from 'vitest';
import { stepWatch } from '../../src/stores/for-tests.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** A watch, and this process's own clock. */
function watched() {
  let own = 1000;
  vi.spyOn(performance, 'now').mockImplementation(() => own);
  const watch = stepWatch();
  return {
    watch,
    pass: (ms: number) => {
      own += ms;
      return own;
    },
  };
}

describe('stepWatch', () => {
  it('reports a step back once, in the next answer', () => {
    const { watch, pass } = watched();
    watch.seen(5_000_000, 1000);
    const since = pass(500);
    watch.seen(1_400_500, since);
    expect(watch.told({})).toEqual({ clockSteppedMs: 3_600_000 });
    expect(watch.told({})).toEqual({});
  });

  it('does not take late answers, other nodes’ clocks or drift for a step', () => {
    const { watch, pass } = watched();
    watch.seen(5_000_000, 1000);
    // Asked at once, and read a minute later, for the process stood still.
    pass(60_000);
    watch.seen(5_000_010, 1010);
    watch.seen(5_059_100, pass(0));
    // Ten hours, and the two clocks 20 s apart.
    const since = pass(36_000_000);
    watch.seen(5_059_100 + 36_000_000 - 20_000, since);
    expect(watch.told({})).toEqual({});
  });
});
