import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { IncomingMessage, ServerResponse } from 'node:http';
import * as z from 'zod';
import type { CallSeller } from '../../../src/registrations/index.ts';
import { newKey } from '../../reliability/market/seller/keys.ts';
import { listening } from '../../adapters/raw-client.ts';
import { type Account, newBook, provenBy } from './book.ts';
import { deskOf, OPERATIONS } from './desk.ts';
import type { Entry } from './entries.ts';
import { eventOf } from './families.ts';
import type { Args, Line, Reply, SaidError } from './log.ts';
import { postEvent } from './post.ts';

/*
 * A seller of subscriptions on the real server SDK of the tool transport, with brand.json and keys. A test says what goes wrong
 * with the next calls, what other subscribers do, and reads what was asked and set.
 */

/** What goes wrong with one call. */
export interface Behaviour {
  /** Before anything is done: another subscriber changes the set, or the test lets the call wait. */
  readonly before?: () => unknown;
  /** After it is done, and before it is answered. */
  readonly after?: () => unknown;
  /** This is answered, and nothing is done. */
  readonly error?: SaidError;
  /** Its connection ends; nothing is done. */
  readonly isLost?: true;
  /** It is done; then its connection ends. */
  readonly isUnanswered?: true;
  /** A proxy sends it a second time, and the second answer is told. */
  readonly isTwice?: true;
  /** A dry run is taken for the change. */
  readonly isReal?: true;
}

/** Which call is meant. */
export interface CallName {
  readonly operation: string;
  /** Absent: either. */
  readonly isDry?: boolean;
}

export interface SellerOptions {
  readonly pageSize?: number;
  /** It declares no types of events. */
  readonly isSilent?: boolean;
  /** It has no operation of this name. */
  readonly without?: (typeof OPERATIONS)[number];
}

export interface SubscriptionSeller {
  readonly agentUrl: string;
  readonly log: Line[];
  /** Each of whose calls has this token is the principal `buyer`; another one is nobody. */
  readonly token: string;
  /** By the server, or, for tests of many steps, without it. */
  readonly direct: CallSeller;
  readonly add: (account: Account) => void;
  /** What the next call of this name meets; after that all is well again. */
  readonly next: (call: CallName, behaviour: Behaviour) => void;
  /** The same for every call that it is asked about; undefined: all is well. */
  readonly always: (behaviour: ((call: CallName, args: Args) => Behaviour | undefined) | undefined) => void;
  /** Another subscriber sets an entry of its own, whose control it has proven. */
  readonly put: (set: string, entry: Entry) => void;
  /** An entry is changed by the seller or by its subscriber. */
  readonly change: (set: string, subscriberId: string, members: Partial<Entry>) => void;
  readonly drop: (set: string, subscriberId: string) => void;
  readonly entries: (set: string) => readonly Entry[];
  /** An event of each type to each active entry that sends below `prefix`. */
  readonly emit: (set: string, prefix: string) => Promise<readonly Extract<Line, { what: 'event' }>[]>;
  readonly forgetKeys: () => void;
  readonly close: () => Promise<void>;
}

/** The set of the agent, as `entries` names it. */
export const AGENT_SET = 'agent buyer';

const TOKEN = 'token-of-the-buyer-of-this-test';

const toolResult = (reply: Exclude<Reply, { kind: 'nothing' }>): CallToolResult =>
  reply.kind === 'result'
    ? { content: [], structuredContent: reply.value }
    : { isError: true, content: [], structuredContent: { adcp_error: reply.error } };

