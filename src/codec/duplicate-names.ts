import { stringEnd } from './json-reader.ts';

const QUOTE = '"';
const BACKSLASH = '\\';

/**
 * Names that occur twice in one object, after unescaping, in order of their second occurrence. Slower than counting:
 * for text that is known to be valid JSON with a duplicate.
 * @param limit stop after so many different names.
 */
export function duplicateNames(text: string, limit: number): readonly string[] {
  const found = new Set<string>();
  /** The names of each open object; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let lastString = '';
  for (let at = 0; at < text.length && found.size < limit; at += 1) {
    switch (text.charAt(at)) {
      case QUOTE: {
        const end = stringEnd(text, at);
        lastString = text.slice(at, end + 1);
        at = end;
        break;
      }
      // A colon outside strings: the string before it was a name.
      case ':': {
        const names = open.at(-1);
        const name = nameOf(lastString);
        if (names?.has(name)) found.add(name);
        names?.add(name);
        break;
      }
      case '{':
        open.push(new Set());
        break;
      case '[':
        open.push(undefined);
        break;
      case '}':
      case ']':
        open.pop();
        break;
      default:
    }
  }
  return [...found];
}

/** `literal` is a JSON string with its quotes. */
function nameOf(literal: string): string {
  return literal.includes(BACKSLASH) ? String(JSON.parse(literal)) : literal.slice(1, -1);
}
