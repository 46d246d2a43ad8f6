// Serves a receiver in Node's own http, and writes refused deliveries to files: the entry
// `proto-webhooks/node`.
// Called by buyers and by the serving process; `node-adapter.ts` reads the request and writes the answer.

import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onlyKnown, text, wholeNumber } from '../config/validate.ts';
import type { RefusedDelivery, RefusedHook } from '../config/receiver-options.ts';
import { type AdapterReceiver, NODE_FIX, wiringOf } from './shared-adapter.ts';
import { type NodeRequest, type NodeResponse, serveSafely } from './node-adapter.ts';

export type { NodeRequest } from './node-adapter.ts';
export type { AdapterReceiver } from './shared-adapter.ts';
export type { NodeResponse } from './node-adapter.ts';

/**
 * Creates a request listener that serves a receiver, for `http.createServer`, `https.createServer` and
 * `http2.createServer` (compatibility API).
 *
 * It answers every request, whatever its path. 405 and 415 come from the headers alone, 413 while reading,
 * 503 for a body slower than `bodyDeadlineMs`, otherwise the receiver's answer. An upload that breaks off
 * gets no answer and leaves no state.
 *
 * Node's own time-outs answer 408, which sellers treat as final. Keep `server.requestTimeout` (300 s) well
 * above `bodyDeadlineMs`.
 * @throws ConfigError, from the listener, if it is not called by Node's http. It throws nothing else.
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import type { Receiver } from 'proto-webhooks';
 * import { webhookHandler } from 'proto-webhooks/node';
 *
 * export function serve(receiver: Receiver): void {
 *   createServer(webhookHandler(receiver)).listen(3000);
 * }
 * ```
 */
export function webhookHandler(receiver: AdapterReceiver): (req: NodeRequest, res: NodeResponse) => void {
  const check = wiringOf('node', receiver);
  return (req, res) => {
    check(req);
    serveSafely(receiver, { fix: NODE_FIX, req, res, url: req.originalUrl ?? req.url });
  };
}

/**
 * Options of `captureRefused`, which writes refused deliveries into a folder: the number and the size of the files
 * that it keeps.
 */
export interface CaptureOptions {
  /** The number of files kept for each sender and code; the latest are kept. Default: 5. */
  readonly perSenderAndCode?: number;
  /**
   * The largest total size of the files in the folder, bytes. A delivery that would exceed it is not written.
   * Default: 16 777 216.
   */
  readonly maxTotalBytes?: number;
}

/**
 * The largest body, bytes, that is read and written to the file if the headers alone led to the refusal. A larger body
 * would say nothing more about the reason.
 */
const MAX_BODY_BYTES = 65_536;

/** Matches the names of header fields that may hold a credential. The values of these fields are masked. */
const SECRET = /authorization|cookie|token|secret|credential|api-?key|password/i;
/**
 * Header fields about how the body was sent, which are left out. The file has the whole body, with a length of its own.
 */
const FRAMING = new Set(['content-length', 'transfer-encoding', 'expect']);

/**
 * Makes a text safe for one line of the file's head. Control characters become spaces, so that no sender can begin
 * another line. Characters above U+00FF become `?`. Latin-1 would cut them to eight bits, which may be a line end.
 */
const line = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- control characters are what it is for
  text.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ').replaceAll(/[^\u0000-\u00ff]/gu, '?');

/**
 * Returns the delivery as a raw HTTP request. The first header field is added here, not received: it tells the command
 * `explain` the time, the error code and the URL.
 */
