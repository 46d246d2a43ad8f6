import { sleep } from './time-limits.ts';

/** Bytes or characters above which a step that looks at all of an answer is followed by a turn of the event loop. */
const LARGE = 65_536;

/** The event loop's turn, behind a step that has looked at all of an answer of that size (calls.md §4.13); at once for a small one. */
export async function turnAfter(size: number): Promise<void> {
  if (size > LARGE) await sleep(0);
}
