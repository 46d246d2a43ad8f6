import { createReceiver, PermanentError } from '../../src/index.ts';
import type { ThrownCode } from '../../src/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { runVectors } from '../../src/vectors/index.ts';
import { testReceiver, payloads } from '../receiver/setup.ts';
import type { Row } from './row.ts';

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
  vector_error: {
    test: () => runVectors({ dir: 'there/is/no/such/folder' }).catch((error: unknown) => error),
    message: 'expected a folder of vectors',
  },
};
