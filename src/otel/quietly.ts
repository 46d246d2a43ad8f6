import { diag } from '@opentelemetry/api';

/** What telemetry throws is telemetry's own business: a delivery must not know. */
export function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    try {
      diag.error('proto-webhooks/otel', error);
    } catch {
      // Whoever listens to that has nobody else to tell.
    }
    return undefined;
  }
}
