// Makes the body with which the form for an own body begins, and another event of it at each send.
// send.tsx uses it.
import type { ToolEnvelope } from '../../events/wire.ts';

/** A body that the form begins with, and the id that its key and its task are named by. */
export interface SampleBody {
  readonly text: string;
  readonly textId: string;
}

const keyOf = (id: string): string => `evt_${id}`;

/** Makes a whole event like those of `samplePayloads`, whose code would be larger than the rest of the form. */
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

/** The same body as another event, of another task: as it is once its key was changed by hand. */
export function asNewEvent({ text, textId }: SampleBody): SampleBody {
  if (!text.includes(JSON.stringify(keyOf(textId)))) return { text, textId };
  const id = crypto.randomUUID();
  return { text: text.replaceAll(textId, id), textId: id };
}
