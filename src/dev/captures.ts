// Reads captures (captured HTTP requests, pasted or from the folder of the option `captureRefused`) and explains them
// (dev.md §3.5). The API calls it. Captures are untrusted, so their size is limited, and no link or path in them is
// followed.
import { constants } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Capture } from '../cli/capture/capture.ts';
import { readCapture } from '../cli/capture/read-capture.ts';
import type { ExplainInput } from '../cli/explain/explain-case.ts';
import { momentOf, urlsIn } from '../cli/explain/explain-verb.ts';
import { readKeys } from '../cli/files.ts';
import { UsageError } from '../cli/shell.ts';
import type { Jwk } from '../crypto/engine.ts';
import { fieldValue, headerFields } from '../shared/delivery.ts';
import { protocolsFor } from '../shared/wire-names.ts';
import { ApiError } from './api-error.ts';
import type { DeliveryLog, Entry, Posted } from './delivery-log.ts';
import { explained, signatureNames } from './explaining.ts';
import { senderOf, type Seller, type Sellers } from './sellers.ts';
import { causeIn, keyOf, proofOf } from './sending.ts';
import type { CaptureFile, CaptureList, CaptureRequest } from './wire.ts';

/** The largest capture, bytes (dev.md §3.5). */
export const MOST_CAPTURE_BYTES: number = 4 * 1024 * 1024;
const MOST_FILES = 1_000;

/** The parts of dev that are needed to read, explain and log captured requests. */
export interface CaptureParts {
  readonly sellers: Sellers;
  readonly log: DeliveryLog;
  readonly protocol: string;
  /** The folder of the receiver's option `captureRefused`, as the user wrote it. */
  readonly folder: string;
  /** The absolute path of `folder`. */
  readonly path: string;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
}

/** Lists and explains captures, i.e. captured requests that dev did not send (dev.md §3.5). */
export interface Captures {
  readonly list: () => Promise<CaptureList>;
  /**
   * Reads, explains and logs one captured request. @throws ApiError `unreadable_capture`, `not_found`,
   * `body_too_large`.
   */
  readonly take: (request: CaptureRequest) => Promise<Entry>;
}

const unreadable = (message: string): ApiError => new ApiError('unreadable_capture', message);

async function fileIn(path: string, file: string): Promise<CaptureFile | undefined> {
  const found = await lstat(join(path, file)).catch(() => undefined);
  return found?.isFile() ? { file, at: Math.round(found.mtimeMs), bytes: found.size } : undefined;
}

/** Returns the captured requests in a folder, newest first. Returns undefined if the folder cannot be read. */
async function filesIn(path: string): Promise<readonly CaptureFile[] | undefined> {
  try {
    // The names begin with the time of capture, so sorting by name sorts by time.
    const names = (await readdir(path)).filter((name) => name.endsWith('.http')).sort();
    const files = await Promise.all(names.slice(-MOST_FILES).map((name) => fileIn(path, name)));
    return files.filter((file) => file !== undefined).toReversed();
  } catch {
    return undefined;
  }
}

/**
 * Reads one file of the folder. `file` must be a plain file name, and a link is refused.
 * @throws ApiError `not_found`; `unreadable_capture` if the file is too large.
 */
