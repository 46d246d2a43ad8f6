// Reads members of parsed JSON safely: own members only, and `null` is treated as absent.
// Called wherever a seller's JSON is read.

/** A parsed JSON object. Any member may have any value; `__proto__` is an own property like any other. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns the object's own member of that name. Undefined if it is absent or `null`, because many senders write `null`
 * for an absent member.
 */
export function present(object: JsonObject, name: string): unknown {
  // The value is read first, because most looked-up members are absent. `hasOwn` then excludes a value that somebody
  // added to `Object.prototype`.
  const value = object[name] ?? undefined;
  return value !== undefined && Object.hasOwn(object, name) ? value : undefined;
}

/** Returns the member of that name if it is a string; otherwise undefined. */
export function textMember(object: JsonObject, name: string): string | undefined {
  const value = present(object, name);
  return typeof value === 'string' ? value : undefined;
}

/**
 * Returns the object without its own members that are `null`, because many senders write `null` for an absent member.
 * Nested objects are not changed.
 */
export function withoutNulls(object: JsonObject): JsonObject {
  const kept = Object.entries(object).filter(([, value]) => value !== null);
  return Object.fromEntries(kept);
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/**
 * Returns `members` without the undefined ones, so that an optional member is either present with a value or absent.
 * Use it only for names from this package's code, not for a sender's.
 */
export function defined<T extends Readonly<Record<string, unknown>>>(members: T): Defined<T> {
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(members)) if (members[name] !== undefined) kept[name] = members[name];
  return kept as Defined<T>;
}
