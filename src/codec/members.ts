// Reads members of parsed JSON safely: own members only, and `null` as absent.
// Called wherever a seller's JSON is read.

/** A JSON object as parsed. Any member may be anything; `__proto__` is an own property like any other. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The member of that name, or undefined. `null` counts as absent, because many senders write absence that
 * way.
 */
export function present(object: JsonObject, name: string): unknown {
  // Read first, because most members that are looked up are absent. A value that somebody added to
  // `Object.prototype` is no member.
  const value = object[name] ?? undefined;
  return value !== undefined && Object.hasOwn(object, name) ? value : undefined;
}

/** The member of that name if it is a string. */
export function textMember(object: JsonObject, name: string): string | undefined {
  const value = present(object, name);
  return typeof value === 'string' ? value : undefined;
}

/**
 * The object without its members that are `null`, because many senders write absence that way. Their contents
 * stay.
 */
export function withoutNulls(object: JsonObject): JsonObject {
  const kept = Object.entries(object).filter(([, value]) => value !== null);
  return Object.fromEntries(kept);
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/**
 * `members` without those that are undefined: an optional member of an event is present or absent. For names
 * that we wrote, not for a sender's.
 */
export function defined<T extends Readonly<Record<string, unknown>>>(members: T): Defined<T> {
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(members)) if (members[name] !== undefined) kept[name] = members[name];
  return kept as Defined<T>;
}
