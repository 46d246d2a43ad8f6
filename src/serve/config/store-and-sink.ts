// Turns store and sink (destination of events) of the configuration file into configurations with secrets and absolute
// paths. `read-config.ts` calls it.
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { httpSink } from '../sink/http-sink.ts';
import { secretBytes } from '../sink/signature.ts';
import { SINK_NUMBERS } from './definition.ts';
import type { SinkInFile, StoreInFile } from './file-types.ts';
import type { Findings } from './findings.ts';

/** The configuration of a store, with absolute paths and with the URL that was read as a secret. */
export type StoreConfig =
  | { readonly kind: 'sqlite'; readonly path: string; readonly isDefault: boolean }
  | {
      readonly kind: 'postgres';
      readonly url: string;
      readonly schema?: string | undefined;
      readonly connections: number;
    }
  | { readonly kind: 'mysql'; readonly url: string; readonly connections: number }
  | {
      readonly kind: 'redis';
      readonly url: string;
      readonly prefix?: string | undefined;
      readonly waitReplicas?: number | undefined;
    };

/** The configuration of a sink (destination of events). */
export type SinkConfig = Readonly<Record<'timeoutMs' | 'concurrency' | 'attempts', number>> &
  (
    | { readonly kind: 'module'; readonly path: string; readonly name: string }
    | {
        readonly kind: 'http';
        readonly url: string;
        readonly secrets: readonly string[];
        readonly headers: Readonly<Record<string, string>>;
      }
  );

const URLS = { postgres: /^postgres(?:ql)?:\/\/./, mysql: /^mysql:\/\/./, redis: /^rediss?:\/\/./ } as const;

type Server = keyof typeof URLS;

function urlOf(
  kind: Server,
  { url: place }: Extract<StoreInFile, { redis: object }>['redis'],
  found: Findings,
): string {
  const path = ['store', kind, 'url'];
  const url = found.secret(place, path);
  if (url !== undefined && (!URLS[kind].test(url) || !URL.canParse(url))) {
    found.wrong(
      path,
      `the secret is not a URL of ${kind}. Put one there like ${kind}://user:password@host:port/name, with special characters of the password percent-encoded.`,
    );
  }
  return url ?? '';
}

/**
 * Returns the store of the configuration file.
 * @param isDefault true if the file names no store. `serve` then makes the store's folder when it starts.
 */
export function storeOf(store: StoreInFile, isDefault: boolean, found: Findings): StoreConfig {
  if ('postgres' in store)
    return { kind: 'postgres', ...store.postgres, url: urlOf('postgres', store.postgres, found) };
  if ('mysql' in store) return { kind: 'mysql', ...store.mysql, url: urlOf('mysql', store.mysql, found) };
  if ('redis' in store) return { kind: 'redis', ...store.redis, url: urlOf('redis', store.redis, found) };
  const path = resolve(found.folder, store.sqlite);
  // The folder may be a volume that is not mounted, so it is not made here.
  if (!isDefault && !existsSync(dirname(path))) {
    found.wrong(
      ['store', 'sqlite'],
      `the folder ${dirname(path)} is not there. Mount it, or run: mkdir -p ${dirname(path)}`,
    );
  }
  return { kind: 'sqlite', path, isDefault };
}

/**
 * A valid sample secret with which the sink's other options are checked. So a missing secret hides no other mistake.
 */
const SAMPLE_SECRET = `whsec_${Buffer.alloc(32).toString('base64')}`;

function httpOf(
  { url, secrets: places, headers: fields = {}, ...numbers }: Extract<SinkInFile, { readonly url: string }>,
  found: Findings,
): SinkConfig {
  const secrets = places.map((place, index) => {
    const path = ['sink', 'secrets', index];
    const secret = found.secret(place, path);
    if (secret !== undefined)
      found.refusedBy(
        () => secretBytes(secret),
        () => path,
      );
    return secret ?? '';
  });
  const headers = Object.fromEntries(
    Object.entries(fields).map(([name, place]) => [
      name,
      found.secret(place, ['sink', 'headers', name]) ?? '',
    ]),
  );
  found.refusedBy(
    () => httpSink({ url, secrets: [SAMPLE_SECRET], headers, timeoutMs: numbers.timeoutMs }),
    (name) => ['sink', name],
  );
  return { ...numbers, kind: 'http', url, secrets, headers };
}

/** Returns the sink (destination of events) of the configuration file, with its secrets. */
export function sinkOf(sink: SinkInFile, found: Findings): SinkConfig {
  if (typeof sink === 'string') return sinkOf({ module: sink, ...SINK_NUMBERS }, found);
  if ('url' in sink) return httpOf(sink, found);
  const { module: name, ...numbers } = sink;
  const path = resolve(found.folder, name);
  if (!existsSync(path))
    found.wrong(['sink'], `the module ${path} is not there. Write the path of one that exports send.`);
  return { ...numbers, kind: 'module', path, name };
}
