import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { SenderSource } from '../../index.ts';
import { CONFIG_FILE, type ConfigInFile, type SinkInFile, type StoreInFile } from './definition.ts';
import { mistakesOf } from './issues.ts';
import { createSecrets, type Secrets } from './secrets.ts';
import { sellersOf } from './sellers.ts';
import { type Mistake, type Path, readYaml, type YamlText } from './yaml-text.ts';

/** A store as it is opened: the URL is what the secret says, paths are absolute. */
export type StoreConfig =
  | { readonly kind: 'sqlite'; readonly path: string; readonly isDefault: boolean }
  | {
      readonly kind: 'postgres';
      readonly url: string;
      readonly schema?: string;
      readonly connections: number;
    }
  | { readonly kind: 'mysql'; readonly url: string; readonly connections: number }
  | {
      readonly kind: 'redis';
      readonly url: string;
      readonly prefix?: string;
      readonly waitReplicas?: number;
    };

/** A sink as it is made. */
export type SinkConfig = {
  readonly timeoutMs: number;
  readonly concurrency: number;
  readonly attempts: number;
} & (
  | { readonly kind: 'module'; readonly path: string; readonly name: string }
  | {
      readonly kind: 'http';
      readonly url: string;
      readonly secrets: readonly string[];
      readonly headers: Readonly<Record<string, string>>;
    }
);

/** The configuration with its secrets. */
export interface ServeConfig extends Pick<
  ConfigInFile,
  'publicUrl' | 'listen' | 'health' | 'durability' | 'events' | 'limits' | 'hostCheck' | 'allowLoopback'
> {
  /** Packages and modules are looked for from here too. */
  readonly folder: string;
  readonly senders: SenderSource;
  readonly store: StoreConfig;
  readonly sink: SinkConfig;
}

/** The file and where its variables are. */
export interface ConfigSource {
  /** As it was given: messages begin with it. */
  readonly file: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The configuration, or every mistake, each one line. */
export type ReadConfig = { readonly config: ServeConfig } | { readonly mistakes: readonly string[] };

const MAX_BYTES = 1_048_576;

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
};

/** `sellers[0].agentUrl`. */
const written = (path: Path): string =>
  path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`;
      const name = /^[\w-]+$/.test(String(part)) ? String(part) : JSON.stringify(String(part).slice(0, 100));
      return index === 0 ? name : `.${name}`;
    })
    .join('');

/** In the order of the file. */
function lines(file: string, mistakes: readonly Mistake[], yaml: YamlText): string[] {
  return mistakes
    .map((one) => ({ ...one, position: one.position ?? yaml.at(one.path) }))
    .toSorted((a, b) => a.position.line - b.position.line || a.position.column - b.position.column)
    .map(({ path, position: { line, column }, text }) => {
      const where = path.length > 0 ? `${written(path)}: ` : '';
      return `${file}:${line}:${column} ${where}${text}`;
    });
}

function textOf({ file, cwd }: ConfigSource): { readonly text: string } | { readonly mistake: string } {
  try {
    const bytes = readFileSync(resolve(cwd, file));
    if (bytes.length > MAX_BYTES) return { mistake: `${file}: longer than ${MAX_BYTES} bytes. Write less.` };
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const why = code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'it is not UTF-8' : (REASONS[code] ?? code);
    return { mistake: `${file}: ${why}. Expected the configuration of serve, a YAML file.` };
  }
}

const URLS: Readonly<Record<string, RegExp>> = {
  postgres: /^postgres(?:ql)?:\/\/./,
  mysql: /^mysql:\/\/./,
  redis: /^rediss?:\/\/./,
};

function urlIn(
  kind: 'postgres' | 'mysql' | 'redis',
  store: { readonly url: { readonly env: string } | { readonly file: string } },
  from: Secrets,
  found: Mistake[],
): string {
  const path = ['store', kind, 'url'];
  const before = from.mistakes.length;
  const url = from.read(store.url, path);
  if (from.mistakes.length === before && (!URLS[kind]?.test(url) || !URL.canParse(url))) {
    found.push({
      path,
      text: `the secret is not a URL of ${kind}. Put one there like ${kind}://user:password@host:port/name, special characters of the password percent-encoded.`,
    });
  }
  return url;
}

