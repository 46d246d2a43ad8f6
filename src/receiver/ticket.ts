// Takes the body of a delivery whose headers passed, chunk by chunk, with limits on memory and time
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

/** The size of the blocks into which smaller chunks are copied, bytes. */
const BLOCK_BYTES = 4096;

/** Collects the chunks of a body in order, and merges small chunks into few pieces. */
export interface Pieces {
  add(chunk: Uint8Array): void;
  /** Returns the pieces. To be called once. */
  take(): readonly Uint8Array[];
}

/**
 * Collects the chunks of a body. The sender chooses their size, and each `Uint8Array` costs hundreds of bytes in
 * addition to its content. So an upload in single bytes would take many times the memory that is counted. Therefore
 * small chunks are copied together, except the first, because most bodies have only one.
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
      const first = pieces.length === 0;
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

/** Limits the memory for bodies that are being read or not yet answered, in this process. */
export interface BufferBudget {
  /** Reserves memory. If there is not enough, returns false and reserves nothing. */
  readonly reserve: (sender: string, bytes: number) => boolean;
  readonly release: (sender: string, bytes: number) => void;
}

/**
 * Makes a budget. A sender may hold at most as much memory as remains free for the other senders, but always the
 * assured amount. So another sender finds room, however many uploads one sender keeps open.
 * @param maxBytes the limit for all senders together.
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

/** A delivery whose headers passed, with the functions for its body. */
export interface Upload {
  readonly kind: 'upload';
  readonly proof: Pick<Proof, 'sender' | 'nonce'>;
  readonly hashes: Hashes;
  /** The value of `Content-Length`, bytes; undefined if the header is absent. */
  readonly declared: number | undefined;
  readonly maxBytes: number;
  /** Processes the complete body and returns the outcome. Never rejects. */
  readonly finish: (body: WholeBody) => Promise<Outcome>;
  /** Makes the outcome if the body does not arrive completely. */
  readonly fail: (verdict: Refusal | Unavailability) => Outcome;
}

/** Returns a ticket for a body, or the reason why the body cannot be taken now. */
export type Tickets = (upload: Upload) => Ticket | Unavailability;

interface TicketParts {
  readonly config: Pick<Config, 'maxBodyBytes' | 'maxBufferedBytes' | 'bodyDeadlineMs' | 'senders'>;
  readonly raiseAlarm: RaiseAlarm;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
}

/**
 * Senders whom the headers do not authenticate share one eighth of `maxBufferedBytes` for all their bodies, or
 * `maxBodyBytes` if that is more.
 */
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
  /** Number of bytes received so far. */
  size: number;
  /** The first chunk; most bodies have no other. */
  first: Uint8Array | undefined;
  /** All chunks, including the first; set from the second chunk on. */
  pieces: Pieces | undefined;
  /**
   * The running SHA-256 of the body, used from the second chunk on. A single chunk is hashed in one call, which is
   * twice as fast.
   */
  stream: Sha256Stream | undefined;
}

/**
 * Adds a chunk to a body.
 * @param hashes present if the body must be hashed, because the delivery is signed.
 */
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
 * Makes tickets for the bodies of deliveries whose headers passed. A body is accepted while memory remains. For each
 * nonce only one body may arrive at a time, so that replayed headers cannot occupy more memory.
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
    // The declared length is reserved and immediately released, only to refuse a body that certainly does not fit.
    // Memory is counted for the bytes that arrive, not for declared ones.
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
    /** Ends the body; further chunks are refused. */
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
    // One deadline for the whole body, because an idle timeout would not stop a sender that sends slowly.
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
