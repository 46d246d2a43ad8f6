import { VectorError } from '../errors.ts';
import { type JsonObject, isJsonObject } from '../../codec/members.ts';
import type { ShapeContext } from './members.ts';

/** Members that tell a reader something and decide nothing. */
const COMMENTS =
  /^(?:[$_].*|x[-_].*|id|name|title|summary|description|comments?|notes?|remarks?|rationale|reasons?|why|explanation|references?|spec|spec_references?|rules?|rule_refs?|links?|tags?|category|group|section|author|source|since|version|introduced|license|copyright|generated(?:_by|_at)?)$/i;

/** What names of members are made of that say what must come, or what must be so before. */
const DECIDING: ReadonlySet<string> = new Set(
  [
    'expect expected expects expectation expectations must should shall assert assertion assertions',
    'outcome verdict result results decision reject rejected rejects refuse refused refuses accept accepted accepts',
    'allow allowed deny denied valid invalid verify verified verifies success pass passed passes fail fails failed failure',
    'error errors warning warnings state harness setup given precondition preconditions clock skew',
  ].flatMap((words) => words.split(' ')),
);

const wordsOf = (name: string): readonly string[] =>
  name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/);

export const isListOfObjects = (value: unknown): value is readonly unknown[] =>
  Array.isArray(value) && value.some(isJsonObject);

/** Tells what the caller has declared to be comments. */
function unknownMembers(
  json: JsonObject,
  known: readonly string[],
  context: ShapeContext,
): readonly string[] {
  const { ignore, passOver } = context;
  // A null says that there is nothing.
  const names = Object.keys(json).filter(
    (name) => json[name] !== null && !known.includes(name) && !COMMENTS.test(name),
  );
  for (const name of names) if (ignore?.has(name)) passOver?.(name, 'named in ignore');
  return names.filter((name) => ignore?.has(name) !== true);
}

const at = (where: string, name: string): string => (where === '' ? name : `${where}.${name}`);

function notKnown(where: string, name: string, known: readonly string[]): VectorError {
  return new VectorError(
    `${at(where, name)} is not known: expected one of ${known.join(', ')}; where it is a comment, name it in ignore`,
  );
}

/**
 * For an object of which every member decides: what must come of a vector, a request, a state.
 * @param where its name, for messages.
 * @throws VectorError naming a member that is neither known nor a comment.
 */
export function onlyMembers(
  json: JsonObject,
  where: string,
  known: readonly string[],
  context: ShapeContext,
): void {
  const [name] = unknownMembers(json, known, context);
  if (name !== undefined) throw notKnown(where, name, known);
}

/**
 * For an object that may have more than is needed. What is not known is passed over, and told; but for what says by its
 * name that it decides, and lists, which may hold the half of the vectors.
 * @throws VectorError naming such a member.
 */
export function mostMembers(
  json: JsonObject,
  where: string,
  known: readonly string[],
  context: ShapeContext,
): void {
  for (const name of unknownMembers(json, known, context)) {
    if (wordsOf(name).some((word) => DECIDING.has(word))) throw notKnown(where, name, known);
    if (isListOfObjects(json[name])) {
      throw new VectorError(
        `${at(where, name)} is a list that is not read: expected one of ${known.join(', ')}; where it is a comment, name it in ignore`,
      );
    }
    context.passOver?.(name, 'not known');
  }
}
