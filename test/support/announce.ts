/* `node test/support/announce.ts [group]`: says what a run of tests runs, and about how long it takes. */
import { LONG } from '../reliability/form.ts';
import { expectedSeconds, readDurations } from './durations.ts';
import { groupNamed, GROUPS, testFiles, type Group } from './groups.ts';

const durations = readDurations();

function time(files: readonly string[]): string {
  if (LONG) return 'hours';
  const seconds = expectedSeconds(files, durations);
  return `about ${seconds < 90 ? `${Math.ceil(seconds / 5) * 5} s` : `${Math.ceil(seconds / 60)} min`}`;
}

function line(name: string, files: readonly string[], what: string): string {
  return `${name.padEnd(12)}${String(files.length).padStart(4)} files, ${time(files).padEnd(12)} ${what}`;
}

const [, , name] = process.argv;
if (name === undefined) {
  console.log(line('all tests', testFiles(), 'on two cores; missing servers and runtimes are fetched first'));
}
const groups = name === undefined ? (Object.keys(GROUPS) as Group[]) : [groupNamed(name)];
for (const group of groups) console.log(line(group, testFiles(group), GROUPS[group]));
