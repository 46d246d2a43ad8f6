// Takes the body of a delivery whose headers passed, chunk by chunk, within bounds of memory and time
// (verification.md §2.33).
// Adapters call `add`, `end` and `abort` on the ticket that `receiver.open` returned.

import type { RaiseAlarm } from '../shared/alarms.ts';
import type { Proof, WholeBody } from '../auth/auth-contract.ts';
import type { Config } from '../config/resolve-options.ts';
import type { Hashes, Sha256Stream } from '../crypto/engine.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Ticket } from '../config/receiver-options.ts';
import { type Outcome, type Refusal, type Unavailability, unavailable } from '../shared/outcome.ts';
import { guardBody } from '../stages/guard.ts';
import { isBytes } from '../shared/realms.ts';

/** Smaller chunks are copied into blocks of this size. Bytes. */
const BLOCK_BYTES = 4096;

/** A body in the order of its bytes, in no more pieces than its size justifies. */
export interface Pieces {
  add(chunk: Uint8Array): void;
  /** Returns the pieces, once. */
  take(): readonly Uint8Array[];
}

/**
 * Collects chunks. A `Uint8Array` costs hundreds of bytes beside its content, and the uploader chooses the
 * size of the content. An upload of single bytes, kept as they came, would take many times the counted
 * memory, so small chunks are copied. The first is not, because most bodies are one chunk.
 */
export function createPieces(): Pieces {
  const pieces: Uint8Array[] = [];
  let block = new Uint8Array(0);
  let start = 0;
  let end = 0;
  const seal = (): void => {
    if (end > start) pieces.push(block.subarray(start, end));
    start = end;
  };
  const copy = (chunk: Uint8Array): void => {
    for (let from = 0; from < chunk.byteLength;) {
      if (end === block.byteLength) {
        seal();
        block = new Uint8Array(BLOCK_BYTES);
        start = end = 0;
      }
      const part = chunk.subarray(from, from + block.byteLength - end);
      block.set(part, end);
      end += part.byteLength;
      from += part.byteLength;
    }
  };
  return {
    add(chunk) {
      const first = pieces.length === 0 && end === 0;
      if (chunk.byteLength < BLOCK_BYTES && !first) {
        copy(chunk);
      } else if (chunk.byteLength > 0) {
        seal();
        pieces.push(chunk);
      }
    },
    take() {
      seal();
      return pieces.splice(0);
    },
  };
}

/**
 * Memory for bodies that are being read or not yet answered: the most that uploads may take of this process.
 */
export interface BufferBudget {
  /** False if there is no room for that many more bytes; nothing was counted then. */
  readonly reserve: (sender: string, bytes: number) => boolean;
  readonly release: (sender: string, bytes: number) => void;
}

/**
 * A sender may hold as much as it leaves free for the others, and at least the assured amount. However many
 * uploads one sender holds open, there is room for the next sender.
 * @param maxBytes of all senders together.
 * @param assured bytes for each sender: one body, or all if there is only one sender.
 */
export function createBufferBudget(maxBytes: number, assured: number): BufferBudget {
  let held = 0;
  const bySender = new Map<string, number>();
  return {
    reserve(sender, bytes) {
      const own = (bySender.get(sender) ?? 0) + bytes;
      const free = maxBytes - held - bytes;
      if (free < 0 || own > Math.max(free, assured)) return false;
      held += bytes;
      bySender.set(sender, own);
      return true;
    },
    release(sender, bytes) {
      held -= bytes;
      const own = (bySender.get(sender) ?? 0) - bytes;
      if (own > 0) bySender.set(sender, own);
      else bySender.delete(sender);
    },
  };
}

/** Headers that passed, and the steps for their body. */
export interface Upload {
  readonly kind: 'upload';
  readonly proof: Pick<Proof, 'sender' | 'nonce'>;
  readonly hashes: Hashes;
  /** Announced bytes; undefined if none were announced. */
  readonly declared: number | undefined;
  readonly maxBytes: number;
  /** Never rejects. */
  readonly finish: (body: WholeBody) => Promise<Outcome>;
  /** Makes the answer if no whole body comes. */
  readonly fail: (verdict: Refusal | Unavailability) => Outcome;
}

/** Gives a ticket for a body, or the reason why it cannot come now. */
export type Tickets = (upload: Upload) => Ticket | Unavailability;

interface TicketParts {
  readonly config: Pick<Config, 'maxBodyBytes' | 'maxBufferedBytes' | 'bodyDeadlineMs' | 'senders'>;
  readonly raiseAlarm: RaiseAlarm;
  /** Unix ms. */
  readonly now: () => number;
}

/** All bodies of unproved senders share this part of `maxBufferedBytes`: one eighth. */
const UNPROVED_SHARE = 8;

const NOT_BYTES =
  "the body's stream gives something other than bytes (Uint8Array), and the signed bytes are lost. Pass the platform's own request, or a stream of its bytes.";

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = chunks;
  if (first && chunks.length === 1) return first;
  const bytes = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}