async function bytesOf(path: string, file: string): Promise<Uint8Array> {
  const missing = new ApiError('not_found', 'file: there is no such file in the folder of captures.');
  if (!/^[^/\\\0]+\.http$/.test(file)) throw missing;
  // With these flags `open` neither waits for a pipe, nor follows a link that has replaced the listed file.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const handle = await open(join(path, file), flags).catch(() => undefined);
  if (!handle) throw missing;
  try {
    const { size, isFile } = await handle.stat().then((stat) => ({ size: stat.size, isFile: stat.isFile() }));
    if (!isFile) throw missing;
    if (size > MOST_CAPTURE_BYTES) throw unreadable(`${file}: over ${MOST_CAPTURE_BYTES} bytes.`);
    const buffer = Buffer.alloc(size);
    const { bytesRead } = await handle.read(buffer, 0, size, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** Reads JWKs from pasted text. @throws ApiError `unreadable_capture` */
async function keysIn(text: string, now: () => number): Promise<readonly Jwk[]> {
  const stdin = async (): Promise<Uint8Array> => new TextEncoder().encode(text);
  try {
    return await readKeys(['-'], { env: {}, cwd: '', now, stdin, notice: () => undefined });
  } catch (error) {
    if (error instanceof UsageError) throw unreadable(`keys${error.message.slice(1)}`);
    throw error;
  }
}

async function captureOf(bytes: Uint8Array, file: string): Promise<Capture> {
  try {
    return await readCapture(bytes, {
      file,
      readFile: () =>
        Promise.reject(
          new UsageError("the curl command names a file, which is not read. Put the body in: --data-raw '…'"),
        ),
    });
  } catch (error) {
    if (error instanceof UsageError) throw unreadable(error.message);
    throw error;
  }
}

/**
 * Converts a captured request into the form in which dev keeps deliveries. A header on several lines keeps its lines.
 */
function postedOf({ method, headers, body }: Capture, url: string): Posted {
  const fields = new Map<string, string | readonly string[]>();
  for (const [name, value] of headers) {
    const before = fields.get(name);
    fields.set(name, before === undefined ? value : [before, value].flat());
  }
  return { method, url, headers: Object.fromEntries(fields), body: new Uint8Array(body) };
}

/**
 * Chooses the seller of dev whose keys or secret verify a captured request. `own` is true for a key id of one of dev's
 * sellers, and for any HMAC or bearer token.
 */
function sellerOf(posted: Posted, { sellers, protocol }: CaptureParts): { seller: Seller; own: boolean } {
  const { byScheme } = sellers;
  const headers = headerFields(
    Object.entries(posted.headers).flatMap(([name, values]) =>
      [values].flat().map((value) => [name, value] as const),
    ),
  );
  const named = signatureNames(posted);
  const found = named && sellers.withKey(named.keyid);
  if (found) return { seller: found, own: true };
  if (headers.has('signature-input') || headers.has('signature'))
    return { seller: byScheme.signature, own: false };
  const isHmac = protocolsFor(protocol === 'proto' ? undefined : protocol).some(({ hmacSignatureHeader }) =>
    headers.has(hmacSignatureHeader),
  );
  if (isHmac) return { seller: byScheme.hmac, own: true };
  const isBearer = /^bearer /i.test(fieldValue(headers, 'authorization') ?? '');
  return { seller: isBearer ? byScheme.bearer : byScheme.signature, own: isBearer };
}

/**
 * Returns the members of the input for `explain` that every captured request has: the request, and the time of its
 * receipt.
 */
function commonInput(capture: Capture, now: () => number): Pick<ExplainInput, 'capture' | 'receivedAt'> {
  const { how: _how, ...moment } = momentOf(capture, {}, { now });
  return { capture, ...moment };
}

function urlIn(capture: Capture): string {
  try {
    return urlsIn(capture, {})[0];
  } catch (error) {
    if (error instanceof UsageError) throw unreadable(error.message);
    throw error;
  }
}

/** Makes the functions that list and explain captures. */
export function createCaptures(parts: CaptureParts): Captures {
  const { log, folder, path, now, protocol } = parts;

  async function takeIn(capture: Capture, what: string, keys: readonly Jwk[] | undefined): Promise<Entry> {
    const draft = postedOf(capture, '');
    const { seller, own } = sellerOf(draft, parts);
    const url = keys ? urlIn(capture) : seller.publicUrl;
    const posted = { ...draft, url };
    const common = commonInput(capture, now);
    const input: ExplainInput = keys
      ? { ...common, url, senders: [{ agentUrl: 'https://seller.invalid/mcp', pins: keys }] }
      : {
          ...common,
          url,
          senders: [senderOf(seller)],
          revocations: { state: 'none', detail: 'dev publishes no revocation list' },
        };
    const result = await explained(
      { ...input, ...(protocol !== 'proto' && protocol !== 'adcp' && { protocol }) },
      capture.notes,
    );
    return log.add({
      posted,
      key: keyOf(posted.body),
      proof: proofOf(posted, protocol),
      ...(capture.bodyless && { bodyless: true }),
      ...result,
      row: {
        at: now(),
        state: 'captured',
        what,
        ...(own && !keys && { scheme: seller.scheme }),
        ...causeIn(result),
      },
    });
  }

  return {
    async list() {
      const files = await filesIn(path);
      return { folder, ...(files && { files }) };
    },
    async take(request) {
      if ('file' in request) {
        const bytes = await bytesOf(path, request.file);
        return takeIn(await captureOf(bytes, request.file), request.file, undefined);
      }
      const bytes = new TextEncoder().encode(request.text);
      if (bytes.byteLength > MOST_CAPTURE_BYTES) {
        throw new ApiError('body_too_large', `text: over ${MOST_CAPTURE_BYTES} bytes.`);
      }
      const capture = await captureOf(bytes, 'the text');
      const keys = request.keys === undefined ? undefined : await keysIn(request.keys, now);
      return takeIn(capture, capture.form, keys);
    },
  };
}
