import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { freePort } from '../support/free-port.ts';

/** Where an example is to listen, and a seller that was told so. */
export interface Registered {
  readonly origin: string;
  readonly seller: FakeSeller;
  /** What an example reads of it. */
  readonly env: Readonly<Record<string, string>>;
}

export async function registered(): Promise<Registered> {
  const port = String(await freePort());
  const origin = `http://127.0.0.1:${port}`;
  const url = `${origin}/webhooks/proto`;
  const seller = await createFakeSeller({ url });
  const env = {
    PORT: port,
    PUBLIC_URL: url,
    AGENT_URL: seller.agentUrl,
    BRAND_JSON_URL: seller.brandJsonUrl,
    ALLOW_LOOPBACK: '1',
  };
  return { origin, seller, env };
}
