// The types of the registry client and its error (contract.md §2). Members of answers that are not listed here are
// kept.
// Implemented by `index.ts`, which exports the types as part of `proto-webhooks/registry`.

import type { RegistryErrorCode } from '../shared/codes.ts';
import type { StandardSchema } from '../events/event.ts';
import type { AnyFetch } from '../keys/key-resolver.ts';
import { PrintableError } from '../codec/printable-value.ts';

/** Thrown if a call of the registry client failed. `message` contains no token. */
export class RegistryError extends PrintableError {
  override readonly name = 'RegistryError';
  /** The stable code, for programs. The page docs/thrown-errors.md explains each code. */
  readonly code: RegistryErrorCode;
  /** The HTTP status; undefined if there was no answer. */
  readonly status: number | undefined;
  /** The time that the registry asked the client to wait, ms; undefined if it did not ask. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: RegistryErrorCode,
    message: string,
    options: ErrorOptions & Partial<Pick<RegistryError, 'status' | 'retryAfterMs'>> = {},
  ) {
    const { status, retryAfterMs } = options;
    super(message, options);
    this.code = code;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * The badge of an agent, returned by `registry.badge`: its image URL, and the HTML and Markdown to embed it. Unknown
 * members are kept. `P` is the protocol name in the member `<protocol>_version`.
 */
export type BadgeEmbed<P extends string = 'proto' | 'adcp'> = {
  readonly agent_url: string;
  /** The role of the badge. The registry defines the values. */
  readonly role: string;
  readonly verified: boolean;
  /** The URL of the badge as SVG, always https. */
  readonly badge_svg_url: string;
  readonly registry_url: string;
  /** Markup made by the registry. Check it before you insert it into a page. */
  readonly html: string;
  readonly markdown: string;
  readonly [member: string]: unknown;
} & {
  /** The protocol release of the badge, MAJOR.MINOR. */
  readonly [K in `${P}_version`]?: string | null | undefined;
};

/**
 * One step of a compliance run of an agent, with its request and response as the registry captured them.
 * `registry.diagnostics` returns the failing steps. Any member may be absent. `P` is the protocol name in member
 * names.
 */
export type DiagnosticRow<P extends string = 'proto' | 'adcp'> = {
  readonly id?: number | null | undefined;
  readonly run_id?: string | null | undefined;
  readonly agent_url?: string | null | undefined;
  readonly storyboard_id?: string | null | undefined;
  readonly phase_id?: string | null | undefined;
  readonly step_id?: string | null | undefined;
  readonly task?: string | null | undefined;
  readonly step_passed?: boolean | null | undefined;
  /** The time at which the registry captured the step. */
  readonly captured_at?: string | null | undefined;
  /** The duration of the step, ms. */
  readonly duration_ms?: number | null | undefined;
  readonly request_url?: string | null | undefined;
  /** The request exactly as the runner sent it. It may contain account and brand identifiers. */
  readonly request_jsonb?: unknown;
  readonly response_status?: number | null | undefined;
  readonly response_headers_jsonb?: Readonly<Record<string, unknown>> | null | undefined;
  /** The response exactly as captured. */
  readonly response_jsonb?: unknown;
  readonly extraction_path?: string | null | undefined;
  readonly extraction_note?: string | null | undefined;
  readonly error_text?: string | null | undefined;
  readonly failed_validations_jsonb?: unknown;
  readonly served_by_agent_url?: string | null | undefined;
  readonly [member: string]: unknown;
} & { readonly [K in `${P}_error_jsonb`]?: unknown };

/**
 * The failing steps of one compliance run of an agent, returned by `registry.diagnostics`. `P` is the protocol name
 * in member names such as `adcp_error_jsonb`.
 */
export interface Diagnostics<P extends string = 'proto' | 'adcp'> {
  readonly agent_url: string;
  readonly run_id: string;
  /** The number of rows in `diagnostics`. */
  readonly count: number;
  readonly diagnostics: readonly DiagnosticRow<P>[];
  readonly [member: string]: unknown;
}

/** Options that every method of the registry client takes: a signal that aborts the call. */
export interface CallOptions {
  /** Aborts the call, including waits between attempts. */
  readonly signal?: AbortSignal | undefined;
}

/** Selects the failing steps that `registry.diagnostics` fetches: the compliance run, and the number of steps. */
export interface DiagnosticsQuery extends CallOptions {
  /** The UUID of a compliance run. Default: the latest run. */
  readonly runId?: string | undefined;
  /** The largest number of rows, 1 to 1000. Default: 500. */
  readonly maxRows?: number | undefined;
}

/** The HTTP methods that `registry.request` accepts. */
export type RegistryMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Options of `registry.request`: the query parameters, the body, and a schema that validates the answer. */
export interface RequestOptions<Out = unknown> extends CallOptions {
  /** Query parameters. Undefined values are left out, and an array becomes one parameter for each value. */
  readonly query?: Readonly<Record<string, QueryValue | readonly QueryValue[] | undefined>> | undefined;
  /** The body, sent as JSON. It is not allowed with GET. */
  readonly body?: unknown;
  /** Validates the answer; any Standard Schema v1. */
  readonly schema?: StandardSchema<Out> | undefined;
}

type QueryValue = string | number | boolean;

/**
 * A function that returns your bearer token for a call of the registry: the option `token` of `createRegistry`.
 * `rejected` is the token that was just answered with 401; if you return another one, it is tried once.
 */
export type TokenSource = (rejected?: string) => string | Promise<string>;

/** Options of `createRegistry`: the URL of the registry, your token, and limits of time and size. */
export interface RegistryOptions<P extends string = 'proto' | 'adcp'> {
  /** The base URL of the registry, e.g. `https://registry.example`. */
  readonly baseUrl: string;
  /**
   * An organization API key (`sk_…`), or a function that returns a user's JWT. It is sent to the origin of
   * `baseUrl` only.
   */
  readonly token?: string | TokenSource | undefined;
  /** The protocol name of members such as `proto_version`. Default: both known names, `proto` and `adcp`, are read. */
  readonly protocol?: P | undefined;
  /** The name of the query parameter that limits the rows. Default: `limit`. */
  readonly rowCapParameter?: string | undefined;
  /**
   * The time limit of one attempt, ms: from the first byte sent to the last byte received. It also limits the token
   * function. Default: 30 000.
   */
  readonly deadlineMs?: number | undefined;
  /** The largest answer, bytes. Default: 16 777 216. */
  readonly maxAnswerBytes?: number | undefined;
  /** The largest number of times that a GET is sent if the answer is 429 or 503. Default: 3. */
  readonly attempts?: number | undefined;
  /**
   * The longest `Retry-After` that the client waits for, ms, at most a day. A longer one is only reported in the error.
   * Default: 30 000.
   */
  readonly maxWaitMs?: number | undefined;
  /**
   * If true, allows http and private addresses, for development. Over http a token is sent to loopback only.
   * Default: false.
   */
  readonly allowLoopback?: boolean | undefined;
  /** Replaces the package's own connections, for tests, proxies and other runtimes. */
  readonly fetch?: AnyFetch | undefined;
  /** Returns the current time, Unix ms, for tests. */
  readonly now?: (() => number) | undefined;
  /** Returns a random number in [0, 1), by which waits of different processes are spread, for tests. */
  readonly random?: (() => number) | undefined;
  /** Waits `ms` and rejects when `signal` aborts, for tests. */
  readonly sleep?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

/**
 * A client for the REST API of the protocol's agent registry, made by `createRegistry`. Every method rejects with a
 * `RegistryError`.
 */
export interface Registry<P extends string = 'proto' | 'adcp'> {
  /**
   * Fetches the embed snippets of an agent's badge. No token is sent.
   * @param version the protocol release, MAJOR.MINOR. Default: the legacy endpoint without a version.
   */
  badge(agentUrl: string, role: string, version?: string, options?: CallOptions): Promise<BadgeEmbed<P>>;
  /** Fetches the requests and responses that the runner captured for the failing steps of one run. It needs a token. */
  diagnostics(agentUrl: string, query?: DiagnosticsQuery): Promise<Diagnostics<P>>;
  /**
   * Registers an agent: `POST /api/me/agents`. The registry defines the shapes of body and answer. It needs a
   * token.
   */
  registerAgent(body: object, options?: CallOptions): Promise<unknown>;
  /** Creates an organization: `POST /api/organizations`. It needs a token. */
  createOrganization(body: object, options?: CallOptions): Promise<unknown>;
  /** Fetches the metadata of the registry's OAuth authorization server (RFC 8414), unchanged. No token is sent. */
  authorizationServer(options?: CallOptions): Promise<Readonly<Record<string, unknown>>>;
  /** Fetches the metadata of the registry's OAuth protected resource (RFC 9728), unchanged. No token is sent. */
  protectedResource(options?: CallOptions): Promise<Readonly<Record<string, unknown>>>;
  /**
   * Calls any other endpoint. The token is sent if there is one.
   * @param path the path after `baseUrl`, beginning with `/`. You percent-encode its variable parts.
   * @returns the parsed answer unchanged, or the output of `schema`; undefined if the answer has no body.
   */
  request<Out = unknown>(method: RegistryMethod, path: string, options?: RequestOptions<Out>): Promise<Out>;
}
