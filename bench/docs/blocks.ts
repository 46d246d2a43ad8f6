import { NotMeasured } from './measured.ts';

const BLOCK = /(<!-- results:begin ([a-z-]+) -->)[\s\S]*?(<!-- results:end -->)/g;

/** What stands there while a section has no figures. */
const missing = (section: string): string =>
  `_Not measured yet: \`npm run bench -- ${section}\`, then \`npm run docs:performance\`._`;

/** @throws whatever `write` throws but `NotMeasured`. */
export function written(write: () => string): string {
  try {
    return write();
  } catch (error) {
    if (error instanceof NotMeasured) return missing(error.section);
    throw error;
  }
}

/**
 * Replaces what stands between the markers.
 * @throws Error where a block has no writer or a writer no block: neither would be noticed.
 */
export function withBlocks(markdown: string, blocks: Readonly<Record<string, string>>): string {
  const seen = new Set<string>();
  const text = markdown.replaceAll(BLOCK, (_, begin: string, name: string, end: string) => {
    const block = blocks[name];
    if (block === undefined) throw new Error(`nobody writes the block ${name}`);
    seen.add(name);
    return `${begin}\n\n${block}\n\n${end}`;
  });
  const unused = Object.keys(blocks).filter((name) => !seen.has(name));
  if (unused.length > 0) throw new Error(`no block for ${unused.join(', ')}`);
  return text;
}
