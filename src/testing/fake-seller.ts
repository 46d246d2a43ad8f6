// Starts a seller on loopback for tests of a receiver: documents, keys, payloads and deliveries in one object. The
// entry `proto-webhooks/testing` exports it. The probe (a test of receivers over HTTP) publishes keys with it.
import { onlyKnown } from '../config/validate.ts';
import { protocolFor } from '../shared/wire-names.ts';
import { samplePayloads } from './payloads.ts';
import { serveDocuments } from './seller-documents.ts';
import { sellerKeys, REVOKE_NAMES, revocationList } from './seller-keys.ts';
import { deliveries } from './seller-delivery.ts';
import type { FakeSeller, FakeSellerOptions } from './seller-types.ts';

export type { DeliverOptions, FakeSeller, FakeSellerOptions } from './seller-types.ts';

const BRAND_JSON = '/.well-known/brand.json';
const JWKS = '/.well-known/jwks.json';

const OPTION_NAMES: Readonly<Record<keyof FakeSellerOptions, true>> = {
  url: true,
  to: true,
  protocol: true,
  auth: true,
  retry: true,
  port: true,
  now: true,
};

/**
 * Starts a seller on 127.0.0.1 with brand.json, a JWKS and keys of both algorithms. Use it to test your own handlers
 * with real deliveries.
 *
 * Pass the seller's `sender` to a receiver with `allowLoopback: true`. The option `url` is the receiver's `publicUrl`.
 * @throws ConfigError for a wrong `protocol`, or an unknown option.
 * @example
 * ```ts
 * import { createReceiver } from 'proto-webhooks';
 * import { memoryStore } from 'proto-webhooks/memory';
 * import { createFakeSeller } from 'proto-webhooks/testing';
 *
 * const publicUrl = 'http://127.0.0.1:3000/webhooks/proto';
 * const seller = await createFakeSeller({ url: publicUrl });
 * const receiver = createReceiver({
 *   publicUrl,
 *   senders: [seller.sender],
 *   store: memoryStore(),
 *   allowLoopback: true,
 *   mode: 'inline',
 *   handlers: { other: async (event) => console.log(event.kind, event.status) },
 * });
 * // Serve the receiver at publicUrl, then:
 * const { last } = await seller.deliver(seller.payloads.tool('completed'));
 * console.log(last.status);
 * await seller.close();
 * await receiver.stop();
 * ```
 */
export async function createFakeSeller(options: FakeSellerOptions = {}): Promise<FakeSeller> {
  onlyKnown('createFakeSeller', options, OPTION_NAMES);
  const [ownList, governanceList] = protocolFor(options.protocol).revocationsPaths;
  const { now = Date.now } = options;
  const server = await serveDocuments(options.port ?? 0);
  const { origin, documents, faults, fetches } = server;
  const agentUrl = `${origin}/mcp`;
  const brandJsonUrl = origin + BRAND_JSON;
  const jwksUrl = origin + JWKS;
  documents.set(BRAND_JSON, {
    name: 'Fake seller',
    agents: [{ type: 'sales', url: agentUrl, jwks_uri: jwksUrl }],
  });
  const { keys, rotate } = await sellerKeys(options.protocol, (keySet) => documents.set(JWKS, keySet));
  const revoke: FakeSeller['revoke'] = (kids, how = {}) => {
    onlyKnown('revoke', how, REVOKE_NAMES);
    const path = how.governance === true ? governanceList : ownList;
    documents.set(path, () => revocationList({ origin, keys, now }, kids, how));
  };
  const closing = new AbortController();
  const close = async (): Promise<void> => {
    closing.abort();
    await server.close();
  };
  return {
    agentUrl,
    brandJsonUrl,
    jwksUrl,
    revocationsUrl: origin + ownList,
    sender: { agentUrl, brandJsonUrl, ...(options.auth && { auth: options.auth }) },
    keys,
    payloads: samplePayloads({ now }),
    documents,
    faults,
    fetches,
    rotate,
    revoke,
    ...deliveries(agentUrl, options, keys, closing.signal),
    close,
    [Symbol.asyncDispose]: close,
  };
}
