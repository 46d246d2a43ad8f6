import type { Event } from '../../events/event.ts';
import type { HandlerContext } from '../../events/handler-context.ts';
import type { Alarm, Logger } from '../../shared/alarms.ts';
import type { Sink } from './sink.ts';

export interface Forwarder {
  readonly handle: (event: Event, ctx: HandlerContext) => Promise<void>;
  readonly state: () => { paused: boolean; since?: number; lastFault?: string };
}

export function createForwarder(
  sink: Sink,
  _: { readonly onAlarm: (alarm: Alarm) => void; readonly logger: Logger },
): Forwarder {
  return {
    handle: (event, { deliveryId: id, run, signal, log }) =>
      sink.send({ event, id, run, signal, log, repeated: run > 1 }),
    state: () => ({ paused: false }),
  };
}
