import type {
  AcceptDecision,
  AcceptRequest,
  AcceptResult,
  CompleteRequest,
  FailRequest,
  LeaseDueRequest,
  RenewRequest,
} from '../contract.ts';
import { columnText } from '../text.ts';
import { termsOf } from './fresh.ts';

type Json = string | number | boolean | null | readonly string[];

/** A call as `webhook_call` has it; members that are undefined are null there. */
export type CallJson = { readonly op: string; readonly sender: string } & Readonly<
  Record<string, Json | undefined>
>;

/** One call, on its way into a batch. */
export interface Call {
  readonly json: CallJson;
  readonly body?: Uint8Array;
  /** An accept that may be the first of its event: its terms (`fresh.ts`). */
  readonly fresh?: string | undefined;
  /** A completion that probably finds its lease (`ends.ts`). */
  readonly ends?: boolean;
}

/** What a call's row says. */
export interface Answer {
  readonly kind: string;
  readonly said: Readonly<Record<string, unknown>>;
  readonly body?: Uint8Array;
}

/** A whole number that JSON and bigint write alike; Infinity becomes the largest one. */
function whole(value: number): number {
  return Math.trunc(Math.min(Math.max(value, -Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER));
}

const MOST_INTEGER = 2_147_483_647;
const integer = (value: number): number => Math.min(whole(value), MOST_INTEGER);

const text = (value: string | undefined): string | undefined =>
  value === undefined ? undefined : columnText(value);

const ms = (value: number | undefined): number | undefined =>
  value === undefined ? undefined : whole(value);

export function acceptCall(request: AcceptRequest): Call {
  const { nonce, event, limits, retry } = request;
  const json: CallJson = {
    op: 'accept',
    sender: columnText(request.sender),
    caller: columnText(request.acceptId),
    mode: request.mode,
    ...(nonce && {
      keyid: columnText(nonce.keyid),
      nonce: columnText(nonce.nonce),
      nonce_ms: whole(Math.max(0, nonce.expiresAtMs - nonce.nowMs)),
    }),
    ...(event && eventOf(event)),
    lease_ms: whole(request.leaseMs),
    retention_ms: whole(request.retentionMs),
    attempts: integer(retry.attempts),
    crashes: integer(retry.crashes),
    max_records: whole(limits.maxRecordsPerSender),
    max_bytes: whole(limits.maxPendingBytesPerSender),
    max_key_nonces: whole(limits.maxNoncesPerKey),
    max_nonces: whole(limits.maxNonces),
  };
  if (!event) return { json };
  return { json, body: event.body, fresh: isPlain(request, json) ? termsOf(json) : undefined };
}

/** Names in their columns' form that an index takes as they are: others are hashed, row by row (`webhook_fit`). */
const MOST_PLAIN = 512;

/** A larger body is held against the cap by itself: `webhook_has_room` leaves room for batches of so many bytes. */
const MOST_BODY = 4 * 1_048_576;

/** And no report, whose media buys are looked at one by one. */
function isPlain({ event }: AcceptRequest, { nonce, keyid }: CallJson): boolean {
  return (
    event !== undefined &&
    !event.report &&
    event.body.length <= MOST_BODY &&
    [nonce, keyid].every((name) => typeof name !== 'string' || name.length <= MOST_PLAIN)
  );
}

/** Keeps media buys whose final report came apart from notification ids, which are printable. */
const FINAL = '\u0001';

function eventOf(event: NonNullable<AcceptRequest['event']>): Readonly<Record<string, Json | undefined>> {
  const { task, report } = event;
  return {
    key: columnText(event.key),
    raw_hash: event.rawHash,
    canonical_hash: event.canonicalHash,
    on_changed: event.onChanged,
    notification_id: text(event.notificationId),
    ...(task && {
      task_id: columnText(task.id),
      instant: task.instant,
      instant_ms: ms(task.instantMs),
      terminal: task.terminal,
    }),
    ...(report && {
      media_buys: report.mediaBuyIds.map((id) => columnText(FINAL + id)),
      final: report.final,
    }),
  };
}

/** `won` is told to nobody but the accept whose lease it is. */
export function acceptResult({ kind, said, body }: Answer, acceptId: string): AcceptResult {
  const { lease, pressure, ...rest } = said as { lease?: object; pressure: AcceptResult['pressure'] };
  const decision = {
    kind,
    ...rest,
    ...(lease && { lease: { owner: acceptId, ...lease } }),
    ...(body && { body }),
  } as AcceptDecision;
  return { ...decision, pressure };
}

interface Leased {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
}

const leased = (op: string, { sender, key, owner }: Leased): CallJson => ({
  op,
  sender: columnText(sender),
  key: columnText(key),
  caller: columnText(owner),
});

export function completeCall(request: CompleteRequest, op: 'complete' | 'finish' = 'complete'): Call {
  const retention_ms = whole(request.retentionMs);
  return { json: { ...leased(op, request), retention_ms }, ends: op === 'complete' };
}

/** As the contract has it, and what the store keeps at most. */
const ERROR_MOST = 1000;

export function failCall(request: FailRequest): Call {
  const { permanent, unstarted = false, retry, backoffMs, error, retentionMs } = request;
  const json = {
    ...leased('fail', request),
    permanent,
    unstarted,
    attempts: integer(retry.attempts),
    backoff_ms: whole(backoffMs),
    error: text(error?.slice(0, ERROR_MOST)),
    retention_ms: whole(retentionMs),
  };
  return { json };
}

export function renewCall(request: RenewRequest): Call {
  return { json: { ...leased('renew', request), lease_ms: whole(request.leaseMs) } };
}

/** `peek`, `redrive`, `discard`. */
export function recordCall(op: string, sender: string, key: string, retentionMs = 0): Call {
  return {
    json: { op, sender: columnText(sender), key: columnText(key), retention_ms: whole(retentionMs) },
  };
}

/** What `webhook_lease` reads; `sender` is each candidate's own. */
export function leaseJson(request: LeaseDueRequest): CallJson {
  return {
    op: 'lease',
    sender: '',
    caller: columnText(request.owner),
    lease_ms: whole(request.leaseMs),
    retention_ms: whole(request.retentionMs),
    attempts: integer(request.retry.attempts),
    crashes: integer(request.retry.crashes),
  };
}

/** A row of `answer` and `body`; a pool whose parser leaves bytea as text is understood too. */
export function answerOf(row: unknown): Answer {
  const { answer, body } = row as { readonly answer: string; readonly body: unknown };
  const { kind = '', ...said } = JSON.parse(answer) as Record<string, unknown>;
  const bytes = bytesOf(body);
  return { kind: kind as string, said, ...(bytes && { body: bytes }) };
}

function bytesOf(column: unknown): Uint8Array | undefined {
  if (column instanceof Uint8Array) return new Uint8Array(column);
  if (typeof column !== 'string' || !column.startsWith('\\x')) return undefined;
  return Uint8Array.from(column.slice(2).match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}
