import { isJsonObject } from '../codec/members.ts';
import { agentSegment, optionsOf, runQuery, segment, send, versionPath } from './send.ts';
import {
  badArgument,
  type CallOptions,
  type DiagnosticsQuery,
  type Registry,
  RegistryError,
  type RegistryMethod,
  type RegistryOptions,
  type RequestOptions,
} from './types.ts';
import { type Settings, settingsOf } from './options.ts';
import { badgeSchema, diagnosticsSchema, fitting, objectSchema, parsedBy, requireSchema } from './schemas.ts';

export { RegistryError, type RegistryErrorCode } from './types.ts';
export type * from './types.ts';
export type {
  AnyTransport as RegistryTransport,
  AnyTransportInit as RegistryRequestInit,
} from '../keys/contract.ts';

const CALL: Readonly<Record<keyof CallOptions, true>> = { signal: true };
const DIAGNOSTICS: Readonly<Record<keyof DiagnosticsQuery, true>> = { ...CALL, runId: true, maxRows: true };
const REQUEST: Readonly<Record<keyof RequestOptions, true>> = {
  ...CALL,
  query: true,
  body: true,
  schema: true,
};

/**
 * A client of the registry's REST API (contract.md §2). Nothing is sent before the first call.
 * @throws ConfigError where an option is missing or wrong; the message says what to change.
 */
export function createRegistry<const P extends string = 'proto'>(options: RegistryOptions<P>): Registry<P> {
  const settings = settingsOf(options);
  const badgeAnswer = badgeSchema<P>(settings.protocol.versionMember);
  const metadata = async (path: string, given: CallOptions | undefined) => {
    const { signal } = optionsOf('options', given, CALL);
    return fitting(objectSchema, await send(settings, 'GET', path, { signal, anonymous: true }));
  };
  const post = async (path: string, body: object, given: CallOptions | undefined) => {
    const { signal } = optionsOf('options', given, CALL);
    if (!isJsonObject(body)) throw badArgument('body: is not an object');
    requireToken(settings);
    return (await send(settings, 'POST', path, { body, signal })).value;
  };
  return {
    async badge(agentUrl, role, version, given) {
      const { signal } = optionsOf('badge', given, CALL);
      const path = `/api/registry/agents/${agentSegment(agentUrl)}/badge/${segment('role', role)}/${versionPath(version)}embed`;
      return fitting(badgeAnswer, await send(settings, 'GET', path, { signal, anonymous: true }));
    },
    async diagnostics(agentUrl, given) {
      const options = optionsOf<DiagnosticsQuery>('diagnostics', given, DIAGNOSTICS);
      const path = `/api/registry/agents/${agentSegment(agentUrl)}/compliance/diagnostics`;
      requireToken(settings);
      const query = runQuery(options, settings.rowCapParameter);
      return fitting(diagnosticsSchema, await send(settings, 'GET', path, { query, signal: options.signal }));
    },
    registerAgent: async (body, given) => await post('/api/me/agents', body, given),
    createOrganization: async (body, given) => await post('/api/organizations', body, given),
    authorizationServer: async (given) => await metadata('/.well-known/oauth-authorization-server', given),
    protectedResource: async (given) => await metadata('/.well-known/oauth-protected-resource/api', given),
    async request<Out>(method: RegistryMethod, path: string, given?: RequestOptions<Out>) {
      const { schema, ...sent } = optionsOf<RequestOptions<Out>>('request', given, REQUEST);
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
