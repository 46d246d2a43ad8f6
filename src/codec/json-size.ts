// Estimates if a value's JSON would be too long, before that text is made.
// Called by `observe` and the poller.

import { MAX_DEPTH } from './strict-json.ts';

/**
 * True if the JSON text of a value is certain to have more than `most` characters. Reads no more of the value
 * than it takes to know. Escapes count as the characters that they stand for. Values deeper than `MAX_DEPTH`
 * are not counted, so a circular value has an end.
 */
export function isLongerJson(value: unknown, most: number): boolean {
  return roomAfter(value, most, 0) < 0;
}

/** @returns the room that is left after the value; below 0 if there is none. */
function roomAfter(value: unknown, room: number, level: number): number {
  if (typeof value === 'string') return room - value.length - 2;
  if (typeof value !== 'object' || value === null || level === MAX_DEPTH) return room - 1;
  let left = room - 2;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && left >= 0; at += 1)
      left = roomAfter(value[at], at === 0 ? left : left - 1, level + 1);
    return left;
  }
  const members = value as Readonly<Record<string, unknown>>;
  let commas = 0;
  for (const name of Object.keys(members)) {
    const member = members[name];
    if (member === undefined) continue;
    // A name also takes two quotes and a colon.
    left = roomAfter(member, left - name.length - 3 - commas, level + 1);
    commas = 1;
    if (left < 0) return left;
  }
  return left;
}
