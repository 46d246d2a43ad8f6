import { readFileSync, writeFileSync } from 'node:fs';
import { relative, sep } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';
import type { Form } from '../reliability/form.ts';
import { filesOf, TEST_FOLDER } from './groups.ts';

/** Seconds that a test file takes in one form, by its path from `test/`. */
export type Durations = Readonly<Record<string, number>>;

/** The forms whose times are known. The long form has no bound. */
export type TimedForm = Exclude<Form, 'long'>;

/**
 * Seconds that all files of a form may take together, measured on a quiet machine of two cores. The goal for `short` is 920,
 * which the proofs of subscriptions, report windows, impairments, moves and dev exceed; what holds is that `npm test` takes six minutes.
 */
export const MOST_SECONDS: Readonly<Record<TimedForm, number>> = { short: 1015, rows: 2125 };

/** Written by `npm run test:durations`. */
const FILE = new URL('../durations.json', import.meta.url);

/** Test files that run at once where these durations were measured: on two cores (`vitest.config.ts`). */
const AT_ONCE = 3;

export function readDurations(): Readonly<Record<TimedForm, Durations>> {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Record<TimedForm, Durations>;
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

/** Returns what is wrong with a form's times: files that were not measured, or a sum over its bound. */
export function faultsOf(form: TimedForm, files: readonly string[], durations: Durations): readonly string[] {
  const unmeasured = files.filter((file) => !(file in durations));
  const sum = files.reduce((total, file) => total + (durations[file] ?? 0), 0);
  const most = MOST_SECONDS[form];
  return [
    ...unmeasured.map(
      (file) =>
        `${file} was not measured in the form ${form}: TEST_FORM=${form} npm run test:durations -- test/${file}`,
    ),
    ...(sum > most
      ? [
          `the files of the form ${form} take ${Math.ceil(sum)} s together, ${most} s is the most: shorten one, or move it on`,
        ]
      : []),
  ];
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
export function mergedDurations(files: readonly string[], known: Durations, measured: Durations): Durations {
  const all = { ...known, ...measured };
  return Object.fromEntries(files.flatMap((file) => (file in all ? [[file, all[file] ?? 0]] : [])));
}

/** Writes how long each file took that passed; what was not run stays as it was. */
export class DurationsWriter implements Reporter {
  readonly #form: TimedForm;

  constructor(form: TimedForm) {
    this.#form = form;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const passed = modules.filter((module) => module.state() === 'passed');
    const measured = passed.map((module) => [testPath(module.moduleId), secondsOf(module)] as const);
    const known = readDurations();
    const merged = mergedDurations(filesOf(this.#form), known[this.#form], Object.fromEntries(measured));
    writeFileSync(FILE, `${JSON.stringify({ ...known, [this.#form]: merged }, undefined, 2)}\n`);
  }
}
