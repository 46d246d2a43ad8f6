import type { HeadersInput } from '../delivery.ts';
import type { RequestInfo } from '../options.ts';
import type { Reply } from '../outcome.ts';

/** The part of an `Outcome` that an adapter writes. */
export interface Answered {
  readonly response: Reply;
}

/** The part of a `Ticket` that adapters use. */
export interface DoorTicket {
  readonly kind: 'ticket';
  readonly add: (chunk: Uint8Array) => boolean;
  readonly end: () => Promise<Answered>;
  readonly abort: () => void;
  readonly outcome: Promise<Answered | undefined>;
}

/** The part of a `Receiver` that adapters use, whatever its result schemas are. */
export interface DoorReceiver {
  /** As `Receiver.open`: headers first, the body by the ticket. */
  readonly open: (
    headers: HeadersInput,
    request?: RequestInfo,
  ) => Promise<DoorTicket | (Answered & { readonly kind: string })>;
  /** As `Receiver.verifyAndDispatch`: the whole delivery. */
  readonly verifyAndDispatch: (
    rawBytes: Uint8Array,
    headers: HeadersInput,
    request?: RequestInfo,
  ) => Promise<Answered>;
  readonly door: {
    /** The answer to a delivery whose body somebody else has read: 503 `body_consumed`. */
    readonly consumed: (detail: string) => Answered;
    /** The answer to a delivery that could not be carried out: 503. */
    readonly fault?: (error: unknown) => Answered;
  };
}

/** Whether the body is wanted. */
export const isTicket = (opened: DoorTicket | { readonly kind: string }): opened is DoorTicket =>
  opened.kind === 'ticket';

/** @param fix the line to change. */
export const consumed = ({ door }: DoorReceiver, ticket: DoorTicket, fix: string): Reply => {
  ticket.abort();
  return door.consumed(
    `the body was read or decoded before the webhook handler, and its exact bytes are gone. ${fix}`,
  ).response;
};

/** What is answered where nobody can be asked: a fault on our side is never 4xx. */
export const FAULT_REPLY: Reply = { status: 503, headers: { 'Retry-After': '5' }, body: '' };

/** For an exception that should not have been: 503, and the owner's log says what it was. */
export function faultReply({ door }: DoorReceiver, error: unknown): Reply {
  return door.fault?.(error).response ?? FAULT_REPLY;
}
