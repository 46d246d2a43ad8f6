import type { Store } from '../../dist/index.js';
import type { AcceptRequest } from '../../dist/store.js';
import { acceptOne, acceptRequest, completeOne } from './accepts.ts';
import type { Opened } from './backends.ts';
import { concurrently } from './measure.ts';

/** What one more of each costs in room. */
export type RoomKind = 'done' | 'task' | 'nonce' | 'waiting';

const AT_ONCE = 64;

interface Shape {
  readonly task: boolean;
  readonly nonce: boolean;
  readonly complete: boolean;
}

/** What is stored, from the least to the most; a kind's room is what its shape takes more than the one without it. */
const SHAPES = {
  plain: { task: false, nonce: false, complete: true },
  tasks: { task: true, nonce: false, complete: true },
  nonces: { task: false, nonce: true, complete: true },
  waiting: { task: false, nonce: false, complete: false },
} as const satisfies Readonly<Record<string, Shape>>;

function requestOf(at: number, { task, nonce }: Shape): AcceptRequest {
  const request = acceptRequest({ at, task: `task-${at}`, withoutNonce: !nonce });
  const { event } = request;
  if (task || !event) return request;
  const { task: _task, ...rest } = event;
  return { ...request, event: rest };
}

async function fill(store: Store, shape: Shape, from: number, to: number): Promise<void> {
  await concurrently(to - from, AT_ONCE, async (index) => {
    const request = requestOf(from + index, shape);
    await acceptOne(store, request);
    if (shape.complete) await completeOne(store, request);
  });
}

/** Bytes of one, over `count` of them. */
async function bytesOfOne(open: () => Promise<Opened>, shape: Shape, count: number): Promise<number> {
  const { store, bytes, close } = await open();
  try {
    // The sender, the first pages, the scripts.
    await fill(store, shape, 0, 1);
    const before = await bytes(true);
    await fill(store, shape, 1, count + 1);
    return ((await bytes(true)) - before) / count;
  } finally {
    await close();
  }
}

export async function roomOf(
  open: () => Promise<Opened>,
  count: number,
): Promise<Readonly<Record<RoomKind, number>>> {
  const done = await bytesOfOne(open, SHAPES.plain, count);
  return {
    done,
    task: (await bytesOfOne(open, SHAPES.tasks, count)) - done,
    nonce: (await bytesOfOne(open, SHAPES.nonces, count)) - done,
    waiting: await bytesOfOne(open, SHAPES.waiting, count),
  };
}
