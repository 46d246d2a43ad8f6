import { Buffer } from 'node:buffer';
import type { HeadersInput } from '../delivery.ts';
import type { RequestInfo } from '../options.ts';
import { type Answered, faultReply, isTicket, type DoorReceiver } from './door.ts';
import { eventShape, type LambdaEvent, type LambdaResult } from './lambda-event.ts';
import { noRequest, wiringOf } from './wiring.ts';

export type { DoorReceiver } from './door.ts';
export type { LambdaEvent, LambdaResult } from './lambda-event.ts';

/** Something in front of the handler has decoded it. */
const isParsed = ({ body }: { readonly body?: unknown }): boolean => body != null && typeof body !== 'string';

const PARSED =
  'event.body is not the text that API Gateway gives: it was parsed before the webhook handler, and the bytes that were signed are gone. Take middleware that parses bodies (e.g. middy’s httpJsonBodyParser) off this function.';

function bodyOf({ body, isBase64Encoded }: LambdaEvent): Uint8Array {
  return Buffer.from(body ?? '', isBase64Encoded === true ? 'base64' : 'utf8');
}

/** Its headers are looked at all the same. */
async function refuseParsed(
  receiver: DoorReceiver,
  headers: HeadersInput,
  info: RequestInfo,
): Promise<Answered> {
  const opened = await receiver.open(headers, info);
  if (!isTicket(opened)) return opened;
  opened.abort();
  return receiver.door.consumed(PARSED);
}

async function answer(receiver: DoorReceiver, given: LambdaEvent | null | undefined): Promise<LambdaResult> {
  const event = given ?? {};
  const shape = eventShape(event);
  try {
    const method: unknown = shape.method(event);
    // 405 would end the event for its sender, and a front that is read wrongly is no fault of that one's.
    if (typeof method !== 'string' || method === '') throw noRequest('lambda');
    const headers = shape.headers(event);
    const info = { method, url: shape.target(event) };
    const { response } = isParsed(event)
      ? await refuseParsed(receiver, headers, info)
      : await receiver.verifyAndDispatch(bodyOf(event), headers, info);
    return shape.result(response, event);
  } catch (error) {
    return shape.result(faultReply(receiver, error), event);
  }
}

/**
 * An AWS Lambda handler behind an API Gateway (REST, payload 1.0; HTTP, payload 2.0), an Application Load Balancer or a
 * function URL: `export const handler = webhookHandler(receiver)`.
 *
 * Mode `inline`: give the function a time-out above `handlerDeadlineMs` + `waitMs` (Lambda's default is 3 s). Mode
 * `inbox`: this door only stores; call `receiver.start()` in a process that keeps running, never here, where a frozen
 * worker's leases run out. REST APIs and load balancers give the query as parsed: with a `publicUrl` that ends in `/*`
 * it is put together again, which is the seller's spelling for plain queries only.
 *
 * It rejects only with a `ConfigError` where the first event is no HTTP request; later ones are answered 503.
 */
export function webhookHandler(receiver: DoorReceiver): (event: LambdaEvent) => Promise<LambdaResult> {
  const check = wiringOf('lambda', receiver);
  return async (event) => {
    check(event);
    return answer(receiver, event);
  };
}
