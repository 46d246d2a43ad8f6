// Builds the arguments of a call for both transports: the URL for webhooks, the token, the `context`, the
// `idempotency_key` (contract.md §4). Registrations use it for each call; `a2aCaller` for its messages.
import { RegistrationError } from './registrations-errors.ts';
import { FREQUENCIES } from '../windows/calendar.ts';
import type { Json, JsonObject } from './answer-json.ts';

/**
 * The HMAC secret or bearer token that a seller is asked to use if it cannot sign its webhooks by RFC 9421.
 * Registrations create the credentials for the scheme that you request, and `registration.toolArguments` contains them.
 * Version 4.0 of the protocol removes this kind of authentication.
 */
export interface LegacyAuthentication {
  readonly scheme: 'HMAC-SHA256' | 'Bearer';
  /** The secret or token, at least 32 characters. */
  readonly credentials: string;
}

/** The destination of webhooks: URL, credentials, token. */
export interface Destination {
  readonly url: string;
  readonly authentication?: LegacyAuthentication;
  /** The token that the seller repeats on its webhooks: 16 to 4096 characters. */
  readonly token?: string;
}

/** The destination of the webhooks of a task, and the operation id that the webhooks repeat. */
export interface TaskDestination extends Destination {
  readonly operationId: string;
}

/** A registered call to a seller. Each repeat of the call sends the same bytes. */
export interface RegisteredCall {
  readonly taskType: string;
  /** The caller's arguments, without the members that the library adds. */
  readonly arguments: JsonObject;
  readonly context?: JsonObject;
  /** The `idempotency_key` of the call, by which the seller recognises a repeat. */
  readonly requestKey: string;
  /**
   * The destination of the call's webhooks. Absent: the call registers no webhooks, so only polling shows how its task
   * ends.
   */
  readonly destination?: TaskDestination;
}

/**
 * The version of A2A in which a seller is called. 1.0 and 0.3 have different names for methods and members.
 * `registration.agentRequest` and `agentConfiguration` take a version, and so does the option `version` of `a2aCaller`.
 */
export type AgentVersion = '1.0' | '0.3';

/** The names and forms that differ between the versions of A2A. */
export interface AgentForm {
  /** The JSON-RPC methods: `send` sends a message, and `getTask` requests the status of a task. */
  readonly send: string;
  readonly getTask: string;
  /** Returns the member of `configuration` that says if the agent answers at once or when the work is done. */
  readonly atOnce: (atOnce: boolean) => JsonObject;
  /**
   * `configMember` is the member of `configuration` that registers webhooks. `config` returns the value of that member,
   * and takes the value that the tool transport sends.
   */
  readonly configMember: 'pushNotificationConfig' | 'taskPushNotificationConfig';
  readonly config: (config: JsonObject) => JsonObject;
  /** Members that each message to an agent has. */
  readonly message: JsonObject;
  readonly part: (data: JsonObject) => JsonObject;
}

export const AGENT_FORMS: Record<AgentVersion, AgentForm> = {
  '1.0': {
    send: 'SendMessage',
    getTask: 'GetTask',
    atOnce: (atOnce) => ({ returnImmediately: atOnce }),
    configMember: 'taskPushNotificationConfig',
    // Agents of version 1.0 read messages strictly: there may be one authentication scheme, and no unknown member.
    config: ({ operation_id: id, url, token, authentication }) => ({
      ...(id !== undefined && { id }),
      ...(url !== undefined && { url }),
      ...(token !== undefined && { token }),
      ...(isObject(authentication) && { authentication: oneScheme(authentication) }),
    }),
    message: { role: 'ROLE_USER' },
    part: (data) => ({ data }),
  },
  '0.3': {
    send: 'message/send',
    getTask: 'tasks/get',
    atOnce: (atOnce) => ({ blocking: !atOnce }),
    configMember: 'pushNotificationConfig',
    // The value is that of the tool transport, and also has `id`, the agent transport's name for the operation id.
    config: (config) => ({
      ...(config['operation_id'] !== undefined && { id: config['operation_id'] }),
      ...config,
    }),
    message: { kind: 'message', role: 'user' },
    part: (data) => ({ kind: 'data', data }),
  },
};

export const AGENT_VERSIONS: readonly AgentVersion[] = Object.keys(AGENT_FORMS) as AgentVersion[];

