// Recognises the form of a captured delivery, and reads the delivery. `proto-webhooks explain` calls it.
import { parseStrictObject } from '../../codec/strict-json.ts';
import { UsageError } from '../shell.ts';
import type { Capture } from './capture.ts';
import { readCurl } from './curl.ts';
import { readHttp } from './http.ts';
import { isHar, readHar, readVector } from './capture-json.ts';

const EXPECTED =
  'a raw HTTP request (POST /path HTTP/1.1 …), a HAR file or entry, a curl command, or a vector ({"request":{…}})';

/** Options for reading a capture. */
export interface ReadCaptureOptions {
  /** The name of the input, for messages. */
  readonly file: string;
  /** The index of the entry in a HAR with several entries, from 0. */
  readonly entry?: number;
  /** Reads a file that the curl command names, as in `--data-binary @file`. */
  readonly readFile: (name: string) => Promise<Uint8Array>;
}

function readJson(bytes: Uint8Array, options: ReadCaptureOptions): Capture {
  const json = parseStrictObject(bytes);
  if (!json.ok) throw new UsageError(`the JSON is cut short or broken: ${json.detail}`);
  if (isHar(json.value)) return readHar(json.value, options.entry);
  if ('request' in json.value) return readVector(json.value);
  throw new UsageError(`the JSON has no request. Expected ${EXPECTED}`);
}

async function readAny(bytes: Uint8Array, options: ReadCaptureOptions): Promise<Capture> {
  const start = new TextDecoder().decode(bytes.subarray(0, 4096)).trimStart();
  if (start === '') throw new UsageError(`it is empty. Expected ${EXPECTED}`);
  if (start.startsWith('{')) return readJson(bytes, options);
  if (/^(?:\$\s*)?curl\s/.test(start)) return readCurl(new TextDecoder().decode(bytes), options.readFile);
  if (/^[A-Z]+ \S/.test(start)) return readHttp(bytes);
  throw new UsageError(`unknown shape. Expected ${EXPECTED}`);
}

/** Reads a captured delivery in any of the four forms. @throws UsageError with the file and the missing part. */
export async function readCapture(bytes: Uint8Array, options: ReadCaptureOptions): Promise<Capture> {
  try {
    return await readAny(bytes, options);
  } catch (error) {
    if (error instanceof UsageError)
      throw new UsageError(`${options.file}: ${error.message.replace(/\.$/, '')}.`, { cause: error });
    throw error;
  }
}
