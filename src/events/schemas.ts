// Schemas of envelopes, reports and interim results, and the forms of ids (contract.md §6).
// Called while events are read; public for users of `proto-webhooks/events`.

import * as z from 'zod/mini';
import type { DeliveryReport, InputRequest, WorkingProgress } from './event.ts';
import { isMediaBuyWord } from './status.ts';
import type { AgentTask, AgentTaskStatusUpdate, ToolEnvelope } from './wire.ts';

/** Form of `idempotency_key` (verification.md §7.2). */
export const IDEMPOTENCY_KEY: RegExp = /^[A-Za-z0-9_.:-]{16,255}$/;

/** Form of `subscriber_id` (subscriptions.md §5.1). */
export const SUBSCRIBER_ID: RegExp = /^[A-Za-z0-9_.:-]{1,64}$/;

const id = z.string().check(z.minLength(1));
const text = z.nullish(z.string());
const number = z.nullish(z.number());
const flag = z.nullish(z.boolean());

const totals = z.looseObject({ impressions: number, spend: number, clicks: number });
const mediaBuyDelivery = z.looseObject({
  media_buy_id: z.string(),
  status: text,
  totals: z.nullish(totals),
  by_package: z.nullish(z.array(z.unknown())),
  expected_availability: text,
  is_adjusted: flag,
  is_final: flag,
  finalized_at: text,
});

type ReportType = DeliveryReport['notification_type'];

const TYPES: Record<ReportType, true> = {
  scheduled: true,
  final: true,
  delayed: true,
  adjusted: true,
  window_update: true,
};

/** Every `notification_type` of a delivery report. */
export const REPORT_TYPES: readonly ReportType[] = Object.keys(TYPES) as ReportType[];

/** Validates a delivery report (zod): the member `result` of a webhook's body, not the whole body. */
export const deliveryReportSchema: z.ZodMiniType<DeliveryReport> = z.looseObject({
  notification_type: z.enum(REPORT_TYPES),
  sequence_number: number,
  reporting_period: z.nullish(z.looseObject({ start: z.string(), end: z.string() })),
  currency: text,
  next_expected_at: text,
  partial_data: flag,
  unavailable_count: number,
  media_buy_deliveries: z.nullish(z.array(mediaBuyDelivery)),
});

/** Validates the progress that a webhook of a task in status `working` has in its member `result` (zod). */
export const workingProgressSchema: z.ZodMiniType<WorkingProgress> = z.looseObject({
  percentage: number,
  current_step: z.nullish(z.union([z.string(), z.number()])),
  total_steps: number,
});

/**
 * Validates the request for input that a webhook of a task in status `input-required` has in its member `result`
 * (zod).
 */
export const inputRequestSchema: z.ZodMiniType<InputRequest> = z.looseObject({
  reason: text,
  validation_errors: z.nullish(z.array(z.unknown())),
});

/**
 * Validates the whole JSON body of a webhook about a task that was called by MCP, or of a delivery report (zod).
 * `readEvent` and receivers accept more than this schema, e.g. notifications without a task id.
 */
export const toolEnvelopeSchema: z.ZodMiniType<ToolEnvelope> = z.looseObject({
  idempotency_key: z.string().check(z.regex(IDEMPOTENCY_KEY)),
  task_id: id,
  status: z.string().check(z.refine((status) => !isMediaBuyWord(status))),
  operation_id: text,
  task_type: text,
  domain: text,
  timestamp: text,
  message: text,
});

const part = z.looseObject({ kind: text, text });
const parts = z.nullish(z.array(part));
const agentStatus = z.looseObject({
  state: z.string(),
  timestamp: text,
  message: z.nullish(z.looseObject({ parts })),
});

/**
 * Validates a `Task` of A2A, which sellers post as a webhook when a task has ended (zod). A `Task` inside another
 * object does not fit.
 */
export const agentTaskSchema: z.ZodMiniType<AgentTask> = z.looseObject({
  id,
  contextId: text,
  status: agentStatus,
  artifacts: z.nullish(z.array(z.looseObject({ artifactId: text, parts }))),
});

/**
 * Validates a `TaskStatusUpdateEvent` of A2A, which sellers post as a webhook to report progress (zod). A
 * `TaskStatusUpdateEvent` inside another object does not fit.
 */
export const agentTaskStatusUpdateSchema: z.ZodMiniType<AgentTaskStatusUpdate> = z.looseObject({
  taskId: id,
  contextId: text,
  status: agentStatus,
});
