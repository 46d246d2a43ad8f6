import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Test files that take longest on a fresh machine, and wait most (for npm, servers, a compiler), longest first: begun
 * last, each would have the others wait for it at the end of a run.
 */
const LONGEST = [
  'examples/servers',
  'stores/better-sqlite3',
  'consumers/consumers',
  'runtimes/runtimes',
  'examples/lambda',
  'examples/worker',
  'reliability/kill/kill',
  'reliability/stampede/stampede',
  'reliability/model',
  'adapters/flood',
  'cli/process',
  'reliability/faults/link',
  'stores/redis-cluster',
  'reliability/faults/redis',
  'queues/crash',
  'stores/redis-sentinel',
  'stores/sqlite',
  'reliability/kill/bites',
].map((name) => fileURLToPath(new URL(`../${name}.test.ts`, import.meta.url)));

/** Long files first, then as vitest has it: by its cache of durations, else by size. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const gone = LONGEST.filter((file) => !existsSync(file));
    if (gone.length > 0) throw new Error(`no such test files: ${gone.join(', ')}`);
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = LONGEST.indexOf(moduleId);
      return place === -1 ? LONGEST.length : place;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