function storeOf(
  store: StoreInFile,
  folder: string,
  isDefault: boolean,
  from: Secrets,
  found: Mistake[],
): StoreConfig {
  if ('sqlite' in store) return { kind: 'sqlite', path: resolve(folder, store.sqlite), isDefault };
  if ('postgres' in store) {
    const { schema, connections } = store.postgres;
    const url = urlIn('postgres', store.postgres, from, found);
    return { kind: 'postgres', url, connections, ...(schema !== undefined && { schema }) };
  }
  if ('mysql' in store) {
    return {
      kind: 'mysql',
      url: urlIn('mysql', store.mysql, from, found),
      connections: store.mysql.connections,
    };
  }
  const { prefix, waitReplicas } = store.redis;
  return {
    kind: 'redis',
    url: urlIn('redis', store.redis, from, found),
    ...(prefix !== undefined && { prefix }),
    ...(waitReplicas !== undefined && { waitReplicas }),
  };
}

/** As Standard Webhooks has them. */
function isSigningSecret(secret: string): boolean {
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? [];
  const bytes = Buffer.from(base64, 'base64').length;
  return bytes >= 24 && bytes <= 64;
}

const STANDARD = { timeoutMs: 15_000, concurrency: 16, attempts: 12 };

function sinkOf(sink: SinkInFile, folder: string, from: Secrets, found: Mistake[]): SinkConfig {
  if (typeof sink === 'string')
    return { ...STANDARD, kind: 'module', path: resolve(folder, sink), name: sink };
  const { timeoutMs, concurrency, attempts } = sink;
  const numbers = { timeoutMs, concurrency, attempts };
  if ('module' in sink)
    return { ...numbers, kind: 'module', path: resolve(folder, sink.module), name: sink.module };
  if (!URL.canParse(sink.url) || !/^https?:$/.test(new URL(sink.url).protocol)) {
    found.push({
      path: ['sink', 'url'],
      text: 'is not an absolute http or https URL. Write one, e.g. http://127.0.0.1:3000/events.',
    });
  }
  const secrets = sink.secrets.map((place, index) => {
    const path = ['sink', 'secrets', index];
    const before = from.mistakes.length;
    const secret = from.read(place, path);
    if (from.mistakes.length === before && !isSigningSecret(secret)) {
      found.push({
        path,
        text: `the secret is not whsec_ and base64 of 24 to 64 bytes. Make one: echo "whsec_$(head -c 32 /dev/urandom | base64)"`,
      });
    }
    return secret;
  });
  const headers = Object.entries(sink.headers ?? {}).map(([name, place]) => [
    name,
    from.read(place, ['sink', 'headers', name]),
  ]);
  return {
    ...numbers,
    kind: 'http',
    url: sink.url,
    secrets,
    headers: Object.fromEntries(headers) as Record<string, string>,
  };
}

/** True if the file names a store. */
const namesStore = (value: unknown): boolean => (value as { readonly store?: unknown }).store !== undefined;

/** Reads the file and its secrets (serve.md §1). Nothing is opened, and nothing is changed. */
export function readConfig(source: ConfigSource): ReadConfig {
  const read = textOf(source);
  if ('mistake' in read) return { mistakes: [read.mistake] };
  const yaml = readYaml(read.text);
  const told = (mistakes: readonly Mistake[]): ReadConfig => ({
    mistakes: lines(source.file, mistakes, yaml),
  });
  if (yaml.mistakes.length > 0) return told(yaml.mistakes);
  const checked = CONFIG_FILE.safeParse(yaml.value ?? undefined);
  if (!checked.success) return told(mistakesOf(checked.error.issues));

  const { sellers: _, store, sink, ...rest } = checked.data;
  const folder = dirname(resolve(source.cwd, source.file));
  const from = createSecrets({ env: source.env, folder });
  const found: Mistake[] = [];
  const { senders, mistakes } = sellersOf(checked.data, from);
  const config: ServeConfig = {
    ...rest,
    folder,
    senders,
    store: storeOf(store, folder, !namesStore(yaml.value), from, found),
    sink: sinkOf(sink, folder, from, found),
  };
  const all = [...mistakes, ...found, ...from.mistakes];
  return all.length > 0 ? told(all) : { config };
}
