import { RegistrationError } from './errors.ts';
import type { JsonObject } from './json.ts';

/** How a seller is asked to authenticate its webhooks, where it cannot sign them: legacy, removed in version 4.0. */
export interface LegacyAuthentication {
  readonly scheme: 'HMAC-SHA256' | 'Bearer';
  /** At least 32 characters. */
  readonly credentials: string;
}

/** Where a seller is to send to. */
export interface Destination {
  readonly url: string;
  readonly authentication?: LegacyAuthentication;
  /** Repeated by the seller on its webhooks: 16 to 4096 characters. */
  readonly token?: string;
}

/** Where a task's webhooks go, and what they are known by. */
export interface TaskDestination extends Destination {
  readonly operationId: string;
}

/** A call as it is made, and made again, byte for byte. */
export interface RegisteredCall {
  readonly taskType: string;
  /** Without what the library adds. */
  readonly arguments: JsonObject;
  readonly context?: JsonObject;
  /** `idempotency_key` of the request. */
  readonly requestKey: string;
  /** Absent: called without it, and known by polling alone. */
  readonly destination?: TaskDestination;
}

/** Versions of the agent transport that name things in their own way. */
export type AgentVersion = '0.3' | '1.0';

/** What differs between them. */
interface AgentForm {
  /** Member of `configuration`. */
  readonly configMember: 'pushNotificationConfig' | 'taskPushNotificationConfig';
  readonly config: (destination: TaskDestination) => JsonObject;
  readonly role: 'user' | 'ROLE_USER';
  readonly part: (data: JsonObject) => JsonObject;
}

const AGENT_FORMS: Record<AgentVersion, AgentForm> = {
  '0.3': {
    configMember: 'pushNotificationConfig',
    // The same object as in the tool transport, and the transport's own name for its id.
    config: (destination) => ({ id: destination.operationId, ...taskConfig(destination) }),
    role: 'user',
    part: (data) => ({ kind: 'data', data }),
  },
  '1.0': {
    configMember: 'taskPushNotificationConfig',
    // One scheme, and no member that the transport does not know: it reads its messages strictly.
    config: ({ operationId, url, token, authentication }) => ({
      id: operationId,
      url,
      ...(token !== undefined && { token }),
      ...(authentication && {
        authentication: { scheme: authentication.scheme, credentials: authentication.credentials },
      }),
    }),
    role: 'ROLE_USER',
    part: (data) => ({ data }),
  },
};

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

/** What both transports send as the task's parameters. */
function parameters({ arguments: given, context, requestKey }: RegisteredCall): JsonObject {
  return { ...given, ...(context && { context }), idempotency_key: requestKey };
}

/** Members of a request that the library fills in: two writers of one would leave open which URL is told. */
const OWN_MEMBERS: readonly string[] = ['push_notification_config', 'idempotency_key'];

/** @throws RegistrationError where the caller's arguments have a member that is the library's. */
export function requireRoom(given: JsonObject, context: JsonObject | undefined): void {
  const taken = [...OWN_MEMBERS, ...(context ? ['context'] : [])].find((name) => Object.hasOwn(given, name));
  if (taken === undefined) return;
  throw new RegistrationError(
    'request_invalid',
    `arguments.${taken}: is filled in by the library. Leave it out; the context of a call is given as context.`,
  );
}

/** The arguments of a call over the tool transport. */
export function toolArguments(call: RegisteredCall): JsonObject {
  const { destination } = call;
  return {
    ...parameters(call),
    ...(destination && { push_notification_config: taskConfig(destination) }),
  };
}

/** `configuration` of a request over the agent transport. */
export function agentConfiguration(call: RegisteredCall, version: AgentVersion): JsonObject {
  const { configMember, config } = AGENT_FORMS[version];
  return call.destination ? { [configMember]: config(call.destination) } : {};
}

/** The whole of a request over the agent transport: `message` and `configuration`. */
export function agentRequest(call: RegisteredCall, version: AgentVersion): JsonObject {
  const { role, part } = AGENT_FORMS[version];
  return {
    message: {
      messageId: call.requestKey,
      role,
      parts: [part({ skill: call.taskType, parameters: parameters(call) })],
    },
    configuration: agentConfiguration(call, version),
  };
}

/** How often delivery reports are sent. */
export type ReportingFrequency = 'hourly' | 'daily' | 'monthly';

const FREQUENCIES: readonly ReportingFrequency[] = ['hourly', 'daily', 'monthly'];

/** What a seller is to report. */
export interface Reporting {
  readonly frequency: ReportingFrequency;
  /** Absent: the seller's own choice. */
  readonly requestedMetrics?: readonly string[];
}

/** @throws RegistrationError */
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
      'requestedMetrics: not a list of names. Give strings, or leave it out.',
    );
  }
}

/** `reporting_webhook` of `create_media_buy`. */
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
