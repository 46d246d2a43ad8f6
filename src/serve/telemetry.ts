// Starts metrics and traces by the usual OpenTelemetry environment variables, or only metrics (serve.md §3.3).
// `serve.ts` calls it before it makes an instance.
import type { RequestListener } from 'node:http';
import { ConfigError, type Receiver } from '../index.ts';
import type { InstrumentOptions } from '../otel/index.ts';
import { findPackage, named, type Package } from './clients.ts';
import { endsWithin } from './within.ts';

/** The metrics and traces of the process. */
export interface Telemetry {
  /** Answers requests for `/metrics`. Absent: `/metrics` is off. */
  readonly metrics?: RequestListener;
  /** Starts to measure a receiver. @returns the function that stops it */
  readonly instrument: (receiver: Receiver) => () => void;
  /** Sends the remaining data. It takes at most `FLUSH_MS`. */
  readonly end: () => Promise<unknown>;
}

/** The settings with which `startTelemetry` decides what to start. */
export interface TelemetryOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True if `/metrics` must be served. */
  readonly metrics: boolean;
  /** The folders in which packages are looked up. */
  readonly folders: readonly string[];
}

/** The time limit for sending the remaining data: an unreachable collector must not keep the process running. Ms. */
const FLUSH_MS = 2_000;

const API = '@opentelemetry/api';
const METRICS = '@opentelemetry/sdk-metrics';
const PROMETHEUS = '@opentelemetry/exporter-prometheus';
const SDK = '@opentelemetry/sdk-node';

type Signal = 'TRACES' | 'METRICS';

type Env = TelemetryOptions['env'];

const isSet = (env: Env, name: string): boolean => (env[name] ?? '') !== '';

/** True if the usual OpenTelemetry variables name a destination for the signal (metrics or traces). */
const isSent = (env: Env, signal: Signal): boolean =>
  isSet(env, 'OTEL_EXPORTER_OTLP_ENDPOINT') || isSet(env, `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`);

const installing = (why: string, names: readonly string[]): ConfigError =>
  new ConfigError(
    `${why}: not installed: ${names.join(', ')}. Run npm install ${names.join(' ')}, in the folder of the configuration, beside proto-webhooks.`,
  );

/** Loads packages. @throws ConfigError (rejects) that names all packages that are not installed */
async function packages<const N extends string>(
  why: string,
  names: readonly N[],
  folders: readonly string[],
): Promise<Readonly<Record<N, Package>>> {
  const found = await Promise.all(
    names.map(async (name) => [name, await findPackage(name, folders)] as const),
  );
  const missing = found.filter(([, module]) => module === undefined).map(([name]) => name);
  if (missing.length > 0) throw installing(why, missing);
  return Object.fromEntries(found) as Readonly<Record<N, Package>>;
}

/**
 * The reasons why packages are needed, as messages name them: an environment variable, or a member of the configuration
 * file.
 */
const SENT = 'OTEL_EXPORTER_OTLP_ENDPOINT';
const ASKED = 'health.metrics';
const ASKED_NAMES = [API, METRICS, PROMETHEUS] as const;

const sdkNames = (metrics: boolean): readonly (typeof API | typeof SDK | typeof PROMETHEUS)[] =>
  metrics ? [API, SDK, PROMETHEUS] : [API, SDK];

/** The OpenTelemetry packages that are needed, and the setting that requires them. */
interface Wanted {
  readonly why: string;
  readonly names: readonly string[];
}

/** Returns the OpenTelemetry packages that are needed; undefined if nothing is measured. */
export function wantedOf({ env, metrics }: Pick<TelemetryOptions, 'env' | 'metrics'>): Wanted | undefined {
  if (isSent(env, 'TRACES') || isSent(env, 'METRICS')) return { why: SENT, names: sdkNames(metrics) };
  return metrics ? { why: ASKED, names: ASKED_NAMES } : undefined;
}

/**
 * Checks that the needed packages are installed, but starts nothing.
 * @returns a sentence with their names.
 * @throws ConfigError (rejects) with the command that installs missing ones
 */
