import ts from 'typescript';

export interface Comment {
  /** The line where it begins, from 1 on. */
  readonly line: number;
  /** Without its marks; lines are kept. */
  readonly text: string;
  readonly isDocstring: boolean;
}

/** The most words that a sentence has. */
export const WORDS_OF_A_SENTENCE = 25;

/**
 * Text says in a full sentence what a thing does: none begins as a clause without a head does, not even behind a verb
 * ("Returns what …").
 */
const HEADLESS = [
  /^(?:what|who|whose|whom|which|whether|how|of|where|by)\b/i,
  /^[a-z]+s (?:what|whether|how)\b/i,
  /^(?:returns|gives|says|tells|decides|names|shows) (?:who|whose|whom|which|of|where|by)\b/i,
];

export const isHeadless = (text: string): boolean => HEADLESS.some((pattern) => pattern.test(text));

/** Comments that tools read. */
const DIRECTIVE = /^(?:eslint|oxlint|prettier|@ts-|[#@]__)/;

function rangesIn(source: ts.SourceFile): readonly ts.CommentRange[] {
  const found = new Map<number, ts.CommentRange>();
  const { text } = source;
  const visit = (node: ts.Node): void => {
    const around = [
      ...(ts.getLeadingCommentRanges(text, node.getFullStart()) ?? []),
      ...(ts.getTrailingCommentRanges(text, node.getEnd()) ?? []),
    ];
    // A template's text and a pattern have no comments, whatever they look like.
    for (const range of node.kind === ts.SyntaxKind.JsxText ? [] : around) found.set(range.pos, range);
    for (const child of node.getChildren(source)) if (!isJsDoc(child)) visit(child);
  };
  visit(source);
  return [...found.values()].toSorted((one, other) => one.pos - other.pos);
}

const isJsDoc = (node: ts.Node): boolean =>
  node.kind >= ts.SyntaxKind.FirstJSDocNode && node.kind <= ts.SyntaxKind.LastJSDocNode;

function unmarked(raw: string): string {
  if (raw.startsWith('//')) return raw.slice(2).trim();
  const lines = raw.slice(raw.startsWith('/**') ? 3 : 2, -2).split('\n');
  return lines
    .map((line) => line.replace(/^\s*\*? ?/, '').trimEnd())
    .join('\n')
    .trim();
}

/** Comments of a file in their order; lines of `//` that follow each other are one comment. */
export function commentsOf(file: string, text: string): readonly Comment[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const comments: Comment[] = [];
  let last: { end: number; isLine: boolean } | undefined;
  for (const { pos, end, kind } of rangesIn(source)) {
    const raw = text.slice(pos, end);
    const isLine = kind === ts.SyntaxKind.SingleLineCommentTrivia;
    const goesOn = last?.isLine === true && isLine && /^\n[ \t]*$/.test(text.slice(last.end, pos));
    last = { end, isLine };
    const before = goesOn ? comments.pop() : undefined;
    comments.push({
      line: before?.line ?? source.getLineAndCharacterOfPosition(pos).line + 1,
      text: before ? `${before.text}\n${unmarked(raw)}` : unmarked(raw),
      isDocstring: raw.startsWith('/**'),
    });
  }
  return comments.filter((comment) => !DIRECTIVE.test(comment.text));
}

/** A block of code or a table, by its indentation. */
const INDENTED = /^(?: {4}.*(?:\n|$))+$/;

/** Sentences of prose: code, and the names of tags, are none. */
export function sentencesOf(text: string): readonly string[] {
  const prose = text
    .replace(/@example[\s\S]*?(?=\n@|$)/g, '')
    .replace(/```[\s\S]*?```/g, '')
    .replace(/^@\w+ ?/gm, '\n\n')
    .replace(/\{@link ([^}|]+)[^}]*\}/g, '$1');
  const blocks = prose.split(/\n\s*\n|\n(?=\s*(?:[-|*]|\d+\.) )/);
  return blocks.flatMap((block) =>
    block
      .replace(INDENTED, '')
      .replace(/\s+/g, ' ')
      .split(/(?<=[.!?][)"”]?) (?=["“(`§]?[A-Z`\d])/)
      .map((sentence) => sentence.trim())
      .filter(Boolean),
  );
}

export const wordsOf = (sentence: string): number =>
  sentence.split(/\s+/).filter((word) => /\w/.test(word)).length;

/** A file begins with a comment that says what it does; a line for the shell may stand before it. */
const BEGINS_WITH_COMMENT = /^(?:#!.*\n)?\/\/ /;

/** Breaches of the rules of text in the comments of a file, each with its line. */
export function faultsOf(file: string, text: string): readonly string[] {
  const comments = commentsOf(file, text);
  const head = BEGINS_WITH_COMMENT.test(text) ? comments[0]?.text : undefined;
  const faults = /\w.*[.:]$/s.test(head ?? '')
    ? []
    : [`${file}:1: begins with no sentence that says what it is`];
  for (const comment of comments) {
    const at = `${file}:${comment.line}`;
    if (isHeadless(comment.text)) faults.push(`${at}: begins as a clause: ${comment.text.split('\n')[0]}`);
    for (const sentence of sentencesOf(comment.text)) {
      const words = wordsOf(sentence);
      if (words > WORDS_OF_A_SENTENCE) faults.push(`${at}: ${words} words: ${sentence}`);
    }
  }
  return faults;
}
