// Limits the size of a map by dropping its oldest entry.
// Used for every map that strangers could otherwise make grow without limit.

/**
 * Adds an entry at the end of the map, and returns its value. If the map is full, the entry that was added longest ago
 * is dropped.
 */
export function putBounded<K, V>(map: Map<K, V>, key: K, value: V, most: number): V {
  map.delete(key);
  const [oldest] = map.keys();
  if (map.size >= most && oldest !== undefined) map.delete(oldest);
  map.set(key, value);
  return value;
}
