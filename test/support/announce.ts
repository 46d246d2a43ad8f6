/*
 * `node test/support/announce.ts`: says what a run of tests runs, and about how long it takes. `TEST_FORM` and `TEST_GROUP`
 * choose the run. With `--check` it fails if a file was not measured, or if a form takes longer than it may.
 */
import { expectedSeconds, faultsOf, readDurations } from './durations.ts';
import { filesOf, GROUPS, selectionOf, type Group } from './groups.ts';

const { form, group: only } = selectionOf(process.env);
const durations = readDurations();

function time(files: readonly string[]): string {
  if (form === 'long') return 'no bound';
  const seconds = expectedSeconds(files, durations[form]);
  return `about ${seconds < 90 ? `${Math.ceil(seconds / 5) * 5} s` : `${Math.ceil(seconds / 60)} min`}`;
}

function line(name: string, files: readonly string[], what: string): string {
  return `${name.padEnd(12)}${String(files.length).padStart(4)} files, ${time(files).padEnd(12)} ${what}`;
}

function check(): void {
  const faults = (['short', 'rows'] as const).flatMap((timed) =>
    faultsOf(timed, filesOf(timed), durations[timed]),
  );
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exitCode = 1;
}

function announce(): void {
  if (only === undefined) {
    console.log(
      line('all tests', filesOf(form), 'on two cores; missing servers and runtimes are fetched first'),
    );
  }
  for (const group of only === undefined ? (Object.keys(GROUPS) as Group[]) : [only]) {
    const files = filesOf(form, group);
    if (files.length > 0) console.log(line(group, files, GROUPS[group]));
  }
}

if (process.argv.includes('--check')) check();
else announce();
