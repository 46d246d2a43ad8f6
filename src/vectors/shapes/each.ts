import { ConfigError } from '../../errors.ts';
import type { UnreadableCase } from '../case.ts';
import { VectorError } from '../errors.ts';
import type { JsonObject, ShapeContext } from './members.ts';
import { textMember } from '../../codec/members.ts';

/** What a vector in a list is called: by its `id`, its `name`, or its place. */
export function nameOf(vector: JsonObject, place: string): string {
  return textMember(vector, 'id') ?? textMember(vector, 'name') ?? place;
}

/** Reads each vector of a list; one that is wrong is a case that fails, and the others are read. */
export function readEach<C>(
  vectors: readonly JsonObject[],
  what: string,
  context: ShapeContext,
  read: (vector: JsonObject, name: string) => C,
): readonly (C | UnreadableCase)[] {
  return vectors.map((vector, index) => {
    const name = nameOf(vector, `${what} ${index + 1}`);
    return readOr(name, context, () => read(vector, name));
  });
}

/** What is read, or a case that fails with the reason why it cannot be. */
export function readOr<C>(name: string, { file }: ShapeContext, read: () => C): C | UnreadableCase {
  try {
    return read();
  } catch (error) {
    // An edition that is not known is a ConfigError, and as much the vector's fault.
    if (!(error instanceof VectorError) && !(error instanceof ConfigError)) throw error;
    return { kind: 'unreadable', name, file, reason: `${file}: ${name}: ${error.message}` };
  }
}
