// Makes the sample body with which the form for an own body begins, and gives it new ids at each send. send.tsx uses
// it.
import type { ToolEnvelope } from '../../events/wire.ts';

/** A body in the form. `textId` is the random part of its idempotency key and its task id. */
export interface SampleBody {
  readonly text: string;
  readonly textId: string;
}

const keyOf = (id: string): string => `evt_${id}`;

/** Makes a valid event. It does not use `samplePayloads`, because that code is larger than the rest of the form. */
export function sampleBody(): SampleBody {
  const id = crypto.randomUUID();
  const body: ToolEnvelope = {
    idempotency_key: keyOf(id),
    task_id: `task_${id}`,
    operation_id: `op_${id}`,
    task_type: 'create_media_buy',
    domain: 'media-buy',
    status: 'completed',
    timestamp: new Date().toISOString(),
    message: 'Task completed',
    result: { media_buy_id: 'mb_1', packages: [{ package_id: 'pkg_1' }] },
  };
  return { text: JSON.stringify(body, undefined, 2), textId: id };
}

/** Gives the event and the task in the body new ids. Returns the body unchanged if the user has changed its key. */
export function asNewEvent({ text, textId }: SampleBody): SampleBody {
  if (!text.includes(JSON.stringify(keyOf(textId)))) return { text, textId };
  const id = crypto.randomUUID();
  return { text: text.replaceAll(textId, id), textId: id };
}
