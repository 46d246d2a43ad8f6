/** Something that was found and not judged. */
export interface Skipped {
  /** A file, a vector, or a member of one. */
  readonly what: 'file' | 'vector' | 'member';
  /** The file's path in the folder, the vector's name, the member's name. */
  readonly name: string;
  readonly file: string;
  readonly why: string;
}

/** A line for all that were skipped alike: vectors for one reason, members of one name, each file by itself. */
export function skippedLines(skipped: readonly Skipped[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { what, name, why } of skipped) {
    const alike = `${what === 'vector' ? '' : ` ${name}`}: ${why}`;
    const line = `${what}\n${alike}`;
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return [...counts].map(([line, count]) => {
    const [what = '', alike = ''] = line.split('\n');
    return `skipped ${count} ${what}${count === 1 ? '' : 's'}${alike}`;
  });
}
