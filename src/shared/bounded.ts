// Keeps a map within a bound by forgetting its oldest entry, for everything that strangers could make grow.

/** Puts an entry last. If the map is full, the entry that was put longest ago is forgotten. */
export function putBounded<K, V>(map: Map<K, V>, key: K, value: V, most: number): V {
  map.delete(key);
  const [oldest] = map.keys();
  if (map.size >= most && oldest !== undefined) map.delete(oldest);
  map.set(key, value);
  return value;
}
