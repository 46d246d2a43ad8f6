import type { LoadRequest, LoadResult } from '../backend.ts';
import { indexOf, rowName, seenOf } from './rows.ts';
import type { Session } from './session.ts';

/** `Backend.load`. */
export async function load(session: Session, { rows, bodies, counts }: LoadRequest): Promise<LoadResult> {
  const sender = (rows[0] ?? bodies[0])?.scope.sender ?? counts[0]?.sender ?? '';
  // With it comes what others have told of all nonces.
  if (counts.length > 0) await session.registry.register(sender);
  const reply = await session.read('load', sender, {
    names: [...rows, ...bodies].map(rowName),
    bodies: bodies.map(({ id }) => id),
    counts: counts.map(indexOf),
  });
  const { more: _none, isOld: _never, ...seen } = seenOf(sender, counts, reply);
  return { ...seen, nonces: session.counts.seen(sender, { ...seen, untilMs: 0 }) };
}
