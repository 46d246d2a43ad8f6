import { randomInt } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Backend, CommitResult, Row, RowId, Scope, Unit, Write } from '../../../src/stores/index.ts';
import {
  keysOf,
  LUA,
  nodeDigests,
  redisBackend,
  type Scripts,
  scriptsOf,
} from '../../../src/stores/redis/for-tests.ts';
import { newPrefix, ownRedis } from '../redis-harness.ts';

const SENDER = 'https://seller.example/mcp';
const SCOPE: Scope = { sender: SENDER };

const recordId = (id: string): RowId => ({ scope: SCOPE, kind: 'record', id });
const newVersion = (): number => randomInt(1, 2 ** 47);

/** A row in place of `before`. */
function write(id: RowId, before?: Row, change: Partial<Write> = {}): Write {
  return {
    ...id,
    version: before?.version,
    next: newVersion(),
    data: '{}',
    body: undefined,
    expiresAt: 9_000_000_000_000,
    dueAt: null,
    suspect: null,
    list: null,
    waitsFor: null,
    link: null,
    bytes: 0,
    bytesBefore: 0,
    before: before && {
      dueAt: null,
      suspect: null,
      list: null,
      waitsFor: null,
      expiresAt: 9_000_000_000_000,
    },
    ...change,
  };
}

const unit = (writes: readonly Write[], more: Partial<Unit> = {}): Unit => ({
  expects: [],
  ...more,
  writes,
});

/** Planned again where the machine was so slow that the plan is of an old clock. */
async function commit(of: Backend, ...units: readonly Unit[]): Promise<CommitResult> {
  for (;;) {
    const result = await of.commit({ at: await of.clock(), units, counts: [] });
    if (!result.isOld) return result;
  }
}

async function rowOf(of: Backend, id: RowId): Promise<Row | undefined> {
  const { rows } = await of.load({ rows: [id], bodies: [], counts: [] });
  return rows.find((row) => row.kind === id.kind && row.id === id.id);
}

/** Two processes: what the second does comes between what the first has read and what it commits. */
const RACES: Readonly<Record<string, (first: Backend, second: Backend) => Promise<void>>> = {
  'a row that is written has changed': async (first, second) => {
    await commit(first, unit([write(recordId('a'))]));
    const read = await rowOf(first, recordId('a'));
    await commit(second, unit([write(recordId('a'), read, { data: '"second"' })]));
    const { refused, rows } = await commit(first, unit([write(recordId('a'), read, { data: '"first"' })]));
    expect(refused).toEqual([0]);
    expect(rows.map(({ data }) => data)).toEqual(['"second"']);
    expect(await rowOf(first, recordId('a'))).toMatchObject({ data: '"second"' });
  },
  'a row that is written is there meanwhile': async (first, second) => {
    await commit(second, unit([write(recordId('a'))]));
    expect((await commit(first, unit([write(recordId('a'))]))).refused).toEqual([0]);
  },
  'a row that is written is gone meanwhile': async (first, second) => {
    await commit(first, unit([write(recordId('a'), undefined, { expiresAt: Date.now() - 1 })]));
    const read = await rowOf(first, recordId('a'));
    expect(await second.sweep(SCOPE, 10)).toBe(1);
    expect((await commit(first, unit([write(recordId('a'), read)]))).refused).toEqual([0]);
  },
  'a row that is only read has changed': async (first, second) => {
    await commit(first, unit([write(recordId('a'))]));
    const read = await rowOf(first, recordId('a'));
    await commit(second, unit([write(recordId('a'), read)]));
    const expects = [{ ...recordId('a'), version: read?.version }];
    expect((await commit(first, unit([write(recordId('b'))], { expects }))).refused).toEqual([0]);
    expect(await rowOf(first, recordId('b'))).toBe(undefined);
  },
  'a row that is only read is there meanwhile': async (first, second) => {
    await commit(second, unit([write(recordId('a'))]));
    const expects = [{ ...recordId('a'), version: undefined }];
    expect((await commit(first, unit([write(recordId('b'))], { expects }))).refused).toEqual([0]);
  },
  'the plan is of an old clock': async (first) => {
    const at = (await first.clock()) - 1001;
    const result = await first.commit({ at, units: [unit([write(recordId('a'))])], counts: [] });
    expect(result.isOld).toBe(true);
    expect(await rowOf(first, recordId('a'))).toBe(undefined);
  },
  'the plan is of many rows, and its clock of a millisecond for each': async (first) => {
    const expects = Array.from({ length: 10_000 }, (_, at) => ({
      ...recordId(`absent ${at}`),
      version: undefined,
    }));
    const units = [unit([write(recordId('a'))], { expects })];
    const isOld = async (byMs: number): Promise<boolean> =>
      (await first.commit({ at: (await first.clock()) - byMs, units, counts: [] })).isOld;
    expect([await isOld(10_002), await isOld(1500)]).toEqual([true, false]);
  },
  'the plan is of a clock that is ahead': async (first) => {
    const at = (await first.clock()) + 10_000;
    const result = await first.commit({ at, units: [unit([write(recordId('a'))])], counts: [] });
    expect(result.isOld).toBe(true);
    expect(await rowOf(first, recordId('a'))).toBe(undefined);
  },
  'one unit of two is overtaken': async (first, second) => {
    await commit(second, unit([write(recordId('a'))]));
    const { refused } = await commit(first, unit([write(recordId('a'))]), unit([write(recordId('b'))]));
    expect(refused).toEqual([0]);
    expect(await rowOf(first, recordId('b'))).toBeDefined();
  },
};

