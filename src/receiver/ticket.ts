import type { RaiseAlarm } from '../shared/alarms.ts';
import type { Proof, WholeBody } from '../auth/auth-contract.ts';
import type { Config } from '../config/resolve-options.ts';
import type { Hashes, Sha256Stream } from '../crypto/engine.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Ticket } from '../config/receiver-options.ts';
import { type Outcome, type Refusal, type Unavailability, unavailable } from '../shared/outcome.ts';
import { guardBody } from '../stages/guard.ts';
import { isBytes } from '../shared/realms.ts';

/** Chunks under this size are copied into blocks of it. Bytes. */
const BLOCK_BYTES = 4096;

/** A body in the order of its bytes, in no more pieces than its size accounts for. */
export interface Pieces {
  add(chunk: Uint8Array): void;
  /** What there is, once. */
  take(): readonly Uint8Array[];
}

/**
 * Keeps chunks. A `Uint8Array` weighs hundreds of bytes beside what it holds, and the uploader chooses how much that
 * is: an upload of single bytes, each kept as it came, would take many times what is counted. So small chunks are
 * copied. The first is not: most bodies are one chunk.
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

/** Room for bodies that are being read or not yet answered: what uploads can take of this process. */
export interface BufferBudget {
  /** False: no room for that many bytes more; nothing was counted. */
  readonly reserve: (sender: string, bytes: number) => boolean;
  readonly release: (sender: string, bytes: number) => void;
}

/**
 * A sender gets as much as it leaves free for the others, and what is assured in any case: however many uploads one of
 * them holds open, there is room for the next sender.
 * @param maxBytes of all of them.
 * @param assured bytes: one body; all, where there are no others.
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

/** Headers that passed, and what is done about their body. */
export interface Upload {
  readonly kind: 'upload';
  readonly proof: Pick<Proof, 'sender' | 'nonce'>;
  readonly hashes: Hashes;
  /** Bytes as announced; undefined where nothing was. */
  readonly declared: number | undefined;
  readonly maxBytes: number;
  /** Never rejects. */
  readonly finish: (body: WholeBody) => Promise<Outcome>;
  /** The answer where no whole body comes. */
  readonly fail: (verdict: Refusal | Unavailability) => Outcome;
}

/** A ticket for a body, or why it cannot come now. */
export type Tickets = (upload: Upload) => Ticket | Unavailability;

interface TicketParts {
  readonly config: Pick<Config, 'maxBodyBytes' | 'maxBufferedBytes' | 'bodyDeadlineMs' | 'senders'>;
  readonly raiseAlarm: RaiseAlarm;
  /** Unix ms. */
  readonly now: () => number;
}

/** What is known of nobody's: all such bodies share a room of this part of `maxBufferedBytes`. */
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

/** A body as it comes. */
interface Body {
  /** Bytes so far. */
  size: number;
  /** Most bodies have no other chunk. */
  first: Uint8Array | undefined;
  /** All of it, from the second chunk on. */
  pieces: Pieces | undefined;
  /** Its hash so far, from the second chunk on: a single one is hashed twice as fast by itself. */
  stream: Sha256Stream | undefined;
}

/** @param hashes where the body is to be hashed. */
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
 * Takes bodies of deliveries whose headers passed: counts them, keeps them while there is room, and lets one body at a
 * time come for a nonce, so that headers that were captured hold no more than one.
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
    // Only looked at: what surely does not fit need not come. Counted is what has come, and not what was announced.
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
    /** No body comes any more. */
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
    // One deadline for all of it: an idle timeout does not stop a drip.
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
