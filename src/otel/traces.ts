// Makes one OpenTelemetry span for each delivery and one for each run of a handler, with the names in
// docs/observability.md. `instrument` calls `createTraces`; the receiver and `dispatch` call the functions that it
// returns.

import {
  type Attributes,
  type Context,
  context,
  isSpanContextValid,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import { printableText } from '../codec/printable.ts';
import { printableValue } from '../codec/printable-value.ts';
import { written } from '../config/public-url.ts';
import { textOf } from '../shared/errors.ts';
import { isError } from '../shared/realms.ts';
import type { DeliveryWatch, Instruments } from '../receiver/instruments.ts';
import type { Outcome } from '../shared/outcome.ts';
import type { ReceiverContext } from '../receiver/context.ts';
import { type DeliveryMeter, quietly } from './metrics.ts';

interface TracesContext {
  readonly parts: ReceiverContext;
  readonly labelOf: (sender: string) => string;
  readonly linkSellers: boolean;
}

interface Traces {
  readonly delivery: <T>(run: (watch: DeliveryWatch) => Promise<T>, meter: DeliveryMeter) => Promise<T>;
  readonly handler: NonNullable<Instruments['handler']>;
}

/** Matches a `traceparent` of W3C Trace Context, version 00, whose ids are not all zero. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Returns the link to the span that the `traceparent` names; undefined if the text is not valid. */
function linkTo(traceparent: string | undefined): Link | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  const traceFlags = Number.parseInt(flags ?? '0', 16);
  return { context: { traceId, spanId, traceFlags, isRemote: true } };
}

function traceparentOf(span: Span): string | undefined {
  const own = span.spanContext();
  if (!isSpanContextValid(own)) return undefined;
  const flags = (own.traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0');
  return `00-${own.traceId}-${own.spanId}-${flags}`;
}

const activeContext = (): Context => quietly(() => context.active()) ?? ROOT_CONTEXT;

/** Calls the function with `active` as the context. The function is called even if the context manager throws. */
function within<T>(active: Context, run: () => T): T {
  let hasBegun = false;
  try {
    return context.with(active, () => {
      hasBegun = true;
      return run();
    });
  } catch (error) {
    if (hasBegun) throw error;
    return run();
  }
}

/**
 * Makes the functions that trace deliveries and handlers. Names, kinds and attributes of spans are in
 * docs/observability.md.
 */
export function createTraces(tracer: Tracer, { parts, labelOf, linkSellers }: TracesContext): Traces {
  const { protocols, config } = parts;
  // Only the path is used as the name, because a query may contain a tenant's secret.
  const destination = new URL(written(config.bases[0])).pathname;
  const common: Attributes = {
    'messaging.system': protocols[0].name,
    'messaging.destination.name': destination,
  };
  const operation = (name: 'receive' | 'process'): Attributes => ({
    ...common,
    'messaging.operation.name': name,
    'messaging.operation.type': name,
  });

  function endDelivery(span: Span, outcome: Outcome, sellers: string | undefined): void {
    const { kind, code, sender, deliveryId } = outcome;
    const check = kind === 'refused' ? outcome.check : undefined;
    const link = linkSellers ? linkTo(sellers) : undefined;
    // Spans of older SDKs cannot get a link after their start; the error is ignored.
    if (link) quietly(() => span.addLink(link));
    const attributes = {
      'webhook.outcome': kind,
      ...(code !== undefined && { 'webhook.code': code, 'error.type': code }),
      ...(check !== undefined && { 'webhook.check': String(check) }),
      ...(sender !== undefined && { 'webhook.sender': labelOf(sender) }),
      ...(deliveryId !== undefined && { 'messaging.message.id': deliveryId }),
    };
    span.setAttributes(printableValue(attributes));
    // Only a 503 is an error of the span, because it is a fault of this side. A refusal is the right answer to a wrong
    // request.
    if (kind === 'unavailable')
      span.setStatus({ code: SpanStatusCode.ERROR, message: printableText(outcome.detail) });
    span.end();
  }

  return {
    delivery(run, meter) {
      const outer = activeContext();
      const span = quietly(() =>
        tracer.startSpan(
          `receive ${destination}`,
          { kind: SpanKind.INTERNAL, attributes: operation('receive') },
          outer,
        ),
      );
      const active = span ? trace.setSpan(outer, span) : outer;
      const watch: DeliveryWatch = {
        passed: meter.passed,
        resumed: (second) => within(active, second),
        traceparent: span && quietly(() => traceparentOf(span)),
        ended: (outcome, headers) => {
          meter.ended(outcome);
          if (span) quietly(() => endDelivery(span, outcome, headers?.get('traceparent')?.[0]));
        },
      };
      return within(active, () => run(watch));
    },

    handler({ deliveryId, traceparent, lease }, event, handle) {
      // A worker's loop runs in the context in which `start` was called, which is not that of a delivery. So its spans
      // have no parent.
      const isWorker = config.mode === 'inbox';
      const link = linkTo(traceparent);
      const span = quietly(() =>
        tracer.startSpan(`process ${destination}`, {
          kind: SpanKind.CONSUMER,
          root: isWorker,
          ...(link && { links: [link] }),
          attributes: printableValue({
            ...operation('process'),
            'messaging.message.id': deliveryId,
            'webhook.sender': labelOf(event.sender),
            'webhook.kind': event.kind,
            'webhook.run': lease.run,
            'webhook.charged_attempts': lease.chargedAttempts,
            ...(event.kind === 'task' && { 'messaging.message.conversation_id': event.taskId }),
          }),
        }),
      );
      if (!span) return handle();
      return within(trace.setSpan(activeContext(), span), async () => {
        try {
          return await handle();
        } catch (error) {
          quietly(() => {
            span.recordException(printableValue(isError(error) ? error : textOf(error)));
            span.setStatus({ code: SpanStatusCode.ERROR });
          });
          throw error;
        } finally {
          quietly(() => span.end());
        }
      });
    },
  };
}
