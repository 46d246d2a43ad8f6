import { Fault, type Outcome, type Store, type UnavailableCode } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import {
  heldHandler,
  type HeldHandler,
  testReceiver,
  payloads,
  type TestReceiver,
  type TestReceiverOptions,
} from '../receiver/setup.ts';
import { MINUTE, rehearse, REVOCATIONS } from '../testing/rehearsal.ts';
import type { Row } from './row.ts';

const completed = (): ReturnType<typeof payloads.tool> => payloads.tool('completed');

/** A receiver whose handlers run until they are released. */
async function held(more: TestReceiverOptions = {}): Promise<TestReceiver & HeldHandler> {
  const run = heldHandler();
  return { ...(await testReceiver({ advanced: { waitMs: 0 }, handler: run.handler, ...more })), ...run };
}

/** A store that says why it cannot decide. */
const failing = (code: UnavailableCode, message: string): Store => ({
  ...memoryStore(),
  accept: async () => {
    throw new Fault(code, message);
  },
});

/** What is answered while the first delivery's handler runs. */
async function meanwhile(first: object, second: object): Promise<Outcome> {
  const at = await held();
  const running = at.deliver(first);
  await at.started;
  const outcome = await at.deliver(second);
  at.release();
  await running;
  return outcome;
}

async function ticketOf(at: TestReceiver) {
  const signed = await at.sign(completed());
  const ticket = await at.receiver.open(signed.headers);
  if (ticket.kind !== 'ticket') throw new Error(`no ticket: ${ticket.kind}`);
  return { ticket, ...signed };
}

async function outcomeOf({ outcome }: { readonly outcome: Promise<Outcome | undefined> }): Promise<Outcome> {
  const ended = await outcome;
  if (!ended) throw new Error('the ticket has no outcome');
  return ended;
}

function lastOf({ outcomes }: Pick<TestReceiver, 'outcomes'>): Outcome {
  const last = outcomes.at(-1);
  if (!last) throw new Error('nothing was answered');
  return last;
}

/** Every code of a 503: how it comes about, and what the owner reads. */
export const FAULTS: Readonly<Record<UnavailableCode, Row<Outcome>>> = {
  keys_unavailable: {
    test: async () => {
      const at = await rehearse();
      at.seller.faults.set('*', 'down');
      await at.deliver();
      return lastOf(at);
    },
    message: 'No key decides, and some could not be fetched',
  },
  store_unavailable: {
    test: async () => {
      const store = failing('store_unavailable', 'connection refused');
      return (await testReceiver({ store })).deliver(completed());
    },
    message: 'connection refused',
  },
  clock_skew: {
    test: async () => {
      // The store's clock is right, and this machine's is ten minutes slow.
      const now = Date.now();
      const clock = async (): Promise<number> => now;
      const at = await testReceiver({ store: { ...memoryStore(), clock }, now: () => now - 10 * MINUTE });
      return at.deliver(completed(), { now: () => now });
    },
    message: "This machine's clock is 600 s behind",
  },
  not_durable: {
    test: async () => {
      const store = failing('not_durable', 'its disk keeps nothing');
      return (await testReceiver({ store })).deliver(completed());
    },
    message: 'its disk keeps nothing',
  },
  in_flight: {
    test: async () => {
      const event = completed();
      return meanwhile(event, event);
    },
    message: 'another delivery of the same event is being handled',
  },
  task_busy: {
    test: async () => {
      const at = (timestamp: string): Record<string, unknown> => ({ task_id: 't', timestamp });
      return meanwhile(
        payloads.tool('working', at('2026-01-01T00:00:00Z')),
        payloads.tool('completed', at('2026-01-01T00:01:00Z')),
      );
    },
    message: 'another event of the same task is being handled',
  },
  lease_lost: {
    test: async () => {
      let offset = 0;
      const state = createMemoryState();
      const store = (): Store => memoryStore({ state, clockOffsetMs: () => offset });
      const here = await held({ store: store(), advanced: { renewMs: 7_999 } });
      const there = await testReceiver({ store: store() });
      const event = completed();
      const first = here.deliver(event);
      await here.started;
      offset = 8_001;
      await there.deliver(event);
      here.release();
      return first;
    },
    message: 'the lease was over when the handler returned',
  },
  handler_failed: {
    test: async () => {
      const at = await testReceiver({
        handler: () => {
          throw new Error('no such table: buys');
        },
      });
      return at.deliver(completed());
    },
    message: 'no such table: buys',
  },
  handler_timeout: {
    test: async () => {
      const at = await held({ handlerDeadlineMs: 1 });
      const outcome = await at.deliver(completed());
      at.release();
      return outcome;
    },
    message: 'the handler ran over 1 ms',
  },
  body_timeout: {
    test: async () =>
      outcomeOf((await ticketOf(await testReceiver({ advanced: { bodyDeadlineMs: 1 } }))).ticket),
    message: 'the body was not complete after 1 ms',
  },
  body_consumed: {
    test: async () => {
      const { ticket } = await ticketOf(await testReceiver());
      ticket.add('{"status":"completed"}' as never);
      return outcomeOf(ticket);
    },
    message: 'something other than bytes (Uint8Array)',
  },
  overloaded: {
    test: async () => {
      const at = await testReceiver({ maxBodyBytes: 4_096, advanced: { maxBufferedBytes: 8_192 } });
      const large = JSON.stringify(completed()).padEnd(4_096);
      const uploads = [];
      for (let count = 0; count < 3; count += 1) {
        const signed = await at.sign(large);
        const opened = await at.receiver.open(signed.headers);
        if (opened.kind !== 'ticket') return opened;
        uploads.push(opened);
        if (!opened.add(signed.body)) break;
      }
      const last = uploads.pop();
      for (const upload of uploads) upload.abort();
      if (!last) throw new Error('no ticket');
      return outcomeOf(last);
    },
    message: 'fill maxBufferedBytes (8192)',
  },
  shutting_down: {
    test: async () => {
      const at = await testReceiver();
      await at.receiver.stop();
      return at.deliver(completed());
    },
    message: 'the receiver stops',
  },
  misconfigured: {
    test: async () => (await testReceiver({ durability: { require: 'disk' } })).deliver(completed()),
    message: 'lower durability.require',
  },
  webhook_signature_revocation_stale: {
    test: async () => {
      const at = await rehearse();
      at.seller.revoke([]);
      await at.deliver();
      at.seller.faults.set(REVOCATIONS, 'unavailable');
      at.advance(26 * MINUTE);
      await at.deliver();
      return lastOf(at);
    },
    message: 'revocation list is older than its grace',
  },
  webhook_target_uri_malformed: {
    test: async () => {
      const at = await testReceiver();
      const { body, headers } = await at.sign(completed());
      return at.receiver.verifyAndDispatch(body, { ...headers, Host: 'internal.example' });
    },
    message: 'a proxy in front rewrites Host',
  },
};
