// Reads the configuration file and its secrets, and reports every mistake with its line (serve.md §1.1, §1.2).
// `proto-webhooks serve` and each reload call it.
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { SenderSource } from '../../index.ts';
import { CONFIG_FILE, SAMPLES } from './definition.ts';
import type { ConfigInFile } from './file-types.ts';
import { findings, UNREADABLE } from './findings.ts';
import { mistakesOf } from './issues.ts';
import { sellersOf } from './sellers.ts';
import { type SinkConfig, sinkOf, type StoreConfig, storeOf } from './store-and-sink.ts';
import { type Mistake, type Path, readYaml, type YamlText } from './yaml-text.ts';

/** The checked configuration with its secrets. */
export interface ServeConfig extends Omit<ConfigInFile, 'sellers' | 'store' | 'sink'> {
  /** The folder of the configuration file, in which packages and modules are looked up too. */
  readonly folder: string;
  readonly senders: SenderSource;
  readonly store: StoreConfig;
  readonly sink: SinkConfig;
}

/** The configuration file, and the environment variables that it may name. */
export interface ConfigSource {
  /** The file name as it was given; messages begin with this name. */
  readonly file: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The result of reading: the configuration, or all mistakes, one line for each. */
export type ReadConfig = { readonly config: ServeConfig } | { readonly mistakes: readonly string[] };

const MAX_BYTES = 1_048_576;

function textOf({
  file,
  cwd,
}: ConfigSource): { readonly text: string } | { readonly mistakes: readonly string[] } {
  const wrong = (why: string): { readonly mistakes: readonly string[] } => ({
    mistakes: [`${file}: ${why}. Expected the configuration of serve, a YAML file.`],
  });
  try {
    const bytes = readFileSync(resolve(cwd, file));
    if (bytes.length > MAX_BYTES) return wrong(`it is longer than ${MAX_BYTES} bytes`);
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return wrong(
      code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'it is not UTF-8' : (UNREADABLE[code] ?? code),
    );
  }
}

/** Returns a path as text, e.g. `sellers[0].agentUrl`. An unusual name is quoted as JSON, and a long one is cut. */
const written = (path: Path): string =>
  path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`;
      const name = /^[\w-]{1,100}$/.test(String(part))
        ? String(part)
        : JSON.stringify(String(part).slice(0, 100));
      return index === 0 ? name : `.${name}`;
    })
    .join('');

/** Returns the mistakes as lines, in the order of the file. */
function told(file: string, mistakes: readonly Mistake[], yaml: YamlText): ReadConfig {
  const lines = mistakes
    .map((one) => ({ ...one, ...(one.position ?? yaml.at(one.path)) }))
    .toSorted((a, b) => a.line - b.line || a.column - b.column)
    .map(({ path, line, column, text }) => {
      const where = path.length > 0 ? `${written(path)}: ` : '';
      return `${file}:${line}:${column} ${where}${text}`;
    });
  return { mistakes: [...new Set(lines)] };
}

/**
 * Returns the configuration with valid samples in place of wrong members. So the other members are checked too, and all
 * mistakes are reported together. Undefined if the file as a whole is wrong.
 */
function repaired(value: unknown, mistakes: readonly Mistake[]): ConfigInFile | undefined {
  if (mistakes.some(({ path }) => path.length === 0)) return undefined;
  const copy: Record<string, unknown> = { ...(value as object) };
  const sellers: unknown[] = Array.isArray(copy['sellers']) ? [...(copy['sellers'] as unknown[])] : [];
  for (const { path } of mistakes) {
    const [top, index] = path as readonly [string, PropertyKey?];
    if (top === 'sellers' && typeof index === 'number') {
      sellers[index] = SAMPLES.sellers[0];
      copy[top] = sellers;
    } else if (Object.hasOwn(SAMPLES, top)) copy[top] = SAMPLES[top as keyof typeof SAMPLES];
    else delete copy[top];
  }
  return CONFIG_FILE.safeParse(copy).data;
}

/**
 * True if both paths lead into a part that `repaired` replaces by one sample. A mistake in a sample is not the
 * author's, so it is not reported.
 */
const isOfOnePart = ([top, index]: Path, [otherTop, otherIndex]: Path): boolean =>
  top === otherTop && (top !== 'sellers' || index === undefined || index === otherIndex);

/** Reads the configuration file and its secrets (serve.md §1). It opens no store or sink, and changes nothing. */
export function readConfig(source: ConfigSource): ReadConfig {
  const read = textOf(source);
  if ('mistakes' in read) return read;
  const yaml = readYaml(read.text);
  if (yaml.mistakes.length > 0) return told(source.file, yaml.mistakes, yaml);
  const value = yaml.value ?? {};
  const checked = CONFIG_FILE.safeParse(value);
  const mistakes = checked.success ? [] : mistakesOf(checked.error.issues);
  const data = checked.data ?? repaired(value, mistakes);
  if (!data) return told(source.file, mistakes, yaml);

  const found = findings({ env: source.env, folder: dirname(resolve(source.cwd, source.file)) });
  const { sellers: _, store, sink, ...rest } = data;
  const config: ServeConfig = {
    ...rest,
    folder: found.folder,
    senders: sellersOf(data, checked.success, found),
    store: storeOf(store, !Object.hasOwn(value, 'store'), found),
    sink: sinkOf(sink, found),
  };
  const ofSamples = (path: Path): boolean => mistakes.some((one) => isOfOnePart(one.path, path));
  const all = [...mistakes, ...found.mistakes.filter(({ path }) => !ofSamples(path))];
  return all.length > 0 ? told(source.file, all, yaml) : { config };
}
