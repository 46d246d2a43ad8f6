import type { Alarm } from '../../src/index.ts';
import {
  type CacheLimits,
  type CacheOptions,
  type CopyResult,
  createDocumentCache,
  defaultFetch,
  type DocumentCache,
  type DocumentKind,
  type FetchBudget,
  KEY_LIMITS,
  unlimitedBudget,
} from '../../src/keys/for-tests.ts';
import { type KeyServer, sends, startKeyServer } from './key-server.ts';
import { SILENT, START } from './setup.ts';

/** Any text but one that begins with `bad`. */
export const TEXT: DocumentKind<string> = {
  name: 'text',
  maxBytes: 100,
  parse: (bytes) => {
    const value = new TextDecoder().decode(bytes);
    return value.startsWith('bad') ? { ok: false, reason: 'begins with bad' } : { ok: true, value };
  },
};

/** A cache before a server that says what the test tells it to, with a clock that the test moves. */
export interface Bench {
  readonly cache: DocumentCache;
  readonly server: KeyServer;
  readonly url: string;
  readonly alarms: Alarm[];
  readonly advance: (ms: number) => void;
  /** Sets the text at `url`. */
  readonly say: (text: string, headers?: Readonly<Record<string, string>>) => void;
  readonly fail: () => void;
  readonly current: () => Promise<string>;
  readonly fetches: () => number;
}

export const LEAVE: FetchBudget = unlimitedBudget('https://seller.example/mcp');

export const textOf = (answer: CopyResult<string>): string =>
  answer.ok ? answer.copy.value : `none: ${answer.reason}`;

export async function setup(
  limits: Partial<CacheLimits> = {},
  options: Partial<CacheOptions> = {},
): Promise<Bench> {
  let now = START;
  const alarms: Alarm[] = [];
  const server = await startKeyServer();
  const url = `${server.origin}/doc`;
  const cache = createDocumentCache({
    fetch: defaultFetch(true),
    allowLoopback: true,
    deadlineMs: 10_000,
    now: () => now,
    limits: { ...KEY_LIMITS, ...limits },
    raiseAlarm: (alarm) => alarms.push(alarm),
    logger: SILENT,
    ...options,
  });
  return {
    cache,
    server,
    url,
    alarms,
    advance: (ms) => {
      now += ms;
    },
    say: (text, headers) => {
      server.answer('/doc', sends(text, headers));
    },
    fail: () => {
      server.answer('/doc', (_req, res) => res.writeHead(500).end());
    },
    current: async () => textOf(await cache.current(TEXT, url, LEAVE)),
    fetches: () => server.count('/doc'),
  };
}