function oneScheme({ schemes, credentials }: JsonObject): JsonObject {
  const scheme: Json | undefined = Array.isArray(schemes) ? (schemes as readonly Json[])[0] : undefined;
  return { ...(scheme !== undefined && { scheme }), ...(credentials !== undefined && { credentials }) };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sendTo({ url, token, authentication }: Destination): JsonObject {
  return {
    url,
    ...(token !== undefined && { token }),
    ...(authentication && {
      authentication: { schemes: [authentication.scheme], credentials: authentication.credentials },
    }),
  };
}

function taskConfig(destination: TaskDestination): JsonObject {
  return { ...sendTo(destination), operation_id: destination.operationId };
}

/** Returns the arguments that both transports send: all but the registration of webhooks. */
function parameters({ arguments: args, context, requestKey }: RegisteredCall): JsonObject {
  return { ...args, ...(context && { context }), idempotency_key: requestKey };
}

/** Arguments of a call that only the library sets. */
const OWN_MEMBERS: readonly string[] = ['push_notification_config', 'idempotency_key'];

/** Refuses arguments of the caller that contain a member which the library sets itself. @throws RegistrationError */
export function requireRoom(args: JsonObject, context: JsonObject | undefined): void {
  const taken = [...OWN_MEMBERS, ...(context ? ['context'] : [])].find((name) => Object.hasOwn(args, name));
  if (taken === undefined) return;
  throw new RegistrationError(
    'request_invalid',
    `arguments.${taken}: is set by the library. Leave it out; pass the context of a call as context.`,
  );
}

/** Returns the arguments of a call over the tool transport. */
export function toolArguments(call: RegisteredCall): JsonObject {
  const { destination } = call;
  return {
    ...parameters(call),
    ...(destination && { push_notification_config: taskConfig(destination) }),
  };
}

/** Returns the `configuration` of a request over the agent transport, which registers webhooks. */
export function agentConfiguration(call: RegisteredCall, version: AgentVersion): JsonObject {
  return configuration(version, true, toolArguments(call)['push_notification_config']);
}

/** Returns a whole request over the agent transport: `message` and `configuration`. */
export function agentRequest(call: RegisteredCall, version: AgentVersion): JsonObject {
  return agentMessage(call.taskType, toolArguments(call), version, {
    messageId: call.requestKey,
    atOnce: true,
  });
}

/** Returns a whole request over the agent transport, from the arguments of a call over the tool transport. */
export function agentMessage(
  skill: string,
  { push_notification_config: config, ...parameters }: JsonObject,
  version: AgentVersion,
  { messageId, atOnce }: { readonly messageId: string; readonly atOnce: boolean },
): JsonObject {
  const { message, part } = AGENT_FORMS[version];
  return {
    message: { ...message, messageId, parts: [part({ skill, parameters })] },
    configuration: configuration(version, atOnce, config),
  };
}

/** The URI of the profile extension of A2A, which agents of newer protocol versions require (calls.md §4.14). */
export const AGENT_PROFILE = 'https://adcontextprotocol.org/extensions/adcp/v3';

/**
 * Returns the message of a call by the profile extension. `input` has all arguments, including the registration of
 * webhooks. A2A's own registration of webhooks is left out: it would only report on the call, which has ended by then.
 * The request waits for the answer (`atOnce(false)`), because the answer names the seller's task.
 */
export function profileMessage(skill: string, input: JsonObject, messageId: string): JsonObject {
  const { message, part, atOnce } = AGENT_FORMS['1.0'];
  return {
    message: { ...message, messageId, parts: [part({ skill, input })] },
    configuration: atOnce(false),
  };
}

function configuration(version: AgentVersion, atOnce: boolean, config: Json | undefined): JsonObject {
  const form = AGENT_FORMS[version];
  return {
    ...form.atOnce(atOnce),
    ...(isObject(config) && { [form.configMember]: form.config(config) }),
  };
}

/** The interval at which a seller is asked to send delivery reports of a media buy: every hour, day or month. */
export type ReportingFrequency = 'hourly' | 'daily' | 'monthly';

/**
 * The delivery reports that you ask a seller to send to your webhook: their interval, metrics and authentication. The
 * reports contain impressions, clicks and spend of a media buy. Pass this object to `registrations.reportingWebhook`.
 */
export interface Reporting {
  readonly frequency: ReportingFrequency;
  /** The metrics to report. Absent: the seller chooses. */
  readonly requestedMetrics?: readonly string[] | undefined;
  /**
   * The only accepted scheme, as in `create`. Absent: the seller is given HMAC credentials, and signed reports are
   * accepted too. From a seller of edition 3.3 or later only signatures are accepted.
   */
  readonly scheme?: 'signature' | LegacyAuthentication['scheme'] | undefined;
}

/** Checks the frequency and the metrics of the requested reports. @throws RegistrationError */
export function requireReporting(reporting: Reporting): void {
  const { frequency, requestedMetrics } = (reporting as Reporting | undefined) ?? {};
  if (frequency === undefined || !FREQUENCIES.includes(frequency)) {
    throw new RegistrationError(
      'request_invalid',
      `frequency: ${JSON.stringify(frequency)} is not known. Use one of ${FREQUENCIES.join(', ')}.`,
    );
  }
  if (requestedMetrics !== undefined && !isListOfNames(requestedMetrics)) {
    throw new RegistrationError(
      'request_invalid',
      'requestedMetrics: must be a list of names. Give strings, or leave it out.',
    );
  }
}

/** Returns the `reporting_webhook` of `create_media_buy`. */
export function reportingWebhook(destination: Destination, reporting: Reporting): JsonObject {
  const { frequency, requestedMetrics } = reporting;
  return {
    ...sendTo(destination),
    reporting_frequency: frequency,
    ...(requestedMetrics && { requested_metrics: [...requestedMetrics] }),
  };
}

function isListOfNames(value: unknown): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== '');
}
