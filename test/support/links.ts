import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const FENCED = /^(```+|~~~+)[^]*?^\1[ \t]*$/gm;
const CODE = /(`+)(?:(?!\1)[^])*?\1(?!`)/g;

/** Inline `[text](target "title")` and `![…](…)`, `[label]: target`, and HTML's `href` and `src`. */
const LINKS = [
  /\]\(\s*<?([^)>\s]*)>?(?:\s+["'(][^)]*)?\)/g,
  /^ {0,3}\[[^\]]+\]:\s*<?([^>\s]+)>?/gm,
  /<[a-z][^>]*?\s(?:href|src)=["']([^"']*)["']/gi,
];

/** Targets of a page's links, as written; samples of code have none. */
export function linksOf(markdown: string): readonly string[] {
  const text = markdown.replaceAll(FENCED, '').replaceAll(CODE, '');
  return LINKS.flatMap((pattern) => [...text.matchAll(pattern)].map(([, target = '']) => target));
}

/** What `#…` can name in a page: its headings, as GitHub and npm make ids of them, and HTML ids. */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const text = markdown.replaceAll(FENCED, '');
  const seen = new Map<string, number>();
  const headings = [...text.matchAll(/^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*$/gm)].map(([, title = '']) => {
    const slug = title
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-');
    const before = seen.get(slug) ?? 0;
    seen.set(slug, before + 1);
    return before === 0 ? slug : `${slug}-${before}`;
  });
  const ids = [...text.matchAll(/<[a-z][^>]*?\s(?:id|name)=["']([^"']+)["']/gi)].map(([, id = '']) => id);
  return new Set([...headings, ...ids]);
}

/** Why a link from `page` leads nowhere in `folder`; undefined where it leads somewhere, or outside by a scheme. */
function linkFault(folder: string, page: string, target: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return undefined;
  if (target.startsWith('/')) return 'is not relative';
  const [path = '', anchor] = target.split('#', 2);
  const file = path === '' ? page : join(dirname(page), decodeURIComponent(path));
  if (file.startsWith('..') || !existsSync(join(folder, file))) return 'is not there';
  if (anchor === undefined || statSync(join(folder, file)).isDirectory()) return undefined;
  const names = anchorsOf(readFileSync(join(folder, file), 'utf8'));
  return names.has(decodeURIComponent(anchor)) ? undefined : 'has no such heading';
}

/** Links of `page` (its path from `folder`) that lead nowhere, each with the reason. */
export function deadLinks(folder: string, page: string): readonly string[] {
  return linksOf(readFileSync(join(folder, page), 'utf8')).flatMap((target) => {
    const fault = linkFault(folder, page, target);
    return fault === undefined ? [] : [`${page}: ${target} ${fault}`];
  });
}

/** Paths and commands that only the repository has: its top folders, its own documents, npm's scripts. */
const CITED =
  /(?<![\w./:@-])(?:(?<folder>bench|examples|scripts|src(?!\/routes)|test)\/[\w./*{}-]*|(?<page>ARCHITECTURE|CONTRIBUTING)\.md|(?<script>npm (?:test\b|run [\w:-]+)))/g;

/** Paragraphs, list items and rows; a sample of code belongs to what stands before it. */
const blocksOf = (markdown: string): readonly string[] =>
  markdown.replaceAll(/\n\s*\n(?=```)/g, '\n').split(/\n\s*\n|\n(?=\s*[-*|] ?)/);

/**
 * What a page cites that only the repository has, where its reader is not told so: by the word "repository" in the same
 * block, or in one before that cites something of the same folder, or a script of npm's where this is one.
 */
export function unexplained(markdown: string): readonly string[] {
  const told = new Set<string>();
  return blocksOf(markdown).flatMap((block) => {
    const cited = [...block.matchAll(CITED)].map(({ 0: text, groups }) => {
      const { folder, page } = groups ?? {};
      return { text, kind: folder ?? page ?? 'npm' };
    });
    if (/\brepository\b/.test(block)) for (const { kind } of cited) told.add(kind);
    return cited.flatMap(({ text, kind }) => (told.has(kind) ? [] : [text]));
  });
}

/** Documents that a text names and that are none of `pages`; those of the repository are `unexplained`'s. */
export function strangePages(text: string, pages: readonly string[]): readonly string[] {
  const named = [...text.matchAll(/(?<![\w./@-])[\w./-]+\.md\b/g)].map(([name]) =>
    name.replace(/^(\.\.?\/)+/, ''),
  );
  return [...new Set(named)].filter(
    (name) => !pages.some((page) => `/${page}`.endsWith(`/${name}`)) && name.search(CITED) === -1,
  );
}

/** Files in code spans, by path from the top of the repository, that are not there. `*` stands for part of a name. */
export function missingFiles(root: string, markdown: string): readonly string[] {
  const spans = [...markdown.replaceAll(FENCED, '').matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span);
  const paths = spans.filter((span) =>
    /^(?:(?:\.ci|bench|docs|examples|scripts|src|test|vectors)\/[\w./*-]*|[A-Z]+\.md)$/.test(span),
  );
  return paths.filter((path) => !isThere(root, path));
}

/** npm's scripts that a page names and that are none of `scripts`. */
export function missingScripts(markdown: string, scripts: object): readonly string[] {
  const named = [...markdown.matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name = '']) => name);
  return named.filter((name) => !Object.hasOwn(scripts, name));
}

/** Names of code that a page has in code spans, and that are not words of `code`. */
export function missingNames(markdown: string, code: string): readonly string[] {
  const words = new Set(code.match(/[A-Za-z_]\w*/g));
  const named = [...markdown.replaceAll(FENCED, '').matchAll(/`([A-Za-z_]\w*)`/g)].map(
    ([, name = '']) => name,
  );
  return named.filter((name) => !words.has(name));
}

function isThere(root: string, path: string): boolean {
  if (!path.includes('*')) return existsSync(join(root, path));
  const folder = join(root, dirname(path));
  const name = basename(path)
    .split('*')
    .map((part) => part.replaceAll('.', '\\.'));
  return (
    existsSync(folder) && readdirSync(folder).some((file) => new RegExp(`^${name.join('.*')}$`).test(file))
  );
}
