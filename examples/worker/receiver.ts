// The same receiver for the Worker, which verifies, stores and answers, and for the inbox, which runs the handlers.
import { createReceiver, type Store } from 'proto-webhooks';

export interface Settings {
  readonly PUBLIC_URL?: string;
  readonly AGENT_URL?: string;
  readonly BRAND_JSON_URL?: string;
  readonly ALLOW_LOOPBACK?: string;
}

export function receiverOn(store: Store, settings: Settings) {
  const { PUBLIC_URL = '', AGENT_URL = '', BRAND_JSON_URL, ALLOW_LOOPBACK } = settings;
  return createReceiver({
    mode: 'inbox',
    publicUrl: PUBLIC_URL, // exactly what you gave to sellers
    senders: [{ agentUrl: AGENT_URL, ...(BRAND_JSON_URL && { brandJsonUrl: BRAND_JSON_URL }) }],
    store,
    // Only for a seller on this machine, e.g. createFakeSeller from proto-webhooks/testing.
    allowLoopback: ALLOW_LOOPBACK === '1',
    handlers: {
      other: async (event) => {
        console.log(event.kind, event.status, event.idempotencyKey);
      },
    },
  });
}
