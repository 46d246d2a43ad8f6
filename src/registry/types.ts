import type { RegistryErrorCode } from '../shared/codes.ts';
import type { StandardSchema } from '../events/event.ts';
import type { AnyFetch } from '../keys/key-resolver.ts';
import { PrintableError } from '../codec/printable-value.ts';

/** What a call of the registry failed with. `message` has no token in it. */
export class RegistryError extends PrintableError {
  override readonly name = 'RegistryError';
  readonly code: RegistryErrorCode;
  /** HTTP status; undefined where there was no answer. */
  readonly status: number | undefined;
  /** Ms that the registry asked to wait, where it did. */
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

/** 200 of the badge embed endpoint (contract.md §2.3). Unknown members survive. */
export type BadgeEmbed<P extends string = 'proto' | 'adcp'> = {
  readonly agent_url: string;
  /** Badge role; its values are left open by the contract. */
  readonly role: string;
  readonly verified: boolean;
  /** An https URL. */
  readonly badge_svg_url: string;
  readonly registry_url: string;
  /** Markup of the registry's: data, not to be inserted into a page unread. */
  readonly html: string;
  readonly markdown: string;
  readonly [member: string]: unknown;
} & {
  /** Protocol release, MAJOR.MINOR. */
  readonly [K in `${P}_version`]?: string | null | undefined;
};

/** One captured storyboard step (contract.md §2.6). Which members are always there is left open by the contract: none is relied on. */
export type DiagnosticRow<P extends string = 'proto' | 'adcp'> = {
  readonly id?: number | null | undefined;
  readonly run_id?: string | null | undefined;
  readonly agent_url?: string | null | undefined;
  readonly storyboard_id?: string | null | undefined;
  readonly phase_id?: string | null | undefined;
  readonly step_id?: string | null | undefined;
  readonly task?: string | null | undefined;
  readonly step_passed?: boolean | null | undefined;
  /** Timestamp. */
  readonly captured_at?: string | null | undefined;
  /** Milliseconds. */
  readonly duration_ms?: number | null | undefined;
  readonly request_url?: string | null | undefined;
  /** The request exactly as the runner sent it. May hold account and brand identifiers. */
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

/** 200 of the compliance diagnostics endpoint (contract.md §2.5): the failing steps of one run. */
export interface Diagnostics<P extends string = 'proto' | 'adcp'> {
  readonly agent_url: string;
  readonly run_id: string;
  /** Rows in `diagnostics`. */
  readonly count: number;
  readonly diagnostics: readonly DiagnosticRow<P>[];
  readonly [member: string]: unknown;
}

/** For every call. */
export interface CallOptions {
  /** Ends the call, waits between attempts included. */
  readonly signal?: AbortSignal | undefined;
}

/** Which diagnostics. */
export interface DiagnosticsQuery extends CallOptions {
  /** A compliance run's UUID; the latest run without it. */
  readonly runId?: string | undefined;
  /** 1 to 1000. Default 500. */
  readonly maxRows?: number | undefined;
}

/** Methods that `request` takes. */
export type RegistryMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What a call of any endpoint brings. */
export interface RequestOptions<Out = unknown> extends CallOptions {
  /** Undefined values are left out; of an array each value is a parameter of its own. */
  readonly query?: Readonly<Record<string, QueryValue | readonly QueryValue[] | undefined>> | undefined;
  /** Sent as JSON. Not with GET. */
  readonly body?: unknown;
  /** What the answer has to fit; any library of Standard Schema v1. */
  readonly schema?: StandardSchema<Out> | undefined;
}

type QueryValue = string | number | boolean;

/** Gives the bearer token for a call. `rejected`: the token that was just answered 401; another one is tried once. */
export type TokenSource = (rejected?: string) => string | Promise<string>;

/** Options of `createRegistry`. */
export interface RegistryOptions<P extends string = 'proto' | 'adcp'> {
  /** `{base_url}` of the registry, e.g. `https://registry.example`. */
  readonly baseUrl: string;
  /** An organization API key (`sk_…`), or a function that gives a user's JWT (contract.md §2.9). Sent to `baseUrl`'s origin alone. */
  readonly token?: string | TokenSource | undefined;
  /** The one name that members such as `proto_version` are read by. Default: `proto` and `adcp`. */
  readonly protocol?: P | undefined;
  /** Name of the query parameter with the cap of rows, which the contract leaves open. Default `limit`. */
  readonly rowCapParameter?: string | undefined;
  /** Ms for one attempt, from the first byte sent to the last received, and for the token function. Default 30 000. */
  readonly deadlineMs?: number | undefined;
  /** Largest answer. Default 16 777 216. */
  readonly maxAnswerBytes?: number | undefined;
  /** How often a GET that was answered 429 or 503 is sent in all. Default 3. */
  readonly attempts?: number | undefined;
  /** Ms: a longer `Retry-After` is not waited for, the error tells it. At most a day. Default 30 000. */
  readonly maxWaitMs?: number | undefined;
  /** Development: http and private addresses; a token is then sent over http to loopback alone. Default false. */
  readonly allowLoopback?: boolean | undefined;
  /** For tests, proxies and other runtimes. */
  readonly fetch?: AnyFetch | undefined;
  /** Unix ms. For tests. */
  readonly now?: (() => number) | undefined;
  /** In [0, 1): spreads the attempts of many processes. For tests. */
  readonly random?: (() => number) | undefined;
  /** Waits `ms`; rejects when `signal` aborts. For tests. */
  readonly sleep?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

/** A client of the registry's REST API. Every method rejects with `RegistryError`. */
export interface Registry<P extends string = 'proto' | 'adcp'> {
  /**
   * Embed snippets of an agent's badge. Public: no token is sent.
   * @param version protocol release MAJOR.MINOR; without it the legacy unpinned endpoint is asked (contract.md §2.8).
   */
  badge(agentUrl: string, role: string, version?: string, options?: CallOptions): Promise<BadgeEmbed<P>>;
  /** Requests and responses that the runner captured for the failing steps of one run. Needs a token. */
  diagnostics(agentUrl: string, query?: DiagnosticsQuery): Promise<Diagnostics<P>>;
  /** `POST /api/me/agents` (contract.md §2.7). Shapes of body and answer are left open by the contract. Needs a token. */
  registerAgent(body: object, options?: CallOptions): Promise<unknown>;
  /** `POST /api/organizations`. Needs a token. */
  createOrganization(body: object, options?: CallOptions): Promise<unknown>;
  /** The OAuth authorization server's metadata (RFC 8414), as sent. Public. */
  authorizationServer(options?: CallOptions): Promise<Readonly<Record<string, unknown>>>;
  /** The protected resource's metadata (RFC 9728), as sent. Public. */
  protectedResource(options?: CallOptions): Promise<Readonly<Record<string, unknown>>>;
  /**
   * Any other endpoint. The token is sent where there is one.
   * @param path from `baseUrl` on, beginning with `/`; what is variable in it is encoded by the caller.
   * @returns the answer as sent, or what `schema` makes of it; undefined where the answer has no body.
   */
  request<Out = unknown>(method: RegistryMethod, path: string, options?: RequestOptions<Out>): Promise<Out>;
}
