// Parses YAML, and finds the line of each member. `read-config.ts` calls it. Messages repeat no text of the file.
import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
} from 'yaml';

/** A path to a part of the file: names of members, and indexes. */
export type Path = readonly PropertyKey[];

/** Line and column, counted from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A mistake in the configuration file, before it is reported. */
export interface Mistake {
  readonly path: Path;
  /** The position, if the path does not lead to it. */
  readonly position?: Position;
  /** The mistake in words, and what to write. */
  readonly text: string;
}

/** A parsed YAML file. */
export interface YamlText {
  readonly value: unknown;
  readonly mistakes: readonly Mistake[];
  /**
   * Returns the position of the member's name, or of the list item, at a path. If the path does not exist, returns the
   * position of its nearest parent.
   */
  readonly at: (path: Path) => Position;
}

/**
 * Messages about YAML faults, by the parser's error code. The parser's own messages are not used, because they may
 * repeat a secret from the file.
 */
const WRONG: Partial<Readonly<Record<ErrorCode, string>>> = {
  BAD_INDENT: 'the indentation is not that of the lines above. Write members of one mapping in one column.',
  DUPLICATE_KEY: 'the member is there twice. Write it once.',
  MULTIPLE_DOCS: 'a second document begins. Write one, without --- in between.',
  MISSING_CHAR: 'a quote, a bracket, a comma or a colon is missing. Write it.',
  TAB_AS_INDENT: 'a tab indents. Write spaces.',
  TAG_RESOLVE_FAILED: 'has a tag of its own. Write the value without it.',
};

const UNREADABLE = 'is not YAML 1.2. Look at its indentation, quotes and brackets.';

/**
 * Finds aliases, anchors and tags, which the configuration file may not have. Aliases can make a small file very large,
 * and tags define types of their own.
 */
function refusals(document: Document.Parsed, at: (offset: number) => Position): Mistake[] {
  const found: Mistake[] = [];
  visit(document, (_, node) => {
    if (!isNode(node)) return;
    const position = at(node.range?.[0] ?? 0);
    if (isAlias(node) || node.anchor !== undefined) {
      found.push({ path: [], position, text: 'has an alias or an anchor. Write the value itself.' });
    } else if (node.tag !== undefined) {
      found.push({ path: [], position, text: WRONG.TAG_RESOLVE_FAILED ?? UNREADABLE });
    }
  });
  return found;
}

/** Returns the offset of a member's name, or of a list item, and its value; undefined if there is none. */
function offsetOf(
  parent: unknown,
  part: PropertyKey,
): { readonly offset: number; readonly child: unknown } | undefined {
  if (isSeq(parent)) {
    const child = parent.items[Number(part)];
    return isNode(child) ? { offset: child.range?.[0] ?? 0, child } : undefined;
  }
  if (!isMap(parent)) return undefined;
  const pair = parent.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
  return isScalar(pair?.key) ? { offset: pair.key.range?.[0] ?? 0, child: pair.value } : undefined;
}

/** Reads one YAML document. If the text is no valid YAML, only that is reported, and the value is undefined. */
export function readYaml(source: string): YamlText {
  const lines = new LineCounter();
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const document = parseDocument(source, { version: '1.2', lineCounter: lines, prettyErrors: false });
  const wrong = [...document.errors, ...document.warnings].map(({ code, pos }) => ({
    path: [],
    position: at(pos[0]),
    text: WRONG[code] ?? UNREADABLE,
  }));
  const { explicit = false, version } = document.directives.yaml;
  if (explicit && version !== '1.2')
    wrong.push({ path: [], position: at(0), text: `is YAML ${version}. Write 1.2, without %YAML.` });
  const mistakes = wrong.length > 0 ? wrong : refusals(document, at);
  return {
    value: mistakes.length > 0 ? undefined : document.toJS(),
    mistakes,
    at: (path) => {
      let offset = isNode(document.contents) ? (document.contents.range?.[0] ?? 0) : 0;
      let node: unknown = document.contents;
      for (const part of path) {
        const next = offsetOf(node, part);
        if (!next) break;
        ({ offset, child: node } = next);
      }
      return at(offset);
    },
  };
}
