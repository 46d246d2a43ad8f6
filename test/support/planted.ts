import type { Backend, CommitRequest, Expected, Row, RowId, Unit } from '../../src/stores/index.ts';
import { nameOf } from '../../src/stores/for-tests.ts';
import type { KeptRows } from './row-backend.ts';

/** A backend that does not do what `Backend` says, in one thing. */
export type Planted = (backend: Backend, kept: KeptRows) => Backend;

/** Each unit changed before it is compared. */
function units(change: (unit: Unit, kept: KeptRows) => Unit): Planted {
  return (backend, kept) => ({
    ...backend,
    commit: (request) =>
      backend.commit({ ...request, units: request.units.map((unit) => change(unit, kept)) }),
  });
}

/** Whatever version it has, it is the one that was expected. */
const any = <E extends Expected>(expected: E, kept: KeptRows): E => ({
  ...expected,
  version: kept.rows.get(nameOf(expected))?.version,
});

/** Records that came with others. */
function without(rows: readonly Row[], asked: readonly RowId[]): readonly Row[] {
  const names = new Set(asked.map(nameOf));
  return rows.filter((row) => row.kind !== 'record' || names.has(nameOf(row)));
}

/** What each test of a race has to notice (admission.md §8.3 to §8.10). */
export const PLANTED = {
  'versions are not compared': units(({ expects, writes, ...rest }, kept) => ({
    ...rest,
    expects: expects.map((one) => any(one, kept)),
    writes: writes.map((one) => any(one, kept)),
  })),
  'rows that are only read are not compared': units(({ expects, ...rest }, kept) => ({
    ...rest,
    expects: expects.map((one) => any(one, kept)),
  })),
  'rows that have to be absent are not compared': units(({ expects, writes, ...rest }, kept) => ({
    ...rest,
    expects: expects.filter(({ version }) => version !== undefined),
    writes: writes.map((one) => (one.version === undefined ? any(one, kept) : one)),
  })),
  'a known task is written without its version': units(({ writes, ...rest }, kept) => ({
    ...rest,
    writes: writes.map((one) => (one.kind === 'task' && one.version !== undefined ? any(one, kept) : one)),
  })),
  'any clock is taken': (backend) => ({
    ...backend,
    commit: async (request: CommitRequest) => backend.commit({ ...request, at: await backend.clock() }),
  }),
  'what waits for a task does not come with it': (backend) => ({
    ...backend,
    commit: async (request: CommitRequest) => {
      const result = await backend.commit(request);
      const asked = request.units.flatMap(({ expects, writes }) => [...expects, ...writes]);
      return { ...result, rows: without(result.rows, asked) };
    },
    load: async (request) => {
      const result = await backend.load(request);
      return { ...result, rows: without(result.rows, request.rows) };
    },
  }),
} satisfies Readonly<Record<string, Planted>>;

export type PlantedName = keyof typeof PLANTED;
