import { RegistryError } from './errors.ts';
import { type Settings, settingsOf } from './options.ts';
import { badgeSchema, diagnosticsSchema, fitting, objectSchema, parsedBy } from './schemas.ts';
import { badArgument, send, type Sent } from './send.ts';
import type {
  CallOptions,
  DiagnosticsQuery,
  Registry,
  RegistryMethod,
  RegistryOptions,
  RequestOptions,
} from './types.ts';

export { RegistryError, type RegistryErrorCode } from './errors.ts';
export type * from './types.ts';
export type {
  AnyTransport as RegistryTransport,
  AnyTransportInit as RegistryRequestInit,
} from '../keys/contract.ts';

/** contract.md §2.4. */
const DEFAULT_ROWS = 500;
const MAX_ROWS = 1000;

/**
 * A client of the registry's REST API (contract.md §2). Nothing is sent before the first call.
 * @throws ConfigError where an option is missing or wrong; the message says what to change.
 */
export function createRegistry<const P extends string = 'proto'>(options: RegistryOptions<P>): Registry<P> {
  const settings = settingsOf(options);
  const badgeAnswer = badgeSchema<P>(settings.protocol.versionMember);
  const call = async (method: RegistryMethod, path: string, sent: Sent): Promise<unknown> =>
    await send(settings, method, path, sent);
  const metadata = async (path: string, { signal }: CallOptions = {}) =>
    fitting(objectSchema, await call('GET', path, { signal, anonymous: true }));
  return {
    async badge(agentUrl, role, version, { signal } = {}) {
      const path = `/api/registry/agents/${agentSegment(agentUrl)}/badge/${segment('role', role)}/${versionPath(version)}embed`;
      return fitting(badgeAnswer, await call('GET', path, { signal, anonymous: true }));
    },
    async diagnostics(agentUrl, query: DiagnosticsQuery = {}) {
      onlyMembers('diagnostics', query, { runId: true, maxRows: true, signal: true });
      const { runId, maxRows = DEFAULT_ROWS, signal } = query;
      if (!Number.isInteger(maxRows) || maxRows < 1 || maxRows > MAX_ROWS) {
        throw badArgument(`maxRows: is not a whole number from 1 to ${MAX_ROWS}`);
      }
      const path = `/api/registry/agents/${agentSegment(agentUrl)}/compliance/diagnostics`;
      requireToken(settings);
      const parameters = { run_id: runId, [settings.rowCapParameter]: maxRows };
      return fitting(diagnosticsSchema, await call('GET', path, { query: parameters, signal }));
    },
    async registerAgent(body, { signal } = {}) {
      requireToken(settings);
      return await call('POST', '/api/me/agents', { body, signal });
    },
    async createOrganization(body, { signal } = {}) {
      requireToken(settings);
      return await call('POST', '/api/organizations', { body, signal });
    },
    authorizationServer: async (given) => await metadata('/.well-known/oauth-authorization-server', given),
    protectedResource: async (given) => await metadata('/.well-known/oauth-protected-resource/api', given),
    async request<Out>(method: RegistryMethod, path: string, given: RequestOptions<Out> = {}) {
      onlyMembers('request', given, { query: true, body: true, schema: true, signal: true });
      const answer = await call(method, path, given);
      return given.schema === undefined ? (answer as Out) : await parsedBy(given.schema, answer);
    },
  };
}

/** A misspelt name would be passed over without a word. */
function onlyMembers(where: string, given: object, known: Readonly<Record<string, true>>): void {
  const other = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (other !== undefined)
    throw badArgument(`${where}: ${other} is not known; known: ${Object.keys(known).join(', ')}`);
}

function requireToken({ token }: Settings): void {
  if (token !== undefined) return;
  throw new RegistryError('unauthorized', 'this call needs a token: createRegistry({ baseUrl, token })');
}

/** One path segment, encoded once. */
function segment(name: string, value: unknown): string {
  if (typeof value !== 'string' || value === '' || value === '.' || value === '..' || !value.isWellFormed()) {
    throw badArgument(`${name}: is not a string that a path segment can hold`);
  }
  return encodeURIComponent(value);
}

/** As it is registered: nothing about it is made canonical. One that is encoded already is no absolute URL. */
function agentSegment(agentUrl: unknown): string {
  if (typeof agentUrl === 'string' && URL.canParse(agentUrl) && /^https?:\/\//i.test(agentUrl)) {
    return segment('agentUrl', agentUrl);
  }
  throw badArgument("agentUrl: is not an absolute URL, e.g. 'https://seller.example/mcp'");
}

/** A protocol release. The legacy endpoint has none in its path. */
function versionPath(version: unknown): string {
  if (version === undefined) return '';
  if (typeof version === 'string' && /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)$/.test(version)) return `${version}/`;
  throw badArgument("version: is not MAJOR.MINOR, e.g. '3.0'");
}
