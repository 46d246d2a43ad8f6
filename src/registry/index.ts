// The client for the REST API of the agent registry: the entry `proto-webhooks/registry` (contract.md §2,
// docs/registry.md).
// Used by users of the package and by the command `proto-webhooks registry`.

import * as z from 'zod/mini';
import { isJsonObject } from '../codec/members.ts';
import { printableName } from '../codec/printable.ts';
import type { StandardSchema } from '../events/event.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { Answered } from './exchange.ts';
import {
  type Settings,
  settingsOf,
  agentSegment,
  optionsOf,
  runQuery,
  segment,
  send,
  versionPath,
} from './send-request.ts';
import { badArgument } from './registry-errors.ts';
import {
  type CallOptions,
  type DiagnosticsQuery,
  type Registry,
  RegistryError,
  type RegistryMethod,
  type RegistryOptions,
  type RequestOptions,
  type BadgeEmbed,
  type DiagnosticRow,
  type Diagnostics,
} from './types.ts';

const text = z.nullish(z.string());
const integer = z.nullish(z.int());

/** Matches characters that no URL contains (RFC 3986 §2), or that would end an HTML attribute. */
const NOT_IN_URL = /[\s\p{Cc}"<>\\^`{|}]/u;

/** Accepts an https URL that may stand in the HTML of a page, e.g. as the address of a badge's image. */
const httpsUrl = z
  .string()
  .check(z.refine((url) => /^https:/i.test(url) && URL.canParse(url) && !NOT_IN_URL.test(url)));

/**
 * Returns the schema for a 200 answer of the badge embed endpoint (contract.md §2.2). It has the member
 * `<name>_version` for each accepted protocol name.
 */
function badgeSchema<P extends string>(protocols: Protocols): z.ZodMiniType<BadgeEmbed<P>> {
  const schema = z.looseObject({
    agent_url: z.string(),
    role: z.string(),
    verified: z.boolean(),
    ...Object.fromEntries(protocols.map(({ versionMember }) => [versionMember, text])),
    badge_svg_url: httpsUrl,
    registry_url: z.string(),
    html: z.string(),
    markdown: z.string(),
  });
  // The names of the version members are known at run time only, so TypeScript cannot infer the members of the schema.
  return schema as unknown as z.ZodMiniType<BadgeEmbed<P>>;
}

/** The schema for one row of diagnostics. Members that may have any JSON value are not checked. */
const row: z.ZodMiniType<DiagnosticRow<string>> = z.looseObject({
  id: integer,
  run_id: text,
  agent_url: text,
  storyboard_id: text,
  phase_id: text,
  step_id: text,
  task: text,
  step_passed: z.nullish(z.boolean()),
  captured_at: text,
  duration_ms: integer,
  request_url: text,
  response_status: integer,
  response_headers_jsonb: z.nullish(z.record(z.string(), z.unknown())),
  extraction_path: text,
  extraction_note: text,
  error_text: text,
  served_by_agent_url: text,
});

/** The schema for a 200 answer of the compliance diagnostics endpoint. */
const diagnosticsSchema: z.ZodMiniType<Diagnostics<string>> = z.looseObject({
  agent_url: z.string(),
  run_id: z.string(),
  count: z.int(),
  diagnostics: z.array(row),
});

/** Accepts any object. */
const objectSchema: z.ZodMiniType<Readonly<Record<string, unknown>>> = z.looseObject({});

/**
 * Returns the registry's own value if it fits the schema. The schema's copy of the value is not used, because it may
 * differ.
 * @throws RegistryError that names the member which does not fit.
 */
function fitting<T>(schema: z.ZodMiniType<T>, { status, value }: Answered): T {
  const { success, error } = schema.safeParse(value);
  if (!success) throw misfit(status, error.issues[0]?.path);
  return value as T;
}

/**
 * Checks the option `schema` before anything is sent.
 * @throws RegistryError unless it is absent or a Standard Schema v1.
 */
function requireSchema(schema: StandardSchema | undefined): void {
  // JavaScript callers may pass any value, so the type is not trusted here.
  const candidate = schema as { readonly '~standard'?: { readonly validate?: unknown } } | undefined | null;
  if (candidate !== undefined && typeof candidate?.['~standard']?.validate !== 'function') {
    throw badArgument('schema: is not a Standard Schema (zod, valibot, …)');
  }
}

/**
 * Validates an answer with the caller's schema, and returns the schema's output.
 * @throws RegistryError that names the member which does not fit.
 */
async function parsedBy<Out>(schema: StandardSchema<Out>, answer: Answered): Promise<Out> {
  const result = await validated(schema, answer);
  if (!result.issues) return result.value;
  throw misfit(
    answer.status,
    result.issues[0]?.path?.map((step) => (typeof step === 'object' ? step.key : step)),
  );
}

async function validated<Out>(schema: StandardSchema<Out>, { status, value }: Answered) {
  try {
    return await schema['~standard'].validate(value);
  } catch (error) {
    throw new RegistryError('invalid_answer', 'the schema threw', { status, cause: error });
  }
}

/**
 * Makes the error for an answer that does not fit a schema. It names the member and not the reason, because a schema's
 * message may quote the value.
 */
function misfit(status: number, path: readonly PropertyKey[] = []): RegistryError {
  const member = path.map((step) => printableName(String(step))).join('.');
  const message =
    member === ''
      ? 'the answer breaks the contract'
      : `the answer's ${member} is missing or of the wrong type`;
  return new RegistryError('invalid_answer', message, { status });
}

export type { RegistryErrorCode } from '../shared/codes.ts';
export { RegistryError } from './types.ts';
export type * from './types.ts';
export type { AnyFetch as RegistryFetch, AnyFetchInit as RegistryRequestInit } from '../keys/key-resolver.ts';

const CALL: Readonly<Record<keyof CallOptions, true>> = { signal: true };
const DIAGNOSTICS: Readonly<Record<keyof DiagnosticsQuery, true>> = { ...CALL, runId: true, maxRows: true };
const REQUEST: Readonly<Record<keyof RequestOptions, true>> = {
  ...CALL,
  query: true,
  body: true,
  schema: true,
};

/**
 * Creates a client for the REST API of the protocol's agent registry. It sends nothing before the first call, and keeps
 * nothing open after a call, so it has no `close`. It throws its errors, logs nothing and raises no alarm.
 * @throws ConfigError if an option is missing or wrong; the message says what to change.
 * @example
 * ```ts
 * import { createRegistry } from 'proto-webhooks/registry';
 *
 * const registry = createRegistry({ baseUrl: 'https://registry.example' });
 * const { badge_svg_url } = await registry.badge('https://seller.example/mcp', 'sales');
 * console.log(badge_svg_url);
 * ```
 */
export function createRegistry<const P extends string = 'proto' | 'adcp'>(
  options: RegistryOptions<P>,
): Registry<P> {
  const settings = settingsOf(options);
  const badgeAnswer = badgeSchema<P>(settings.protocols);
  const metadata = async (path: string, callOptions: CallOptions | undefined) => {
    const { signal } = optionsOf('options', callOptions, CALL);
    return fitting(objectSchema, await send(settings, 'GET', path, { signal, anonymous: true }));
  };
  const post = async (path: string, body: object, callOptions: CallOptions | undefined) => {
    const { signal } = optionsOf('options', callOptions, CALL);
    if (!isJsonObject(body)) throw badArgument('body: is not an object');
    requireToken(settings);
    return (await send(settings, 'POST', path, { body, signal })).value;
  };
  return {
    async badge(agentUrl, role, version, callOptions) {
      const { signal } = optionsOf('badge', callOptions, CALL);
      const path = `/api/registry/agents/${agentSegment(agentUrl)}/badge/${segment('role', role)}/${versionPath(version)}embed`;
      return fitting(badgeAnswer, await send(settings, 'GET', path, { signal, anonymous: true }));
    },
    async diagnostics(agentUrl, callOptions) {
      const options = optionsOf<DiagnosticsQuery>('diagnostics', callOptions, DIAGNOSTICS);
      const path = `/api/registry/agents/${agentSegment(agentUrl)}/compliance/diagnostics`;
      requireToken(settings);
      const query = runQuery(options, settings.rowCapParameter);
      return fitting(diagnosticsSchema, await send(settings, 'GET', path, { query, signal: options.signal }));
    },
    registerAgent: async (body, callOptions) => await post('/api/me/agents', body, callOptions),
    createOrganization: async (body, callOptions) => await post('/api/organizations', body, callOptions),
    authorizationServer: async (callOptions) =>
      await metadata('/.well-known/oauth-authorization-server', callOptions),
    protectedResource: async (callOptions) =>
      await metadata('/.well-known/oauth-protected-resource/api', callOptions),
    async request<Out>(method: RegistryMethod, path: string, callOptions?: RequestOptions<Out>) {
      const { schema, ...sent } = optionsOf<RequestOptions<Out>>('request', callOptions, REQUEST);
      requireSchema(schema);
      const answer = await send(settings, method, path, sent);
      return schema === undefined ? (answer.value as Out) : await parsedBy(schema, answer);
    },
  };
}

function requireToken({ token }: Settings): void {
  if (token !== undefined) return;
  throw new RegistryError('unauthorized', 'this call needs a token: createRegistry({ baseUrl, token })');
}
