import type { AcceptRequest } from '../contract.ts';
import { columnText } from '../text.ts';
import { markMs } from './args.ts';
import type { Arg } from './client.ts';

/** What the script accept is told that is a number: an IEEE 754 double each, little-endian. */
const DOUBLE_BYTES = 8;

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
function numbersOf(request: AcceptRequest, otherNonces: number, offset: number): readonly number[] {
  const { nonce, event, limits, retry, leaseMs, retentionMs } = request;
  return [
    offset,
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
    otherNonces,
    nonce ? Math.max(0, nonce.expiresAtMs - nonce.nowMs) : 0,
    event?.task?.instantMs ?? 0,
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

function packed(numbers: readonly number[], texts: readonly string[]): Buffer {
  let most = numbers.length * DOUBLE_BYTES;
  for (const text of texts) most += LENGTH_BYTES + 3 * text.length;
  const bytes = Buffer.allocUnsafe(most);
  let at = 0;
  for (const number of numbers) at = bytes.writeDoubleLE(number, at);
  for (const text of texts) {
    const length = bytes.write(text, at + LENGTH_BYTES);
    bytes.writeUInt32LE(length, at);
    at += LENGTH_BYTES + length;
  }
  return bytes.subarray(0, at);
}

const NO_BODY = Buffer.alloc(0);

/** Arguments of the script accept (`lua/ordinary.ts`). */
export function acceptArgs(request: AcceptRequest, otherNonces: number, offset: number): Arg[] {
  const body = request.event?.body;
  const report = request.event?.report?.mediaBuyIds ?? [];
  return [
    packed(numbersOf(request, otherNonces, offset), textsOf(request)),
    body ? Buffer.from(body.buffer, body.byteOffset, body.byteLength) : NO_BODY,
    ...report.map(columnText),
  ];
}