export async function installed({ why, names }: Wanted, folders: readonly string[]): Promise<string> {
  await packages(why, names, folders);
  return `installed: ${names.join(', ')}`;
}

/** The type of a constructor that a package exports. */
type Make<T> = new (options?: object) => T;

interface Reader {
  getMetricsRequestHandler: RequestListener;
}

interface NodeSdk {
  start(): void;
  shutdown(): Promise<void>;
}

const reader = (module: Package): Reader => {
  const Exporter = named(module, 'PrometheusExporter') as Make<Reader>;
  return new Exporter({ preventServerStart: true });
};

/**
 * Returns the options of the OpenTelemetry SDK. Metrics or traces are not sent if the environment variables name no
 * destination for them. The SDK's own default would be a collector on this machine.
 */
function sdkOptions(env: Env, asked: Reader | undefined): object {
  const isNamed =
    isSet(env, 'OTEL_SERVICE_NAME') || /\bservice\.name=/.test(env['OTEL_RESOURCE_ATTRIBUTES'] ?? '');
  return {
    ...(!isNamed && { serviceName: 'proto-webhooks' }),
    ...(!isSent(env, 'TRACES') && { spanProcessors: [] }),
    ...(asked ? { metricReaders: [asked] } : !isSent(env, 'METRICS') && { metricReaders: [] }),
    logRecordProcessors: [],
  };
}

/**
 * Loads `instrument` of `proto-webhooks/otel`.
 * @throws ConfigError (rejects) if this package cannot find the package `@opentelemetry/api`.
 */
async function instrumenting(options: InstrumentOptions): Promise<Telemetry['instrument']> {
  try {
    const { instrument } = await import('../otel/index.ts');
    return (receiver) => instrument(receiver, options);
  } catch (error) {
    if (!/MODULE_NOT_FOUND/.test(String((error as NodeJS.ErrnoException).code))) throw error;
    throw installing('OpenTelemetry', [API]);
  }
}

const flushed = (work: Promise<void>): Promise<unknown> =>
  endsWithin(
    work.catch(() => undefined),
    FLUSH_MS,
  );

/** Starts metrics and traces with the OpenTelemetry SDK, which reads its own environment variables (serve.md §3.3). */
async function bySdk({ env, metrics, folders }: TelemetryOptions): Promise<Telemetry> {
  const found: Partial<Readonly<Record<string, Package>>> = await packages(SENT, sdkNames(metrics), folders);
  const asked = found[PROMETHEUS] && reader(found[PROMETHEUS]);
  const NodeSDK = named(found[SDK] as Package, 'NodeSDK') as Make<NodeSdk>;
  const sdk = new NodeSDK(sdkOptions(env, asked));
  sdk.start();
  return {
    ...(asked && { metrics: (req, res) => asked.getMetricsRequestHandler(req, res) }),
    instrument: await instrumenting({}),
    end: () => flushed(sdk.shutdown()),
  };
}

/** Starts only the metrics of `/metrics`: nothing is sent to a collector, and there are no traces. */
async function byReader({ folders }: TelemetryOptions): Promise<Telemetry> {
  const found = await packages(ASKED, ASKED_NAMES, folders);
  const asked = reader(found[PROMETHEUS]);
  type Provider = NonNullable<InstrumentOptions['meterProvider']> & { shutdown(): Promise<void> };
  const MeterProvider = named(found[METRICS], 'MeterProvider') as Make<Provider>;
  const meterProvider = new MeterProvider({ readers: [asked] });
  return {
    metrics: (req, res) => asked.getMetricsRequestHandler(req, res),
    instrument: await instrumenting({ meterProvider }),
    end: () => flushed(meterProvider.shutdown()),
  };
}

/**
 * Starts the requested telemetry. Returns undefined if none is requested; then no OpenTelemetry package is needed.
 * @throws ConfigError (rejects) with the command that installs a missing package
 */
export async function startTelemetry(options: TelemetryOptions): Promise<Telemetry | undefined> {
  const wanted = wantedOf(options);
  if (!wanted) return undefined;
  return wanted.why === SENT ? bySdk(options) : byReader(options);
}