function httpOf(
  { method, url, targetUri, headers, rawBytes, outcome }: RefusedDelivery,
  receivedAt: Date,
): Buffer {
  const about = [
    `received=${receivedAt.toISOString()}`,
    `code=${codeOf({ outcome })}`,
    ...(rawBytes ? [] : ['body=absent']),
    // The URL is last, because it may contain a semicolon, which separates the parts.
    ...(targetUri === undefined ? [] : [`url=${line(targetUri)}`]),
  ];
  const fields = [...headers].flatMap(([name, lines]) => {
    if (FRAMING.has(name)) return [];
    return lines.map((value) => `${line(name)}: ${SECRET.test(name) ? '(masked)' : line(value)}`);
  });
  const head = [
    `${line(method)} ${line(url ?? '/').replaceAll(' ', '%20')} HTTP/1.1`,
    `${CAPTURE_FIELD}: ${about.join('; ')}`,
    ...fields,
    `Content-Length: ${rawBytes?.byteLength ?? 0}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), rawBytes ?? new Uint8Array()]);
}

/** The added header field, which the command `explain` reads. */
const CAPTURE_FIELD = 'Proto-Webhooks-Capture';

const codeOf = ({ outcome }: Pick<RefusedDelivery, 'outcome'>): string =>
  'code' in outcome && outcome.code !== undefined ? outcome.code : outcome.kind;

/** Returns the sender's agent URL in a form for file names. */
const nameOf = (sender: string | undefined): string =>
  (sender ?? 'unknown').replaceAll(/[^A-Za-z0-9]+/g, '-').slice(0, 64);

/** Returns the sizes of the capture files that the folder already has, by name. */
function sizesIn(dir: string): Map<string, number> {
  const names = readdirSync(dir).filter((name) => name.endsWith('.http'));
  return new Map(names.map((name) => [name, statSync(join(dir, name)).size]));
}

const OPTION_NAMES: Readonly<Record<keyof CaptureOptions, true>> = {
  perSenderAndCode: true,
  maxTotalBytes: true,
};

/**
 * Creates a hook for the option `onRefused` that writes refused deliveries into a folder.
 * `npx proto-webhooks explain --dir <folder>` then explains each refusal.
 *
 * Each file is a raw HTTP request, readable by its owner alone (0600). For each seller and error code the latest
 * files are kept, 5 by default. Values of `Authorization`, cookies, and fields named after tokens, secrets, keys and
 * passwords are masked. The URL and the body are written unchanged.
 *
 * If the headers alone led to the refusal, the body is read for the file at most once per second, up to 64 KiB. The
 * headers must name the key id of a known sender. A failed write is reported once, as a warning of the process.
 * @param dir the folder; it is created if it is missing (0700).
 * @throws ConfigError for unknown options, or options that are not whole numbers from 1; the errors of `fs` if the
 *   folder cannot be used.
 * @example
 * ```ts
 * import type { ReceiverOptions } from 'proto-webhooks';
 * import { captureRefused } from 'proto-webhooks/node';
 *
 * export const options: Pick<ReceiverOptions, 'onRefused'> = {
 *   onRefused: captureRefused('/var/lib/buyer/refused', { perSenderAndCode: 3 }),
 * };
 * ```
 */
export function captureRefused(dir: string, options: CaptureOptions = {}): RefusedHook {
  onlyKnown('captureRefused', options, OPTION_NAMES);
  text('captureRefused: dir', dir);
  const most = wholeNumber('captureRefused: perSenderAndCode', options.perSenderAndCode, 5);
  const maxTotalBytes = wholeNumber('captureRefused: maxTotalBytes', options.maxTotalBytes, 16_777_216);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const sizes = sizesIn(dir);
  let total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  const written = new Map<string, number>();
  let writing = false;
  let warned = false;

  async function write(name: string, bytes: Buffer): Promise<void> {
    const part = join(dir, `${randomUUID()}.part`);
    try {
      await writeFile(part, bytes, { mode: 0o600, flag: 'wx' });
      await rename(part, join(dir, name));
      total += bytes.byteLength - (sizes.get(name) ?? 0);
      sizes.set(name, bytes.byteLength);
    } catch (error) {
      await rm(part, { force: true });
      if (!warned) process.emitWarning(`captureRefused: ${(error as Error).message}`);
      warned = true;
    }
  }

  const handle = (delivery: RefusedDelivery): void => {
    // While a file is being written, further refusals are dropped, so that a flood of refusals is no flood of writes.
    if (writing) return;
    const subject = `${nameOf(delivery.sender)}.${codeOf(delivery)}`;
    const turn = written.get(subject) ?? 0;
    const name = `${subject}.${turn % most}.http`;
    const bytes = httpOf(delivery, new Date());
    if (total - (sizes.get(name) ?? 0) + bytes.byteLength > maxTotalBytes) return;
    written.set(subject, turn + 1);
    writing = true;
    void write(name, bytes).finally(() => {
      writing = false;
    });
  };
  return { handle, maxBodyBytes: MAX_BODY_BYTES };
}
