// Decides if a value's JSON text would be too long, without making that text.
// Called by `observe` and the poller.

import { MAX_DEPTH } from './strict-json.ts';

/**
 * True if the JSON text of a value certainly has more than `most` characters. Stops reading the value as soon as that
 * is known. An escaped character counts as one. Values deeper than `MAX_DEPTH` are not counted, so even a circular
 * value is no problem.
 */
export function isLongerJson(value: unknown, most: number): boolean {
  return roomAfter(value, most, 0) < 0;
}

/**
 * Subtracts the length of the value's JSON from `room`, the number of characters that are left.
 * @returns the remaining `room`; below 0 if the value is too long.
 */
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
    // A name also takes two quotes and a colon, besides the comma before it.
    left = roomAfter(member, left - name.length - 3 - commas, level + 1);
    commas = 1;
    if (left < 0) return left;
  }
  return left;
}
