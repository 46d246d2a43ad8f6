import type { HeadersInput } from '../delivery.ts';
import type { Door, RequestInfo } from '../options.ts';
import type { Reply } from '../outcome.ts';

/** The part of an `Outcome` that an adapter writes. */
interface Answered {
  readonly response: Reply;
}

/** The part of a `Receiver` that adapters use, whatever its result schemas are. */
export interface DoorReceiver {
  readonly verifyAndDispatch: (
    rawBytes: Uint8Array,
    headers: HeadersInput,
    request?: RequestInfo,
  ) => Promise<Answered>;
  readonly door: {
    readonly maxBodyBytes: number;
    readonly bodyDeadlineMs: number;
    readonly check: (headers: HeadersInput, request?: RequestInfo) => Answered | undefined;
    readonly refuse: (code: Parameters<Door['refuse']>[0], detail: string) => Answered;
    readonly fault?: (error: unknown) => Answered;
    readonly hold: (bytes: number) => boolean;
    readonly release: (bytes: number) => void;
  };
}

/** What is answered where nobody can be asked: a fault on our side is never 4xx. */
export const FAULT_REPLY: Reply = { status: 503, headers: { 'Retry-After': '5' }, body: '' };

/** For an exception that should not have been: 503, and the owner's log says what it was. */
export function faultReply({ door }: DoorReceiver, error: unknown): Reply {
  return door.fault?.(error).response ?? FAULT_REPLY;
}
