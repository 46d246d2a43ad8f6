// Posts the reports of `devHooks` to `proto-webhooks dev`, oldest first, and drops them if dev is not running (dev.md
// §3.2).
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import type { Told } from '../dev/wire.ts';
import { textOf } from '../shared/errors.ts';

/** The port of a running dev, and the token that its API requires. */
interface Place {
  readonly port: number;
  readonly token: string;
}

const MAX_QUEUED = 256;
/** The time limit for dev's answer, ms. After it all waiting reports are dropped. */
const TIMEOUT_MS = 10_000;

/** Reads the port and the token from dev's folder. @returns undefined if they are missing or cannot be used. */
async function placeIn(dir: string): Promise<Place | undefined> {
  try {
    const [port, token] = await Promise.all(
      ['port', 'token'].map(async (name) => (await readFile(join(dir, name), 'utf8')).trim()),
    );
    if (!/^[1-9]\d{0,4}$/.test(port ?? '') || !/^[\w-]+$/.test(token ?? '')) return undefined;
    return Number(port) <= 65_535 ? { port: Number(port), token: token as string } : undefined;
  } catch {
    return undefined;
  }
}

/** The most bytes that dev accepts as one report. */
const MAX_BYTES = 256 * 1024;

/** Returns a report of a hook as JSON, in which a bigint is text. @throws TypeError for a value without a JSON form. */
const jsonOf = (told: Told): string =>
  JSON.stringify(told, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value));

/**
 * Returns the JSON of a hook's report. It is made before this call returns, because a handler may change its event
 * later. An event that is too large, or has no JSON form, is replaced by the reason.
 */
function bodyOf(told: Told): string {
  let why: string;
  try {
    const body = jsonOf(told);
    const bytes = Buffer.byteLength(body);
    if (bytes <= MAX_BYTES) return body;
    why = `Left out: ${bytes} bytes of JSON.`;
  } catch (error) {
    why = `Has no JSON: ${textOf(error)}`;
  }
  return jsonOf({ ...told, ...('event' in told && { event: why }) });
}

/** Posts one report to dev. Resolves with false if dev is not running, or has another token. */
function isPosted(body: string, { port, token }: Place, timeout: number): Promise<boolean> {
  return new Promise((resolve) => {
    const posting = request({
      agent: false,
      host: '127.0.0.1',
      port,
      path: '/api/told',
      method: 'POST',
      // The limit is for the whole exchange: an answer that never ends must not block the reports that wait.
      signal: AbortSignal.timeout(timeout),
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    });
    posting
      .on('socket', (socket) => socket.unref())
      .on('error', () => resolve(false))
      .on('response', (answer) => {
        // Dev answers 200. Any other answer is from another program, or from a dev with another token.
        answer.resume().on('close', () => resolve(answer.complete && answer.statusCode === 200));
      })
      .end(body);
  });
}

/**
 * Makes a function that posts reports of hooks to dev one after the other, in the order of the calls (dev.md §3.2). Its
 * callers do not wait, and nothing keeps the process alive. If dev is not running, all waiting reports are dropped.
 */
export function tellDev(dir: string, timeoutMs: number = TIMEOUT_MS): (told: Told) => void {
  const queue: string[] = [];
  let place: Place | undefined;
  let posting = false;

  async function isTold(body: string): Promise<boolean> {
    if (place && (await isPosted(body, place, timeoutMs))) return true;
    // Dev may have been restarted, at another port or with another token.
    place = await placeIn(dir);
    if (place && (await isPosted(body, place, timeoutMs))) return true;
    place = undefined;
    return false;
  }

  async function run(): Promise<void> {
    for (let body = queue.shift(); body !== undefined; body = queue.shift()) {
      if (!(await isTold(body))) queue.length = 0;
    }
    posting = false;
  }

  return (told) => {
    if (queue.length >= MAX_QUEUED) return;
    queue.push(bodyOf(told));
    if (posting) return;
    posting = true;
    run().catch(() => {
      queue.length = 0;
      posting = false;
    });
  };
}
