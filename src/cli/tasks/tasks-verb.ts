// The command `proto-webhooks tasks`: lists the operations (calls of sellers) in a store by state.
import { type Command, Option } from 'commander';
import { loadHashes } from '../../crypto/native-hashes.ts';
import { listOperations, type OperationQuery } from '../../registrations/list-operations.ts';
import type { OperationSeen } from '../../registrations/operation.ts';
import { addStoreFlags, openStore, type StoreFlags } from '../inbox/open-store.ts';
import {
  addVerb,
  type CliContext,
  inLines,
  pageBehind,
  type Paint,
  type Report,
  type RunVerb,
  whole,
} from '../shell.ts';

interface TaskFlags extends StoreFlags {
  readonly state: NonNullable<OperationQuery['state']>;
  readonly sender?: string;
  readonly limit: number;
  readonly after?: string;
  readonly json?: boolean;
}

const STATES: readonly TaskFlags['state'][] = [
  'watched',
  'unresolved',
  'orphaned',
  'calling',
  'open',
  'refused',
  'ended',
];

/**
 * The states of operations whose call the seller has not answered. An operation that was adopted (its call was made
 * elsewhere) may have no status either. That call was answered, so its state is not listed here.
 */
const NOT_ANSWERED: ReadonlySet<OperationSeen['state']> = new Set(['calling', 'orphaned']);

const plain = ({ createdAt, ...operation }: OperationSeen): object => ({
  ...operation,
  createdAt: new Date(createdAt).toISOString(),
});

function taskLine(operation: OperationSeen, state: TaskFlags['state'], paint: Paint): string {
  const { agentUrl, taskType, taskId, operationId, status, ref, createdAt } = inLines(operation);
  const isLost = state === 'unresolved' || state === 'orphaned';
  const ids = [
    `task ${taskId ?? '(none)'}`,
    `operation ${operationId}`,
    ...(ref === undefined ? [] : [`ref ${ref}`]),
  ];
  return `${paint(isLost ? 'bad' : 'warn', state.padEnd(10))} ${new Date(createdAt).toISOString()}  ${taskType}  ${status ?? (NOT_ANSWERED.has(operation.state) ? 'not answered' : 'no status reported')}  ${agentUrl}\n           ${ids.join(', ')}`;
}

async function list(flags: TaskFlags, context: CliContext): Promise<Report> {
  const { state, sender, limit, after } = flags;
  const { registrations, close } = await openStore(flags, context);
  try {
    const { operations, next } = await pageBehind(
      listOperations(registrations, await loadHashes(), {
        state,
        limit,
        ...(sender !== undefined && { agentUrl: sender }),
        ...(after !== undefined && { after }),
      }),
    );
    const more = next === undefined ? [] : [`More: --after '${next}'`];
    const none = operations.length === 0 ? [`No ${state} tasks.`] : [];
    return {
      ok: true,
      json: { tasks: operations.map(plain), ...(next !== undefined && { next }) },
      text: (paint) =>
        [...operations.map((operation) => taskLine(operation, state, paint)), ...none, ...more].join('\n'),
    };
  } finally {
    await close();
  }
}

export function addTasks(parent: Command, run: RunVerb): void {
  const verb = addVerb(parent, 'tasks', 'tasks and calls that were registered with sellers, by state', [
    'tasks --sqlite webhooks.db',
    'tasks --state unresolved --postgres --json',
    'tasks --state orphaned --redis redis://localhost --sender https://seller.example/mcp',
  ])
    .addOption(new Option('--state <name>', 'which').choices(STATES).default('watched'))
    .option('--sender <url>', 'only of this agent URL')
    .option('--limit <n>', 'at most this many, up to 1000', whole(1), 100)
    .option('--after <cursor>', 'the next page, after this cursor');
  addStoreFlags(verb).action((flags: TaskFlags) => run(flags, (context) => list(flags, context)));
}
