import { readFileSync, writeFileSync } from 'node:fs';
import { relative, sep } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';
import { TEST_FOLDER, testFiles } from './groups.ts';

/** Seconds that a test file takes, by its path from `test/`. */
export type Durations = Readonly<Record<string, number>>;

/** Written by `npm run test:durations`. */
const FILE = new URL('../durations.json', import.meta.url);

/** Test files that run at once where these durations were measured: on two cores (`vitest.config.ts`). */
const AT_ONCE = 3;

export function readDurations(): Durations {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Durations;
}

/** Seconds until all of `files` are run. One that was not measured yet is taken for a short one. */
export function expectedSeconds(files: readonly string[], durations: Durations): number {
  const each = files.map((file) => durations[file] ?? 1);
  return Math.max(0, ...each, each.reduce((sum, seconds) => sum + seconds, 0) / AT_ONCE);
}

/**
 * Longest first: begun last, each would have the others wait for it at the end of a run. One that was not measured
 * yet comes before all, for it may be long.
 */
export function longestFirst(durations: Durations): (a: string, b: string) => number {
  const rank = (file: string): number => durations[file] ?? Number.MAX_VALUE;
  return (a, b) => rank(b) - rank(a);
}

/** A test file's path from `test/`. */
export const testPath = (moduleId: string): string => relative(TEST_FOLDER, moduleId).split(sep).join('/');

function secondsOf(module: TestModule): number {
  const { prepareDuration, setupDuration, environmentSetupDuration, collectDuration, duration } =
    module.diagnostic();
  const ms = prepareDuration + setupDuration + environmentSetupDuration + collectDuration + duration;
  return Math.round(ms / 100) / 10;
}

/** What is known, with what was measured now, of the files that there are. */
export function mergedDurations(known: Durations, measured: Durations): Durations {
  const all = { ...known, ...measured };
  return Object.fromEntries(testFiles().flatMap((file) => (file in all ? [[file, all[file] ?? 0]] : [])));
}

/** Writes how long each file took that passed; what was not run stays as it was. */
export class DurationsWriter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const passed = modules.filter((module) => module.state() === 'passed');
    const measured = passed.map((module) => [testPath(module.moduleId), secondsOf(module)] as const);
    const merged = mergedDurations(readDurations(), Object.fromEntries(measured));
    writeFileSync(FILE, `${JSON.stringify(merged, undefined, 2)}\n`);
  }
}
