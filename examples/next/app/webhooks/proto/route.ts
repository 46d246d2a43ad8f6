import { webhookHandler } from 'proto-webhooks/fetch';
import { receiver } from '@/receiver';

export const runtime = 'nodejs';

let handle: ReturnType<typeof webhookHandler> | undefined;

export function POST(request: Request): Promise<Response> {
  handle ??= webhookHandler(receiver());
  return handle(request);
}