export async function subscriptionSeller(options: SellerOptions = {}): Promise<SubscriptionSeller> {
  const { pageSize = 2, isSilent = false, without } = options;
  const key = newKey('subscriptions');
  const log: Line[] = [];
  const write = (line: Line): void => void log.push(line);
  const book = newBook((set, entries) => write({ what: 'set', set, entries }));
  let agentUrl = '';
  const desk = deskOf({ book, write, key, agentUrl: () => agentUrl, pageSize, isSilent });
  const operations = OPERATIONS.filter((operation) => operation !== without);
  const queued: { readonly call: CallName; readonly behaviour: Behaviour }[] = [];
  let always: ((call: CallName, args: Args) => Behaviour | undefined) | undefined;
  let calls = 0;

  function behaviourOf(call: CallName, args: Args): Behaviour {
    const at = queued.findIndex(
      ({ call: { operation, isDry } }) =>
        operation === call.operation && (isDry === undefined || isDry === call.isDry),
    );
    const [next] = at < 0 ? [] : queued.splice(at, 1);
    return next?.behaviour ?? always?.(call, args) ?? {};
  }

  async function ask(operation: string, args: Args, principal: string | undefined): Promise<Reply> {
    calls += 1;
    const call = calls;
    write({ what: 'asked', call, operation, args });
    const how = behaviourOf({ operation, isDry: args['dry_run'] === true }, args);
    const { dry_run: _dry, ...real } = args;
    const done = async (): Promise<Reply> => {
      await how.before?.();
      if (how.error) return { kind: 'error', error: how.error };
      if (how.isLost) return { kind: 'nothing' };
      const asked = how.isReal ? real : args;
      if (how.isTwice) await desk.ask(operation, asked, principal);
      const reply = await desk.ask(operation, asked, principal);
      await how.after?.();
      return how.isUnanswered ? { kind: 'nothing' } : reply;
    };
    const reply = await done();
    write({ what: 'answered', call, reply });
    return reply;
  }

  async function serveMcp(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const mcp = new McpServer({ name: 'seller', version: '1' });
    const principal = req.headers.authorization === `Bearer ${TOKEN}` ? 'buyer' : undefined;
    for (const operation of operations) {
      mcp.registerTool(operation, { inputSchema: z.looseObject({}) }, async (args) => {
        const reply = await ask(operation, args, principal);
        if (reply.kind !== 'nothing') return toolResult(reply);
        res.destroy();
        return { content: [] };
      });
    }
    const transport = new StreamableHTTPServerTransport({});
    res.once('close', () => void transport.close());
    await mcp.connect(transport);
    await transport.handleRequest(req, res);
  }

  function published(path: string): unknown {
    if (path === '/.well-known/brand.json') {
      const { origin } = new URL(agentUrl);
      return { agents: [{ type: 'sales', url: agentUrl, jwks_uri: `${origin}/jwks.json` }] };
    }
    return path === '/jwks.json' ? { keys: [key.publicJwk] } : undefined;
  }

  const server = await listening((req, res) => {
    if (req.url === '/mcp') {
      serveMcp(req, res).catch((error: unknown) => res.destroy(error as Error));
      return;
    }
    const document = published(req.url ?? '');
    res.writeHead(document === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify(document ?? { error: 'not found' }));
  });
  agentUrl = `${server.url}/mcp`;

  const direct: CallSeller = Object.assign(
    (async (_agentUrl, operation, args) => {
      const reply = await ask(operation, JSON.parse(JSON.stringify(args)) as Args, 'buyer');
      if (reply.kind === 'nothing') throw new Error('the connection has ended');
      return JSON.parse(JSON.stringify(toolResult(reply))) as unknown;
    }) satisfies CallSeller,
    { operations: async () => [...operations] },
  );

  const isKnown = (set: string): boolean => !set.startsWith('agent ');

  return {
    agentUrl,
    log,
    token: TOKEN,
    direct,
    add: book.add,
    next: (call, behaviour) => void queued.push({ call, behaviour }),
    always: (behaviour) => {
      always = behaviour;
    },
    put: (set, entry) => book.put(set, [...book.entries(set), { entry, proven: provenBy(entry) }]),
    change: (set, id, members) => {
      const changed = book.entries(set).map(({ entry, proven }) => {
        if (entry.subscriber_id !== id) return { entry, proven };
        const now: Entry = { ...entry, ...members };
        return { entry: now, proven: provenBy(now) };
      });
      book.put(set, changed);
    },
    drop: (set, id) =>
      book.put(
        set,
        book.entries(set).filter(({ entry }) => entry.subscriber_id !== id),
      ),
    entries: (set) => book.entries(set).map(({ entry }) => entry),
    emit: async (set, prefix) => {
      const owner = { agentUrl, ...(isKnown(set) && { accountId: set }) };
      const sent = book
        .entries(set)
        .filter(({ entry: { active, url } }) => active && url.startsWith(prefix))
        .flatMap(({ entry }) => entry.event_types.map((type) => ({ entry, type })));
      return Promise.all(
        sent.map(async ({ entry, type }) => {
          const event = eventOf(type, entry, owner) as { readonly idempotency_key: string };
          const { status } = await postEvent(entry, event, key);
          const line = {
            what: 'event',
            set,
            subscriberId: entry.subscriber_id,
            type,
            key: event.idempotency_key,
            ...(status !== undefined && { status }),
          } as const;
          write(line);
          return line;
        }),
      );
    },
    forgetKeys: desk.forget,
    close: async () => server[Symbol.asyncDispose](),
  };
}
