// Posts to `proto-webhooks dev` what hooks tell, in order, and drops it if dev is not there (dev.md §3.2). `devHooks`
// calls it.
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import type { Told } from '../dev/wire.ts';
import { textOf } from '../shared/errors.ts';

/** The port at which dev listens, and the token that its API asks for. */
interface Place {
  readonly port: number;
  readonly token: string;
}

const MAX_QUEUED = 256;
/** The time limit for dev's answer, ms. After it, everything that waits is dropped. */
const TIMEOUT_MS = 10_000;

/**
 * Reads the port and the token from dev's folder. @returns undefined if dev has written none there, or they cannot be
 * used.
 */
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

/** The largest telling that dev takes, bytes. */
const MAX_BYTES = 256 * 1024;

/** The JSON of a telling; a bigint becomes text. @throws TypeError for a value without JSON. */
const jsonOf = (told: Told): string =>
  JSON.stringify(told, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value));

/**
 * The body of a telling, written at once: a handler may change its event later. An event that is too large, or has no
 * JSON, is replaced by the reason.
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

/** Posts one body. @returns false if dev is not there, or has another token. */
function isPosted(body: string, { port, token }: Place, timeout: number): Promise<boolean> {
  return new Promise((resolve) => {
    const posting = request({
      agent: false,
      host: '127.0.0.1',
      port,
      path: '/api/told',
      method: 'POST',
      // For the whole exchange: an answer without an end must not hold up the queue.
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
        // Dev answers 200. Any other answer is that of another program, or of a dev with another token.
        answer.resume().on('close', () => resolve(answer.complete && answer.statusCode === 200));
      })
      .end(body);
  });
}

/**
 * Posts tellings to dev in order, one at a time, and nobody waits for them (dev.md §3.2). Nothing of it keeps the
 * process alive. If dev is not there, all that waits is dropped.
 */
export function tellDev(dir: string, timeoutMs: number = TIMEOUT_MS): (told: Told) => void {
  const queue: string[] = [];
  let place: Place | undefined;
  let posting = false;

  async function isTold(body: string): Promise<boolean> {
    if (place && (await isPosted(body, place, timeoutMs))) return true;
    // Another dev may have come, at another port or with another token.
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
