import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { CliContext, Paint, Report } from '../shell.ts';
import { UsageError } from '../usage-error.ts';
import type { Explanation } from './explain.ts';

/** Captures of one cause. */
interface Cause {
  /** The code of the cause; `none`: a receiver would accept them; `unreadable`. */
  readonly cause: string;
  readonly says: string;
  readonly fix: string;
  /** In their order. */
  readonly files: string[];
}

/** Captures that are looked at. */
const MOST = 1_000;

async function capturesIn(dir: string, context: CliContext): Promise<readonly string[]> {
  try {
    const names = await readdir(resolve(context.cwd, dir));
    return names
      .filter((name) => name.endsWith('.http'))
      .sort()
      .map((name) => join(dir, name));
  } catch (error) {
    throw new UsageError(
      `${dir}: ${(error as NodeJS.ErrnoException).code ?? ''}. Expected a folder of .http files.`,
    );
  }
}

function causeOf({ ok, steps, findings }: Explanation): Omit<Cause, 'files'> {
  const [finding] = findings;
  if (finding) return finding;
  if (ok) return { cause: 'none', says: 'No check fails that can be looked at.', fix: '' };
  const failed = steps.find(({ verdict }) => verdict === 'fail');
  return { cause: failed?.code ?? 'unknown', says: failed?.detail ?? '', fix: '' };
}

function text(causes: readonly Cause[], total: number, paint: Paint): string {
  const blocks = causes.map(({ cause, says, fix, files }) =>
    [
      `${paint('bold', `${files.length} × ${cause}:`)} ${says}`,
      ...(fix === '' ? [] : [`${paint('bold', 'Fix:')} ${fix}`]),
      paint('dim', `e.g. ${files[0] ?? ''}`),
    ].join('\n'),
  );
  return [`${total} captures`, ...blocks].join('\n\n');
}

/**
 * Every capture of a folder, summed up by the first cause of each, the most frequent first.
 * @throws UsageError where there is no such folder, or nothing in it.
 */
export async function explainFolder(
  dir: string,
  context: CliContext,
  explain: (file: string) => Promise<{ readonly explanation: Explanation }>,
): Promise<Report> {
  const files = await capturesIn(dir, context);
  if (files.length === 0) throw new UsageError(`${dir}: there is no .http file in it.`);
  if (files.length > MOST)
    throw new UsageError(`${dir}: ${files.length} captures, and at most ${MOST} are looked at.`);
  const causes = new Map<string, Cause>();
  for (const file of files) {
    const found = await explain(file).then(
      ({ explanation }) => causeOf(explanation),
      (error: unknown) => {
        // What is wrong with a flag is wrong for each of them.
        if (!(error instanceof UsageError) || !error.message.startsWith(file)) throw error;
        return { cause: 'unreadable', says: error.message.slice(file.length + 2), fix: '' };
      },
    );
    const { cause, says, fix } = found;
    const known = causes.get(cause) ?? { cause, says, fix, files: [] };
    known.files.push(file);
    causes.set(cause, known);
  }
  const sorted = [...causes.values()].sort((a, b) => b.files.length - a.files.length);
  return {
    ok: sorted.every(({ cause }) => cause === 'none'),
    json: { captures: files.length, causes: sorted },
    text: (paint) => text(sorted, files.length, paint),
  };
}
