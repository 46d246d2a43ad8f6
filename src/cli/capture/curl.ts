import { parseArgs } from 'node:util';
import { UsageError } from '../usage-error.ts';
import type { Capture } from './capture.ts';
import { targetOf } from './members.ts';
import { shellWords } from './shell-words.ts';
import { contentLengths, requireWhole } from './whole-body.ts';

const OPTIONS = {
  request: { type: 'string', short: 'X' },
  header: { type: 'string', short: 'H', multiple: true },
  data: { type: 'string', short: 'd', multiple: true },
  'data-raw': { type: 'string', multiple: true },
  'data-binary': { type: 'string', multiple: true },
  'data-ascii': { type: 'string', multiple: true },
  json: { type: 'string', multiple: true },
  url: { type: 'string' },
  // Known so that their values are not taken for a URL.
  'user-agent': { type: 'string', short: 'A' },
  user: { type: 'string', short: 'u' },
  cookie: { type: 'string', short: 'b' },
  output: { type: 'string', short: 'o' },
  'max-time': { type: 'string', short: 'm' },
  proxy: { type: 'string', short: 'x' },
  resolve: { type: 'string' },
  'connect-to': { type: 'string' },
  'connect-timeout': { type: 'string' },
  cacert: { type: 'string' },
  retry: { type: 'string' },
} as const;

type ReadFile = (name: string) => Promise<Uint8Array>;

/** Each way of curl to say a body: whether `@file` is one, and whether line ends are dropped from it. */
const DATA = [
  { name: 'data', file: true, strip: true },
  { name: 'data-ascii', file: true, strip: true },
  { name: 'data-raw', file: false, strip: false },
  { name: 'data-binary', file: true, strip: false },
  { name: 'json', file: true, strip: false },
] as const;

async function part(
  text: string,
  { file, strip }: (typeof DATA)[number],
  readFile: ReadFile,
): Promise<Buffer> {
  if (!file || !text.startsWith('@')) return Buffer.from(text, 'utf8');
  const bytes = Buffer.from(await readFile(text.slice(1)));
  return strip ? Buffer.from(bytes.toString('latin1').replace(/[\r\n\0]/g, ''), 'latin1') : bytes;
}

function headerOf(line: string): [string, string] {
  const colon = line.indexOf(':');
  return colon < 0 ? [line, ''] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
}

/** A `curl` command as browsers and API tools copy it. */
export async function readCurl(command: string, readFile: ReadFile): Promise<Capture> {
  const [, ...args] = shellWords(command.trim().replace(/^\$\s*/, ''));
  const { values, positionals } = parseArgs({
    args,
    options: OPTIONS,
    strict: false,
    allowPositionals: true,
  });
  const given = values as { [K in keyof typeof OPTIONS]?: string | string[] };
  const url = [given.url ?? [], positionals].flat().find((word) => /^https?:\/\/./i.test(word));
  if (url === undefined)
    throw new UsageError('the curl command has no URL that begins with http:// or https://');
  const parts: Buffer[] = [];
  for (const how of DATA) {
    for (const text of [given[how.name] ?? []].flat()) {
      if (parts.length > 0 && how.name !== 'json') parts.push(Buffer.from('&'));
      parts.push(await part(text, how, readFile));
    }
  }
  const headers = [given.header ?? []].flat().map(headerOf);
  const typed = headers.some(([name]) => name.toLowerCase() === 'content-type');
  if (given.json !== undefined && !typed) headers.push(['Content-Type', 'application/json']);
  const body = new Uint8Array(Buffer.concat(parts));
  const declared = contentLengths(headers);
  requireWhole(body, declared);
  if (parts.length === 0 && declared.length === 0)
    throw new UsageError('the curl command has no body: expected --data-raw or --data-binary');
  return {
    form: 'curl command',
    method: [given.request ?? (parts.length > 0 ? 'POST' : 'GET')].flat()[0] ?? 'POST',
    url,
    target: targetOf(url),
    headers,
    body,
    notes: [],
  };
}
