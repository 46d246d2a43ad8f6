import { conclude, faultVerdict, type Trace } from './answering.ts';
import { headerFields, methodOf } from './delivery.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { Door } from './options.ts';
import { unavailable, type Refusal, type Unavailability } from './outcome.ts';
import type { Parts } from './parts.ts';
import { declaredLength, guardDeclaredLength, guardHeaders } from './stages/guard.ts';

type NoBodyCode = Parameters<Door['refuse']>[0];

const noBody = (code: NoBodyCode, detail: string): Refusal | Unavailability =>
  code === 'payload_too_large' ? { kind: 'refused', code, detail } : unavailable(code, detail);

/** Nothing is known yet of who sent. */
const NOBODY: Trace = { who: {} };

/** Bytes that doors keep for deliveries not yet answered: what a flood of uploads can take of this process. */
interface Room {
  readonly fits: (bytes: number) => boolean;
  readonly take: (bytes: number) => boolean;
  readonly give: (bytes: number) => void;
}

function createRoom(maxBufferedBytes: number): Room {
  let held = 0;
  const fits = (bytes: number): boolean => held + bytes <= maxBufferedBytes;
  return {
    fits,
    take(bytes) {
      if (!fits(bytes)) return false;
      held += bytes;
      return true;
    },
    give(bytes) {
      held -= bytes;
    },
  };
}

/** What adapters need besides `verifyAndDispatch`: the answers that need no whole body. */
export function createDoor(parts: Parts, lifecycle: Lifecycle): Door {
  const { maxBodyBytes, maxBufferedBytes, bodyDeadlineMs } = parts.config;
  const room = createRoom(maxBufferedBytes);
  const refuse: Door['refuse'] = (code, detail) => {
    if (code === 'body_consumed') parts.raiseAlarm({ code: 'misconfigured', message: detail });
    if (code === 'overloaded') parts.raiseAlarm({ code, message: detail });
    return conclude(noBody(code, detail), NOBODY, parts);
  };
  return {
    maxBodyBytes,
    bodyDeadlineMs,
    check(headers, request = {}) {
      if (lifecycle.stopping())
        return conclude(unavailable('shutting_down', 'the receiver stops'), NOBODY, parts);
      const fields = headerFields(headers);
      const refusal =
        guardHeaders(methodOf(request.method), fields, parts) ?? guardDeclaredLength(fields, maxBodyBytes);
      if (refusal) {
        return conclude(refusal, { who: {}, delivery: { headers: fields, url: request.url } }, parts);
      }
      // Only looked at: what surely does not fit need not be read. Counted is what has arrived, and not what was
      // announced: an announcement costs a flood nothing.
      const fits = room.fits(declaredLength(fields) ?? 0);
      return fits ? undefined : refuse('overloaded', noRoom(maxBufferedBytes));
    },
    refuse,
    fault: (error) => conclude(faultVerdict(error, parts), NOBODY, parts),
    hold: room.take,
    release: room.give,
  };
}

const noRoom = (maxBufferedBytes: number): string =>
  `the bodies of deliveries under way fill maxBufferedBytes (${maxBufferedBytes}); raise it, or add processes`;
