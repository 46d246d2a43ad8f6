import { conclude, faultVerdict, unavailable } from './answering.ts';
import { headerFields } from './delivery.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { Door } from './options.ts';
import type { Refusal, Unavailability } from './outcome.ts';
import type { Parts } from './parts.ts';
import { guardDeclaredLength, guardHeaders } from './stages/guard.ts';

const noBody = (
  code: 'payload_too_large' | 'body_timeout' | 'body_consumed',
  detail: string,
): Refusal | Unavailability =>
  code === 'payload_too_large' ? { kind: 'refused', code, detail } : unavailable(code, detail);

/** What adapters need besides `verifyAndDispatch`: the answers that need no whole body. */
export function createDoor(parts: Parts, lifecycle: Lifecycle): Door {
  const { maxBodyBytes, bodyDeadlineMs } = parts.config;
  let fixTold = false;
  return {
    maxBodyBytes,
    bodyDeadlineMs,
    check(headers, request = {}) {
      if (lifecycle.stopping())
        return conclude(unavailable('shutting_down', 'the receiver stops'), {}, parts);
      const fields = headerFields(headers);
      const refusal =
        guardHeaders(request.method ?? 'POST', fields) ?? guardDeclaredLength(fields, maxBodyBytes);
      return refusal && conclude(refusal, {}, parts);
    },
    refuse(code, detail) {
      if (code === 'body_consumed' && !fixTold) {
        fixTold = true;
        parts.raiseAlarm({ code: 'misconfigured', message: detail });
      }
      return conclude(noBody(code, detail), {}, parts);
    },
    fault: (error) => conclude(faultVerdict(error, parts), {}, parts),
  };
}
