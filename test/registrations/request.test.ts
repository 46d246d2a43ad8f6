import { describe, expect, it } from 'vitest';
import { RegistrationError, type Reporting } from '../../src/registrations/index.ts';
import {
  agentConfiguration,
  agentRequest,
  reportingWebhook,
  requireReporting,
  requireRoom,
  toolArguments,
} from '../../src/registrations/for-tests.ts';

const destination = {
  url: 'https://buyer.example/webhooks/token',
  operationId: '7b1c0f0e-3c57-4f0e-9a0b-6f8e1f6f2d11',
};
const call = {
  taskType: 'create_media_buy',
  arguments: { buyer_ref: 'spring', packages: [{ budget: 1000 }] },
  requestKey: '0d7b4f0e-3c57-4f0e-9a0b-6f8e1f6f2d11',
  destination,
};
const legacy = { scheme: 'HMAC-SHA256', credentials: 'c'.repeat(43) } as const;
const withAll = {
  ...call,
  context: { trace: 7 },
  destination: { ...destination, token: 't'.repeat(43), authentication: legacy },
};

describe('a call over the tool transport', () => {
  it('has push_notification_config among its arguments', () => {
    expect(toolArguments(call)).toEqual({
      buyer_ref: 'spring',
      packages: [{ budget: 1000 }],
      idempotency_key: call.requestKey,
      push_notification_config: { url: destination.url, operation_id: destination.operationId },
    });
  });

  it('has context, token and legacy authentication where they are asked for', () => {
    expect(toolArguments(withAll)).toMatchObject({
      context: { trace: 7 },
      push_notification_config: {
        url: destination.url,
        operation_id: destination.operationId,
        token: 't'.repeat(43),
        authentication: { schemes: ['HMAC-SHA256'], credentials: 'c'.repeat(43) },
      },
    });
  });

  it('without a destination is the same call without the field', () => {
    const { destination: _, ...without } = call;
    expect(toolArguments(without)).toEqual({ ...call.arguments, idempotency_key: call.requestKey });
    expect(agentConfiguration(without, '0.3')).toEqual({ blocking: false });
  });

  it('is the same byte for byte each time', () => {
    expect(JSON.stringify(toolArguments(withAll))).toBe(
      JSON.stringify(toolArguments(structuredClone(withAll))),
    );
  });

  it.each([
    [{ push_notification_config: {} }, undefined],
    [{ idempotency_key: 'x' }, undefined],
    [{ context: {} }, { trace: 1 }],
  ])('takes no arguments that have what the library fills in: %j', (given, context) => {
    expect(() => requireRoom(given, context)).toThrow(RegistrationError);
    expect(() => requireRoom(given, context)).toThrow(`arguments.${Object.keys(given)[0]}`);
  });

  it('takes a context among the arguments where none is given beside them', () => {
    expect(() => requireRoom({ context: {} }, undefined)).not.toThrow();
  });
});

describe('a call over the agent transport', () => {
  it('has pushNotificationConfig in its configuration and the parameters in a data part', () => {
    expect(agentRequest(withAll, '0.3')).toEqual({
      message: {
        kind: 'message',
        messageId: call.requestKey,
        role: 'user',
        parts: [
          {
            kind: 'data',
            data: {
              skill: 'create_media_buy',
              parameters: { ...call.arguments, context: { trace: 7 }, idempotency_key: call.requestKey },
            },
          },
        ],
      },
      configuration: {
        blocking: false,
        pushNotificationConfig: {
          id: destination.operationId,
          url: destination.url,
          operation_id: destination.operationId,
          token: 't'.repeat(43),
          authentication: { schemes: ['HMAC-SHA256'], credentials: 'c'.repeat(43) },
        },
      },
    });
  });

  it('of version 1.0 has the names of that version, and none that it does not know', () => {
    expect(agentRequest(withAll, '1.0')).toMatchObject({
      message: { role: 'ROLE_USER', parts: [{ data: { skill: 'create_media_buy' } }] },
    });
    expect(agentConfiguration(withAll, '1.0')).toEqual({
      returnImmediately: true,
      taskPushNotificationConfig: {
        id: destination.operationId,
        url: destination.url,
        token: 't'.repeat(43),
        authentication: { scheme: 'HMAC-SHA256', credentials: 'c'.repeat(43) },
      },
    });
    expect(agentConfiguration(call, '1.0')).toEqual({
      returnImmediately: true,
      taskPushNotificationConfig: { id: destination.operationId, url: destination.url },
    });
  });
});

describe('reporting_webhook', () => {
  it('has the URL and the frequency, and the rest where it is asked for', () => {
    expect(reportingWebhook({ url: destination.url }, { frequency: 'daily' })).toEqual({
      url: destination.url,
      reporting_frequency: 'daily',
    });
    const all = reportingWebhook(
      { url: destination.url, authentication: { ...legacy, scheme: 'Bearer' }, token: 't'.repeat(43) },
      { frequency: 'hourly', requestedMetrics: ['impressions', 'spend'] },
    );
    expect(all).toEqual({
      url: destination.url,
      reporting_frequency: 'hourly',
      requested_metrics: ['impressions', 'spend'],
      authentication: { schemes: ['Bearer'], credentials: 'c'.repeat(43) },
      token: 't'.repeat(43),
    });
  });

  it.each([
    { frequency: 'weekly' },
    {},
    { frequency: 'daily', requestedMetrics: 'spend' },
    { frequency: 'daily', requestedMetrics: ['spend', ''] },
    { frequency: 'daily', requestedMetrics: [1] },
  ])('refuses %j', (reporting) => {
    const make = (): void => requireReporting(reporting as Reporting);
    expect(make).toThrow(expect.objectContaining({ code: 'request_invalid' }));
  });
});
