// The commands `proto-webhooks registry …`: read badges, diagnostics of compliance runs, and any other endpoint of the
// registry.
import type { Command } from 'commander';
import {
  createRegistry,
  type DiagnosticRow,
  type Diagnostics,
  type Registry,
  type RegistryOptions,
} from '../../registry/index.ts';
import { collect, readSecret } from '../files.ts';
import {
  addVerb,
  type CliContext,
  inLine,
  type Paint,
  type Report,
  type RunVerb,
  UsageError,
  whole,
} from '../shell.ts';

type Fact = readonly [name: string, value: unknown];

const GAP = '  ';

/** Indents the text, to print it below its heading. */
const indented = (text: string): string => text.replaceAll(/^/gm, GAP);

/** Returns names and values in two columns, one pair per line. Absent values are left out. */
export function lines(facts: readonly Fact[]): string {
  const shown = facts.filter(([, value]) => value !== undefined && value !== null);
  const width = Math.max(0, ...shown.map(([name]) => inLine(name).length));
  return shown
    .map(([name, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      return `${inLine(name).padEnd(width)}${GAP}${inLine(text)}`;
    })
    .join('\n');
}

type Row = DiagnosticRow<string>;

/**
 * True for the names of members that contain requests and responses, which may hold identifiers of accounts and brands.
 */
const isBody = (name: string): boolean => name.endsWith('_jsonb') && name !== 'failed_validations_jsonb';

const withoutBodies = (row: Row): object =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !isBody(name)));

const isAboutWebhooks = ({ storyboard_id, phase_id, step_id, task, error_text }: Row): boolean =>
  [storyboard_id, phase_id, step_id, task, error_text].some((text) =>
    /webhook|push.?notification/i.test(text ?? ''),
  );

/** The longest JSON of a member that is printed, in characters. */
const MAX_MEMBER = 4000;
/** The longest JSON of a member that is printed beside its name, in characters. */
const MAX_BESIDE = 80;

const isShort = ([, value]: Fact): boolean => JSON.stringify(value).length <= MAX_BESIDE;

/** Returns a member's name, and the member's JSON below it. */
function block([name, value]: Fact): string {
  const json = JSON.stringify(value, undefined, 2);
  const shown = json.slice(0, MAX_MEMBER).split('\n').map(inLine).join('\n');
  const rest = json.length > MAX_MEMBER ? ' … (--json prints all)' : '';
  return `${inLine(name)}\n${indented(`${shown}${rest}`)}`;
}

function responseOf({ response_status, duration_ms }: Row): string | undefined {
  if (typeof response_status !== 'number') return undefined;
  return `${response_status}${typeof duration_ms === 'number' ? ` after ${duration_ms} ms` : ''}`;
}

function rowText(row: Row, bodies: boolean, paint: Paint): string {
  const passed = row.step_passed === true;
  const step = [row.storyboard_id, row.phase_id, row.step_id].filter((part) => part).join(' / ');
  const facts: readonly Fact[] = [
    ['task', row.task],
    ['captured', row.captured_at],
    ['request', row.request_url],
    ['response', responseOf(row)],
    ['served by', row.served_by_agent_url],
    ['error', row.error_text],
    ['extraction', [row.extraction_path, row.extraction_note].filter((part) => part).join(': ') || undefined],
    ['see', isAboutWebhooks(row) ? 'proto-webhooks explain: why a captured delivery was refused' : undefined],
  ];
  const members = [
    ['failed', row.failed_validations_jsonb] as const,
    ...(bodies ? Object.entries(row).filter(([name]) => isBody(name)) : []),
  ].filter(([, value]) => value !== undefined && value !== null);
  const short = members.filter(isShort).map(([name, value]): Fact => [name, JSON.stringify(value)]);
  const below = [
    lines([...facts, ...short]),
    ...members.filter((member) => !isShort(member)).map(block),
  ].filter((part) => part !== '');
  const what = inLine(step === '' ? `row ${row.id ?? ''}` : step);
  return [
    `${paint(passed ? 'good' : 'bad', passed ? 'pass' : 'FAIL')}  ${what}`,
    ...below.map(indented),
  ].join('\n');
}

/** Returns the heading above the rows, with the number of rows. */
function heading({ agent_url, run_id, count, diagnostics }: Diagnostics<string>): string {
  const shown = diagnostics.length === count ? '' : `, ${diagnostics.length} of them here`;
  const steps = count === 0 ? 'no failing step' : `${count} failing ${count === 1 ? 'step' : 'steps'}`;
  return `Agent ${inLine(agent_url)}\nRun ${inLine(run_id)}: ${steps}${shown}`;
}

/** Returns the report of the failing steps of a run. @param bodies if true, requests and responses are printed too. */
export function diagnosticsReport(answer: Diagnostics<string>, bodies: boolean): Report {
  const rows = answer.diagnostics;
  const hint = 'Requests and responses were left out; --bodies prints them.';
  return {
    ok: rows.every(({ step_passed }) => step_passed === true),
    json: bodies ? answer : { ...answer, diagnostics: rows.map(withoutBodies) },
    text: (paint) =>
      [
        heading(answer),
        ...rows.map((row) => rowText(row, bodies, paint)),
        ...(rows.length > 0 && !bodies ? [hint] : []),
      ].join('\n\n'),
  };
}

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
    .option('--registry <url>', `base URL of the registry (default: ${URL_VARIABLE})`)
    .option('--token-file <file>', 'file with the API key or JWT')
    .option('--token-env <name>', 'environment variable with the API key or JWT')
    .option('--protocol <name>', 'only this name in wire identifiers (default: proto and adcp)')
    .option('--allow-loopback', 'allow http and private addresses');
}

/** Adds the commands `registry badge|diagnostics|get`. */
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
    .option('--max-rows <n>', 'at most this many, up to 1000', whole(1), 500)
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
    .argument('<path>', 'path below the base URL, beginning with /')
    .option('--query <name=value>', 'query parameter; repeatable', collect)
    .action((path: string, flags: GetFlags) =>
      run(flags, async (context) => await get(await registryOf(flags, context), path, flags)),
    );
}
