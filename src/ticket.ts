import type { Proof, WholeBody } from './auth/contract.ts';
import { ConfigError } from './errors.ts';
import { type Outcome, type Refusal, unavailable, type Unavailability } from './outcome.ts';
import type { Hashes, Sha256Stream } from './crypto/engine.ts';
import type { Config } from './config/resolve.ts';
import type { RaiseAlarm } from './alarms.ts';
import { createPieces } from './pieces.ts';
import { createRoom, type Room } from './room.ts';
import { guardBody } from './stages/guard.ts';
import type { Ticket } from './ticket-contract.ts';

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
  "the stream of the body gives something else than bytes (Uint8Array), and the bytes that were signed are gone. Hand over the platform's own request, or a stream of its bytes.";

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
  readonly size: () => number;
  readonly add: (chunk: Uint8Array) => void;
  readonly whole: () => Omit<WholeBody, 'wholeAt'>;
}

/** Hashed as it comes where it comes in more than one chunk; a lone one is hashed twice as fast by itself. */
function createBody(hashes: Hashes, signed: boolean): Body {
  const pieces = createPieces();
  let size = 0;
  let only: Uint8Array | undefined;
  let stream: Sha256Stream | undefined;
  return {
    size: () => size,
    add(chunk) {
      if (signed && size > 0) {
        stream ??= hashes.sha256Stream().update(only ?? new Uint8Array());
        stream.update(chunk);
      }
      only = size === 0 ? chunk : undefined;
      size += chunk.byteLength;
      pieces.add(chunk);
    },
    whole: () => ({ rawBody: joined(pieces.take(), size), hash: stream?.hex() }),
  };
}

/**
 * Takes bodies of deliveries whose headers passed: counts them, keeps them while there is room, and lets one body at a
 * time come for a nonce, so that headers that were captured hold no more than one.
 */
export function createTickets(parts: TicketParts): Tickets {
  const { maxBodyBytes, maxBufferedBytes, bodyDeadlineMs, senders } = parts.config;
  const isAlone = senders.fixed?.length === 1;
  const proved = createRoom(maxBufferedBytes, isAlone ? maxBufferedBytes : maxBodyBytes);
  const shared = Math.max(maxBodyBytes, maxBufferedBytes / UNPROVED_SHARE);
  const unproved = createRoom(shared, shared);
  const coming = new Set<string>();

  function noRoom(): Unavailability {
    const detail = `the bodies of deliveries under way fill maxBufferedBytes (${maxBufferedBytes}), or its sender's share of it; raise it, or add processes`;
    parts.raiseAlarm({ code: 'overloaded', message: detail });
    return unavailable('overloaded', detail);
  }

  function notBytes(): Unavailability {
    parts.raiseAlarm({ code: 'misconfigured', message: NOT_BYTES });
    return unavailable('body_consumed', NOT_BYTES);
  }

  return (upload) => {
    const { proof, hashes, maxBytes, finish, fail } = upload;
    const owner = proof.sender?.agentUrl ?? '';
    const room: Room = proof.sender ? proved : unproved;
    // Only looked at: what surely does not fit need not come. Counted is what has come, and not what was announced.
    const { declared = 0 } = upload;
    if (!room.take(owner, declared)) return noRoom();
    room.give(owner, declared);
    const name = proof.nonce && `${proof.nonce.keyid} ${proof.nonce.nonce}`;
    if (name !== undefined && coming.has(name)) {
      return unavailable('in_flight', 'another body with the same keyid and nonce is being read');
    }
    if (name !== undefined) coming.add(name);

    const body = createBody(hashes, name !== undefined);
    let held = 0;
    let ended = false;
    let settle: (outcome: Outcome | undefined | Promise<Outcome>) => void = () => {};
    const outcome = new Promise<Outcome | undefined>((resolve) => {
      settle = resolve;
    });
    const release = (): void => room.give(owner, held);
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
        if (!(chunk instanceof Uint8Array)) return failed(notBytes());
        const { byteLength } = chunk;
        const tooLarge = guardBody(body.size() + byteLength, maxBytes);
        if (tooLarge) return failed(tooLarge);
        if (!room.take(owner, byteLength)) return failed(noRoom());
        held += byteLength;
        body.add(chunk);
        return true;
      },
      async end() {
        if (ended) return (await outcome) ?? misused();
        close();
        settle(finish({ ...body.whole(), wholeAt: parts.now() }).finally(release));
        return (await outcome) ?? misused();
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
