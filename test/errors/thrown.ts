import { createReceiver, PermanentError } from '../../src/index.ts';
import type { ThrownCode } from '../../src/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { runVectors } from '../../src/vectors/index.ts';
import { readCapture } from '../../src/cli/for-tests.ts';
import { a2aCaller } from '../../src/registrations/a2a.ts';
import { createReconciler } from '../../src/reconcile/index.ts';
import { type CallSeller, createRegistrations } from '../../src/registrations/index.ts';
import { type CallerOptions, mcpCaller } from '../../src/registrations/mcp.ts';
import { testReceiver, payloads } from '../receiver/setup.ts';
import type { Row } from './row.ts';

const SELLER = 'https://seller.example/mcp';

/** What a call by a client rejects with, where the seller answers its requests like that. */
const calling = async (
  make: (options: CallerOptions) => CallSeller,
  operation: string,
  answer: (body: Readonly<Record<string, unknown>>) => Response,
  more: CallerOptions = {},
): Promise<unknown> => {
  const fetch: CallerOptions['fetch'] = async (_url, { body }) => {
    const text = await new Response(body ?? null).text();
    return answer((text === '' ? {} : JSON.parse(text)) as Readonly<Record<string, unknown>>);
  };
  const { signal } = new AbortController();
  return make({ ...more, fetch })(SELLER, operation, { task_id: 't-1' }, { signal }).catch(
    (error: unknown) => error,
  );
};

const json = (value: object, headers: Record<string, string> = {}): Response =>
  Response.json(value, { headers });

/** A server of tools, whose tool answers by that. */
const tools =
  (answer: (id: unknown) => Response) =>
  ({ id, method }: Readonly<Record<string, unknown>>): Response => {
    if (method === 'tools/call') return answer(id);
    if (method !== 'initialize') return new Response(null, { status: 202 });
    const serverInfo = { name: 'seller', version: '1' };
    const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo };
    return json({ jsonrpc: '2.0', id, result }, { 'mcp-session-id': 's-1' });
  };

const CARD = {
  name: 'seller',
  capabilities: {
    extensions: [{ uri: 'https://adcontextprotocol.org/extensions/adcp/v3', required: true }],
  },
  supportedInterfaces: [{ url: SELLER, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
};

/** Every other error with a code: how it comes about. */
export const THROWN: Readonly<Record<ThrownCode, Row<unknown>>> = {
  config_error: {
    test: async () => {
      try {
        return createReceiver({
          publicUrl: 'https://buyer.example/webhooks',
          senders: [{ agentUrl: 'https://seller.example/mcp' }],
          store: memoryStore(),
          handlers: {} as never,
        });
      } catch (error) {
        return error;
      }
    },
    message: 'handlers.other',
  },
  permanent_error: {
    test: async () => {
      let thrown: unknown;
      const at = await testReceiver({
        handler: () => {
          thrown = new PermanentError('no such account');
          throw thrown;
        },
      });
      const event = payloads.tool('completed');
      await at.deliver(event);
      const record = await at.receiver.inbox.inspect('https://seller.example/mcp', event.idempotency_key);
      if (record?.state !== 'dead') throw new Error(`the event is ${record?.state ?? 'not there'}`);
      return thrown;
    },
    message: 'no such account',
  },
  seller_busy: {
    test: () => calling(mcpCaller, 'create_media_buy', () => new Response(null, { status: 429 })),
    message: 'The seller answers 429: it is busy',
  },
  answer_refused: {
    test: () =>
      calling(
        mcpCaller,
        'create_media_buy',
        tools((id) => json({ jsonrpc: '2.0', id, result: { content: [], text: 'x'.repeat(2_000) } })),
        { maxAnswerBytes: 1_000 },
      ),
    message: 'it has more than 1000 bytes',
  },
  call_not_made: {
    test: () => calling(a2aCaller, 'create_media_buy', () => json(CARD), { maxAnswerBytes: 10 }),
    message: 'The call was not made: the agent card',
  },
  no_operation: {
    test: () => calling(a2aCaller, 'tasks/get', () => json(CARD)),
    message: 'The operation tasks/get is not available',
  },
  compare_failed: {
    test: async () => {
      const store = memoryStore();
      const registrations = createRegistrations({
        store,
        call: async () => ({}),
        baseUrl: 'https://buyer.example',
        secrets: ['a-secret-of-a-buyer-who-compares-totals'],
      });
      const { receiver } = await testReceiver({ store, registrations });
      const reconciler = createReconciler({ receiver, registrations, ours: () => ({ spend: 1 }) });
      return reconciler.compare({ agentUrl: SELLER, mediaBuyId: 'buy-1' }).catch((error: unknown) => error);
    },
    message: 'The totals cannot be compared: the media buy is not known',
  },
  redirect_refused: {
    test: () =>
      calling(
        mcpCaller,
        'create_media_buy',
        () => new Response(null, { status: 302, headers: { location: 'https://other.example/mcp' } }),
      ),
    message: 'a redirect to https://other.example/mcp',
  },
  session_lost: {
    test: () =>
      calling(
        mcpCaller,
        'create_media_buy',
        tools(() => new Response(null, { status: 404 })),
      ),
    message: 'does not know the session any more',
  },
  task_unknown: {
    test: () =>
      calling(
        mcpCaller,
        'get_task_status',
        tools((id) => {
          const errors = [{ code: 'TASK_NOT_FOUND', message: 'never heard of it' }];
          return json({ jsonrpc: '2.0', id, result: { content: [], structuredContent: { errors } } });
        }),
      ),
    message: 'The seller does not know the task',
  },
  usage_error: {
    test: () => {
      const readFile = async (): Promise<Uint8Array> => new Uint8Array();
      const reading = readCapture(new Uint8Array(), { file: 'refused.http', readFile });
      return reading.catch((error: unknown) => error);
    },
    message: 'refused.http: it is empty.',
  },
  vector_error: {
    test: () => runVectors({ dir: 'there/is/no/such/folder' }).catch((error: unknown) => error),
    message: 'expected a folder of vectors',
  },
};