function misused(): never {
  throw new ConfigError('ticket: end() was called after abort(). Open another one for another request.');
}

/** A body as it arrives. */
interface Body {
  /** Bytes so far. */
  size: number;
  /** The first chunk; most bodies have no other. */
  first: Uint8Array | undefined;
  /** All chunks, from the second on. */
  pieces: Pieces | undefined;
  /** The hash so far, from the second chunk on: a single chunk is hashed twice as fast in one call. */
  stream: Sha256Stream | undefined;
}

/** @param hashes if the body is to be hashed. */
function addChunk(body: Body, chunk: Uint8Array, hashes: Hashes | undefined): void {
  if (chunk.byteLength === 0) return;
  body.size += chunk.byteLength;
  const { first } = body;
  if (!first) {
    body.first = chunk;
    return;
  }
  if (!body.pieces) {
    body.pieces = createPieces();
    body.pieces.add(first);
    body.stream = hashes?.sha256Stream().update(first);
  }
  body.pieces.add(chunk);
  body.stream?.update(chunk);
}

/**
 * Takes the bodies of deliveries whose headers passed: counts them, and keeps them while there is room. Each
 * nonce may have one body in progress, so that captured headers hold no more than one.
 */
export function createTickets(context: TicketParts): Tickets {
  const { maxBodyBytes, maxBufferedBytes, bodyDeadlineMs, senders } = context.config;
  const isAlone = senders.fixed?.length === 1;
  const proved = createBufferBudget(maxBufferedBytes, isAlone ? maxBufferedBytes : maxBodyBytes);
  const shared = Math.max(maxBodyBytes, maxBufferedBytes / UNPROVED_SHARE);
  const unproved = createBufferBudget(shared, shared);
  const coming = new Set<string>();

  function bufferFull(): Unavailability {
    const detail = `the bodies of current deliveries fill maxBufferedBytes (${maxBufferedBytes}), or the sender's share of it. Raise it, or add processes`;
    context.raiseAlarm({ code: 'overloaded', message: detail });
    return unavailable('overloaded', detail);
  }

  function notBytes(): Unavailability {
    context.raiseAlarm({ code: 'misconfigured', message: NOT_BYTES });
    return unavailable('body_consumed', NOT_BYTES);
  }

  return (upload) => {
    const { proof, hashes, maxBytes, finish, fail } = upload;
    const owner = proof.sender?.agentUrl ?? '';
    const budget: BufferBudget = proof.sender ? proved : unproved;
    // Checked and released at once: a body that surely does not fit need not come. Bytes are counted when
    // they come, not when they are announced.
    const { declared = 0 } = upload;
    if (!budget.reserve(owner, declared)) return bufferFull();
    budget.release(owner, declared);
    const name = proof.nonce && `${proof.nonce.keyid} ${proof.nonce.nonce}`;
    if (name !== undefined && coming.has(name)) {
      return unavailable('in_flight', 'another body with the same keyid and nonce is being read');
    }
    if (name !== undefined) coming.add(name);

    const body: Body = { size: 0, first: undefined, pieces: undefined, stream: undefined };
    let held = 0;
    let ended = false;
    const { promise: outcome, resolve: settle, reject } = Promise.withResolvers<Outcome | undefined>();
    const release = (): void => budget.release(owner, held);
    /** Ends the body: no more chunks are taken. */
    const close = (): void => {
      ended = true;
      clearTimeout(deadline);
      if (name !== undefined) coming.delete(name);
    };
    const failed = (verdict: Refusal | Unavailability): false => {
      close();
      release();
      settle(fail(verdict));
      return false;
    };
    // One deadline for the whole body, because an idle timeout does not stop a slow drip.
    const deadline: ReturnType<typeof setTimeout> = setTimeout(() => {
      failed(unavailable('body_timeout', `the body was not complete after ${bodyDeadlineMs} ms`));
    }, bodyDeadlineMs);

    return {
      kind: 'ticket',
      outcome,
      add(chunk) {
        if (ended) return false;
        if (!isBytes(chunk)) return failed(notBytes());
        const { byteLength } = chunk;
        const tooLarge = guardBody(body.size + byteLength, maxBytes);
        if (tooLarge) return failed(tooLarge);
        if (!budget.reserve(owner, byteLength)) return failed(bufferFull());
        held += byteLength;
        addChunk(body, chunk, name === undefined ? undefined : hashes);
        return true;
      },
      async end() {
        if (ended) return (await outcome) ?? misused();
        close();
        const { first = new Uint8Array(), pieces, stream } = body;
        const rawBody = pieces ? joined(pieces.take(), body.size) : first;
        try {
          const found = await finish({ rawBody, hash: stream?.hex(), wholeAt: context.now() });
          settle(found);
          return found;
        } catch (error) {
          reject(error);
          throw error;
        } finally {
          release();
        }
      },
      abort() {
        if (ended) return;
        close();
        release();
        settle(undefined);
      },
    };
  };
}
