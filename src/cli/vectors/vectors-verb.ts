// The command `proto-webhooks vectors run`: runs conformance vectors (test cases) against this library.
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { EDITION_NAMES, type EditionName } from '../../shared/editions.ts';
import { type Skipped, VectorError } from '../../vectors/vector-case.ts';
import type { VectorResult } from '../../vectors/judge.ts';
import { formatEnd, formatResult, runVectors } from '../../vectors/run.ts';
import { collect } from '../files.ts';
import { addVerb, type CliContext, type Paint, type Report, type RunVerb, UsageError } from '../shell.ts';

interface RunFlags {
  readonly protocol?: string;
  readonly edition?: EditionName;
  readonly ignore?: readonly string[];
  readonly json?: boolean;
}

interface Ran {
  readonly results: readonly VectorResult[];
  readonly skipped: readonly Skipped[];
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/**
 * Runs the vectors of each given folder separately, and all given files in one run. If no path is given, runs the
 * package's own vectors.
 */
async function ranOf(paths: readonly string[], flags: RunFlags): Promise<Ran> {
  const skipped: Skipped[] = [];
  const how = {
    ignore: flags.ignore ?? [],
    onSkipped: (one: Skipped) => skipped.push(one),
    ...(flags.protocol !== undefined && { protocol: flags.protocol }),
    ...(flags.edition !== undefined && { edition: flags.edition }),
  };
  if (paths.length === 0) return { results: await runVectors(how), skipped };
  const results: VectorResult[] = [];
  for (const dir of paths.filter(isFolder)) results.push(...(await runVectors({ ...how, dir })));
  const files = paths.filter((path) => !isFolder(path));
  if (files.length > 0) results.push(...(await runVectors({ ...how, files })));
  return { results, skipped };
}

/** The number of characters of the word at the beginning of a line: `ok  ` or `FAIL`. */
const MARK_LENGTH = 4;

function coloured({ results, skipped }: Ran, paint: Paint): string {
  const ok = results.every(({ passed }) => passed);
  const lines = results.map((result) => {
    const text = formatResult(result);
    return paint(result.passed ? 'good' : 'bad', text.slice(0, MARK_LENGTH)) + text.slice(MARK_LENGTH);
  });
  return [...lines, paint(ok ? 'good' : 'bad', formatEnd(results, skipped))].join('\n');
}

async function runAll(places: readonly string[], flags: RunFlags, context: CliContext): Promise<Report> {
  const paths = places.map((place) => resolve(context.cwd, place));
  try {
    const ran = await ranOf(paths, flags);
    const ok = ran.results.every(({ passed }) => passed);
    return { ok, json: { ok, ...ran }, text: (paint) => coloured(ran, paint) };
  } catch (error) {
    if (error instanceof VectorError) throw new UsageError(error.message);
    throw error;
  }
}

export function addVectorsRun(parent: Command, run: RunVerb): void {
  addVerb(parent, 'run', "run conformance vectors, this package's own or others', against this library", [
    'vectors run',
    'vectors run their-vectors/',
    'vectors run positive/001.json --edition 3.1 --json',
  ])
    .argument('[places...]', "folders and files of vectors; without any: this package's own")
    .option('--protocol <name>', 'only this name in wire identifiers (default: proto and adcp)')
    .addOption(new Option('--edition <name>', 'edition of vectors that name none').choices(EDITION_NAMES))
    .option('--ignore <member>', 'a member of vectors that is a comment', collect)
    .action((places: string[], flags: RunFlags) => run(flags, (context) => runAll(places, flags, context)));
}
