import type { Command } from 'commander';
import { createRegistry, type Registry, type RegistryOptions } from '../../registry/index.ts';
import { readSecret } from '../files.ts';
import { collect } from '../key-files.ts';
import { whole } from '../numbers.ts';
import { addVerb, type CliContext, type Report, type RunVerb } from '../shell.ts';
import { UsageError } from '../usage-error.ts';
import { diagnosticsReport, lines } from './diagnostics-report.ts';

interface RegistryFlags {
  readonly registry?: string;
  readonly tokenFile?: string;
  readonly tokenEnv?: string;
  readonly protocol?: string;
  readonly allowLoopback?: boolean;
  readonly json?: boolean;
}

interface DiagnosticsFlags extends RegistryFlags {
  readonly runId?: string;
  readonly maxRows?: number;
  readonly rowCapParameter?: string;
  readonly bodies?: boolean;
}

interface GetFlags extends RegistryFlags {
  readonly query?: readonly string[];
}

const URL_VARIABLE = 'REGISTRY_URL';

async function registryOf(
  flags: RegistryFlags,
  context: CliContext,
  more: Pick<RegistryOptions<string>, 'rowCapParameter'> = {},
): Promise<Registry<string>> {
  const baseUrl = flags.registry ?? context.env[URL_VARIABLE];
  if (baseUrl === undefined || baseUrl === '') {
    throw new UsageError(`Expected --registry URL, or ${URL_VARIABLE} in the environment.`);
  }
  const token = await readSecret({ file: flags.tokenFile, env: flags.tokenEnv }, context);
  return createRegistry<string>({
    baseUrl,
    token,
    protocol: flags.protocol,
    allowLoopback: flags.allowLoopback,
    ...more,
  });
}

async function badge(
  registry: Registry<string>,
  agentUrl: string,
  role: string,
  version: string | undefined,
): Promise<Report> {
  const answer = await registry.badge(agentUrl, role, version);
  return {
    ok: answer.verified,
    json: answer,
    text: (paint) =>
      [
        paint(answer.verified ? 'good' : 'bad', answer.verified ? 'verified' : 'not verified'),
        lines(Object.entries(answer).filter(([name]) => name !== 'verified')),
      ].join('\n'),
  };
}

async function diagnostics(
  registry: Registry<string>,
  agentUrl: string,
  { runId, maxRows, bodies = false, tokenFile, tokenEnv }: DiagnosticsFlags,
): Promise<Report> {
  if (tokenFile === undefined && tokenEnv === undefined) {
    throw new UsageError(
      "Expected --token-file FILE or --token-env NAME: diagnostics are for the agent's owner.",
    );
  }
  return diagnosticsReport(await registry.diagnostics(agentUrl, { runId, maxRows }), bodies);
}

function queryOf(pairs: readonly string[] = []): Record<string, string[]> {
  const query: Record<string, string[]> = Object.create(null) as Record<string, string[]>;
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw new UsageError(`--query: ${JSON.stringify(pair)} is not name=value.`);
    (query[pair.slice(0, at)] ??= []).push(pair.slice(at + 1));
  }
  return query;
}

async function get(registry: Registry<string>, path: string, flags: GetFlags): Promise<Report> {
  const answer = await registry.request('GET', path, { query: queryOf(flags.query) });
  return { ok: true, json: answer ?? null, text: () => JSON.stringify(answer ?? null, undefined, 2) };
}

function addRegistryVerb(
  parent: Command,
  name: string,
  summary: string,
  examples: readonly string[],
): Command {
  return addVerb(parent, name, summary, examples)
    .option('--registry <url>', `base URL of the registry; ${URL_VARIABLE} where none is given`)
    .option('--token-file <file>', 'file with the API key or JWT')
    .option('--token-env <name>', 'environment variable with the API key or JWT')
    .option('--protocol <name>', 'name in wire identifiers (default: proto)')
    .option('--allow-loopback', 'allow http and private addresses');
}

/** `registry badge|diagnostics|get`. */
export function addRegistry(parent: Command, run: RunVerb): void {
  addRegistryVerb(parent, 'badge', "embed snippets of an agent's badge", [
    'registry badge https://seller.example/mcp sales 3.0 --registry https://registry.example',
    'registry badge https://seller.example/mcp sales --json',
  ])
    .argument('<agent-url>', 'as it is registered')
    .argument('<role>', 'badge role')
    .argument('[version]', 'protocol release MAJOR.MINOR; the legacy unpinned badge without it')
    .action((agentUrl: string, role: string, version: string | undefined, flags: RegistryFlags) =>
      run(flags, async (context) => await badge(await registryOf(flags, context), agentUrl, role, version)),
    );
  addRegistryVerb(parent, 'diagnostics', 'failing steps of a compliance run', [
    'registry diagnostics https://seller.example/mcp --token-env REGISTRY_TOKEN',
    'registry diagnostics https://seller.example/mcp --run-id 7c1d… --bodies --json --token-file token',
  ])
    .argument('<agent-url>', 'as it is registered')
    .option('--run-id <uuid>', 'of this run (default: the latest)')
    .option('--max-rows <n>', 'at most so many, up to 1000', whole(1), 500)
    .option('--row-cap-parameter <name>', 'query parameter of that cap (default: limit)')
    .option('--bodies', 'print requests and responses too: they may hold account and brand identifiers')
    .action((agentUrl: string, flags: DiagnosticsFlags) =>
      run(flags, async (context) => {
        const { rowCapParameter } = flags;
        return await diagnostics(await registryOf(flags, context, { rowCapParameter }), agentUrl, flags);
      }),
    );
  addRegistryVerb(parent, 'get', 'any other endpoint', [
    'registry get /api/registry/agents --query limit=20 --registry https://registry.example',
  ])
    .argument('<path>', 'from the base URL on, beginning with /')
    .option('--query <name=value>', 'query parameter; repeatable', collect)
    .action((path: string, flags: GetFlags) =>
      run(flags, async (context) => await get(await registryOf(flags, context), path, flags)),
    );
}