/** What of `lua/commit.lua` is taken out, and the race that shows it. */
const TAKEN_OUT: readonly (readonly [race: string, condition: string, without: string])[] = [
  ['a row that is written has changed', '~= asked.versions[i] then return false', "== 'x' then return false"],
  [
    'a row that is written is there meanwhile',
    "(is[i] and is[i]:sub(1, 16) or '')",
    "(is[i] and asked.versions[i] ~= '' and is[i]:sub(1, 16) or asked.versions[i])",
  ],
  [
    'a row that is written is gone meanwhile',
    "is[i]:sub(1, 16) or '')",
    'is[i]:sub(1, 16) or asked.versions[i])',
  ],
  [
    'a row that is only read has changed',
    'for i = from, from + unit[1] - 1 do\n    if',
    'for i = from, from + unit[2] - 1 do\n    if',
  ],
  [
    'a row that is only read is there meanwhile',
    'for i = from, from + unit[1] - 1 do\n    if',
    'for i = from, from + unit[2] - 1 do\n    if',
  ],
  ['the plan is of an old clock', 'asked.at < now - math.max(1000, #asked.names) or', ''],
  [
    'the plan is of many rows, and its clock of a millisecond for each',
    'math.max(1000, #asked.names)',
    '1000',
  ],
  ['the plan is of a clock that is ahead', 'or asked.at > now + 5', ''],
  ['one unit of two is overtaken', 'if taken then take(', 'if #refused == 0 then take('],
];

describe('lua/commit.lua', () => {
  const own = ownRedis();

  async function race(name: string, scripts: Scripts): Promise<void> {
    const keys = keysOf(newPrefix(), nodeDigests());
    const options = {
      client: own.redis,
      keys,
      scripts,
      clockOffsetMs: () => 0,
      timeoutMs: 30_000,
      waitTimeoutMs: 10_000,
    };
    const [first, second] = [1, 2].map(() => redisBackend({ ...options, waitReplicas: 0 }));
    if (!first || !second) throw new Error('two of them');
    await Promise.all([first.open(), second.open()]);
    try {
      await RACES[name]?.(first, second);
    } finally {
      await Promise.all([first.close(), second.close()]);
    }
  }

  it.each(Object.keys(RACES))('%s', (name) => race(name, scriptsOf(nodeDigests())));

  it.each(TAKEN_OUT)('%s: goes unnoticed without its condition', async (name, condition, without) => {
    expect(LUA.commit.split(condition)).toHaveLength(2);
    const digests = nodeDigests();
    const scripts = scriptsOf(digests);
    const source = scripts.commit.source.replace(condition, without);
    const commit = { source, sha: digests.sha1Hex(source) };
    await expect(race(name, { ...scripts, commit })).rejects.toMatchObject({ name: 'AssertionError' });
  });
});
