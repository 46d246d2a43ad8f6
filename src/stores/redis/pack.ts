import type { AcceptRequest, CompleteRequest } from '../contract.ts';
import { columnText } from '../text.ts';
import { markMs } from './args.ts';
import type { Arg } from './client.ts';

/** What the script accept is told that is a number: an IEEE 754 double each, little-endian. */
const DOUBLE_BYTES = 8;

/** Of each request (`numbersOf`). */
const NUMBERS = 13;

/** Before each text: its length, little-endian. */
const LENGTH_BYTES = 4;

/** Which texts are there, and what else is so; 2^n each. */
const FLAG = {
  nonce: 1,
  event: 2,
  canonicalHash: 4,
  task: 8,
  instant: 16,
  instantMs: 32,
  notificationId: 64,
  terminal: 128,
  inbox: 256,
  final: 512,
  conflict: 1024,
} as const;

function flagsOf({ nonce, event, mode }: AcceptRequest): number {
  let flags = (nonce ? FLAG.nonce : 0) + (mode === 'inbox' ? FLAG.inbox : 0);
  if (!event) return flags;
  const { canonicalHash, task, notificationId, report, onChanged } = event;
  flags += FLAG.event;
  if (canonicalHash !== undefined) flags += FLAG.canonicalHash;
  if (task) flags += FLAG.task;
  if (task?.instant !== undefined) flags += FLAG.instant;
  if (task?.instantMs !== undefined) flags += FLAG.instantMs;
  if (task?.terminal) flags += FLAG.terminal;
  if (notificationId !== undefined) flags += FLAG.notificationId;
  if (report?.final) flags += FLAG.final;
  if (onChanged === 'conflict') flags += FLAG.conflict;
  return flags;
}

/** As `lua/ordinary.ts` unpacks them, in its order. */
function numbersOf(request: AcceptRequest): readonly number[] {
  const { nonce, event, limits, retry, leaseMs, retentionMs } = request;
  return [
    flagsOf(request),
    leaseMs,
    retentionMs,
    markMs(retentionMs),
    retry.attempts,
    retry.crashes,
    limits.maxRecordsPerSender,
    limits.maxPendingBytesPerSender,
    limits.maxNoncesPerKey,
    limits.maxNonces,
    nonce ? Math.max(0, nonce.expiresAtMs - nonce.nowMs) : 0,
    event?.task?.instantMs ?? 0,
    event?.report?.mediaBuyIds.length ?? 0,
  ];
}

function textsOf({ acceptId, nonce, event }: AcceptRequest): readonly string[] {
  return [
    columnText(acceptId),
    columnText(nonce?.keyid ?? ''),
    columnText(nonce?.nonce ?? ''),
    columnText(event?.key ?? ''),
    event?.rawHash ?? '',
    event?.canonicalHash ?? '',
    columnText(event?.task?.id ?? ''),
    event?.task?.instant ?? '',
    columnText(event?.notificationId ?? ''),
  ];
}

/** Bytes that are enough for what `write` writes. */
function roomOf(numbers: number, texts: readonly string[]): number {
  let most = numbers * DOUBLE_BYTES;
  for (const text of texts) most += LENGTH_BYTES + 3 * text.length;
  return most;
}

function write(bytes: Buffer, from: number, numbers: readonly number[], texts: readonly string[]): number {
  let at = from;
  for (const number of numbers) at = bytes.writeDoubleLE(number, at);
  for (const text of texts) {
    const length = bytes.write(text, at + LENGTH_BYTES);
    bytes.writeUInt32LE(length, at);
    at += LENGTH_BYTES + length;
  }
  return at;
}

const NO_BODY = Buffer.alloc(0);

/** Arguments of the script accept (`lua/ordinary.ts`): of one or some of a sender. */
export function acceptArgs(
  requests: readonly AcceptRequest[],
  { otherNonces, offset }: { readonly otherNonces: number; readonly offset: number },
): Arg[] {
  const texts = requests.map(textsOf);
  const bytes = Buffer.allocUnsafe(
    texts.reduce((sum, some) => sum + roomOf(NUMBERS, some), 2 * DOUBLE_BYTES),
  );
  let at = write(bytes, 0, [offset, otherNonces], []);
  const args: Arg[] = [bytes];
  for (const [index, request] of requests.entries()) {
    at = write(bytes, at, numbersOf(request), texts[index] ?? []);
    const { body, report } = request.event ?? {};
    args.push(body ? Buffer.from(body.buffer, body.byteOffset, body.byteLength) : NO_BODY);
    for (const id of report?.mediaBuyIds ?? []) args.push(columnText(id));
  }
  args[0] = bytes.subarray(0, at);
  return args;
}

/** Arguments of the script complete (`lua/complete.ts`): of one or some of a sender. */
export function completeArgs(requests: readonly CompleteRequest[], offset: number): Arg[] {
  const texts = requests.map(({ key, owner }) => [columnText(key), columnText(owner)]);
  const bytes = Buffer.allocUnsafe(texts.reduce((sum, some) => sum + roomOf(2, some), 0));
  let at = 0;
  for (const [index, { retentionMs }] of requests.entries()) {
    at = write(bytes, at, [retentionMs, markMs(retentionMs)], texts[index] ?? []);
  }
  return ['offset', offset, 'items', bytes.subarray(0, at)];
}
