// The command `proto-webhooks state`: lists the URLs that sellers were given, and asks one seller if it uses them.
import { type Command, Option } from 'commander';
import { loadHashes } from '../../crypto/native-hashes.ts';
import type { CallSeller } from '../../registrations/call-seller.ts';
import { checkedPage } from '../../registrations/told/check.ts';
import { RENEW_AFTER_MS } from '../../registrations/told/own-routes.ts';
import { stateOf } from '../../registrations/told/state.ts';
import type { StatePage, UrlCheckError, UrlState } from '../../registrations/told/state-types.ts';
import { sleep } from '../../shared/time-limits.ts';
import { readSecret } from '../files.ts';
import { addStoreFlags, openStore, type StoreFlags } from '../inbox/open-store.ts';
import { isSellerKnown, UNKNOWN_SELLER } from '../known-seller.ts';
import {
  addVerb,
  type CliContext,
  inLines,
  pageBehind,
  type Paint,
  type Report,
  type RunVerb,
  UsageError,
  whole,
} from '../shell.ts';

interface StateFlags extends StoreFlags {
  readonly seller?: string;
  readonly limit: number;
  readonly after?: string;
  readonly check?: boolean;
  readonly tokenFile?: string;
  readonly tokenEnv?: string;
  readonly transport: 'tool' | 'agent';
  readonly allowLoopback?: boolean;
  readonly json?: boolean;
}

/**
 * The largest number of names (of calls, media buys and so on) that are printed for one URL; `--json` has up to 100.
 */
const SHOWN = 5;

const iso = (ms: number): string => new Date(ms).toISOString();

const isoOf = (times: Readonly<Record<string, number | undefined>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(times).flatMap(([name, ms]) => (ms === undefined ? [] : [[name, iso(ms)] as const])),
  );

function plain({ givenAt, heardAt, retiredAt, credentialsMadeAt, quietAt, ...url }: UrlState): object {
  return { ...url, ...isoOf({ givenAt, heardAt, retiredAt, credentialsMadeAt, quietAt }) };
}

function named(what: string, count: number, first: readonly string[]): readonly string[] {
  if (count === 0) return [];
  const more = count > SHOWN ? ` and ${count - SHOWN} more` : '';
  return [`           ${count} ${what}: ${first.slice(0, SHOWN).join(', ')}${more}`];
}

function useOf({ drift, retiredAt, quietAt }: UrlState, isQuiet: boolean): string {
  if (drift) return 'differs';
  if (retiredAt !== undefined) return 'retired';
  if (quietAt === undefined) return 'used';
  return isQuiet ? 'quiet' : 'left';
}

function urlLines(url: UrlState, asOf: number, paint: Paint): readonly string[] {
  const { agentUrl, base, route, scheme, heardAt, credentialsMadeAt, counts, quietAt, moving } = url;
  const isQuiet = quietAt !== undefined && quietAt <= asOf;
  const use = useOf(url, isQuiet);
  const heard = heardAt === undefined ? 'never heard' : `heard ${iso(heardAt)}`;
  const due = url.renewalDue ? ' (due for renewal)' : '';
  const made = credentialsMadeAt === undefined ? '' : `, credentials of ${iso(credentialsMadeAt)}${due}`;
  return [
    `${paint(url.drift ? 'bad' : isQuiet ? 'dim' : 'good', use.padEnd(10))} ${base}/… (${route})  ${scheme}  ${agentUrl}`,
    `           given ${iso(url.givenAt)}, ${heard}${made}${quietAt === undefined ? '' : `, quiet from ${iso(quietAt)}`}`,
    ...named('calls', counts.operations, url.operations),
    ...named('media buys', counts.mediaBuys, url.mediaBuys),
    ...named('subscriptions', counts.subscriptions, url.subscriptions),
    ...moving.slice(0, SHOWN).map(movingLine),
    ...(moving.length > SHOWN ? [`           and ${moving.length - SHOWN} more: --json has up to 100`] : []),
  ];
}

const movingLine = ({ mediaBuyId, state, reason }: UrlState['moving'][number]): string =>
  `           moving ${mediaBuyId}: ${state.replace('_', ' ')}${reason === undefined ? '' : `: ${reason}`}`;

function driftLines({ drift }: UrlState): readonly string[] {
  if (!drift) return [];
  const { counts, mediaBuys, subscriptions, shown } = drift;
  return [
    ...named('media buys differ', counts.mediaBuys, mediaBuys),
    ...named('subscriptions differ', counts.subscriptions, subscriptions),
    ...shown.map((text) => `           shown: ${text}`),
  ];
}

function checkLines({ check }: StatePage, paint: Paint): readonly string[] {
  if (!check) return [];
  const { compared, errors } = check;
  const failed = inLines(errors).map(({ agentUrl, of, code, message }) =>
    paint('bad', `Not compared: ${WHAT[of]} of ${agentUrl}: ${code}: ${message}`),
  );
  return [
    ...failed,
    `Compared: ${compared.mediaBuys} media buys, ${compared.subscriptions} subscriptions. What a seller does not show cannot be compared.`,
  ];
}

const WHAT: Readonly<Record<UrlCheckError['of'], string>> = {
  mediaBuys: 'media buys',
  subscriptions: 'subscriptions',
};

function textOf(page: StatePage, { after }: Pick<StateFlags, 'after'>, paint: Paint): string {
  const { urls, asOf, next } = page;
  const isPart = after !== undefined || next !== undefined;
  const none = isPart
    ? 'No URL of this page is in use: all are retired.'
    : 'No seller was given a URL that is in use.';
  return [
    ...inLines(urls).flatMap((url) => [...urlLines(url, asOf, paint), ...driftLines(url)]),
    ...(urls.length === 0 ? [none] : []),
    ...checkLines(page, paint),
    ...(next === undefined ? [] : [`More: --after '${next}'`]),
  ].join('\n');
}

/** Makes the client that calls the seller. @throws UsageError */
async function callerOf(flags: StateFlags, context: CliContext): Promise<CallSeller> {
  const { tokenFile, tokenEnv, transport, allowLoopback } = flags;
  const token = await readSecret({ file: tokenFile, env: tokenEnv }, context);
  const options = { allowLoopback, ...(token !== undefined && { auth: { type: 'bearer' as const, token } }) };
  try {
    if (transport === 'agent') return (await import('../../registrations/a2a.ts')).a2aCaller(options);
    return (await import('../../registrations/mcp.ts')).mcpCaller(options);
  } catch (error) {
    if (!/MODULE_NOT_FOUND/.test(String((error as NodeJS.ErrnoException).code))) throw error;
    const name = transport === 'agent' ? '@a2a-js/sdk' : '@modelcontextprotocol/sdk';
    throw new UsageError(`--check: the package ${name} is not installed. Run npm install ${name}.`);
  }
}

/** The time limit for an answer of the seller. Ms. */
const CALL_MS = 60_000;

async function state(flags: StateFlags, context: CliContext): Promise<Report> {
  const { seller: agentUrl, limit, after, check } = flags;
  if (check && agentUrl === undefined) {
    throw new UsageError('--check needs --seller. A token is of one seller, and is sent to no other.');
  }
  const call = check ? await callerOf(flags, context) : undefined;
  const { registrations, close } = await openStore(flags, context);
  try {
    const isKnown = await isSellerKnown(registrations, agentUrl);
    const rows = { registrations, hashes: await loadHashes(), renewAfterMs: RENEW_AFTER_MS };
    const read = await pageBehind(stateOf(rows, { agentUrl, limit, after }));
    const page = call
      ? await checkedPage({ ...rows, call, callMs: CALL_MS, sleep }, read, new AbortController().signal)
      : read;
    const { urls, asOf, ...rest } = page;
    const isRight = urls.every(({ drift }) => !drift) && (page.check?.errors ?? []).length === 0;
    return {
      ok: isKnown && isRight,
      json: { urls: urls.map(plain), asOf: iso(asOf), ...rest },
      text: (paint) => (isKnown ? textOf(page, flags, paint) : UNKNOWN_SELLER),
    };
  } finally {
    await close();
  }
}

export function addState(parent: Command, run: RunVerb): void {
  const verb = addVerb(parent, 'state', 'URLs that sellers were given, and who is on each', [
    'state --sqlite webhooks.db',
    'state --postgres --json',
    'state --redis redis://localhost --seller https://seller.example/mcp --check --token-env SELLER_TOKEN',
  ])
    .option('--seller <url>', 'only of this agent URL')
    .option('--limit <n>', 'at most this many, up to 1000', whole(1), 100)
    .option('--after <cursor>', 'the next page, after this cursor')
    .option('--check', 'ask --seller where it sends, and compare that with what it was told')
    .option('--token-file <file>', 'file with the bearer token for --check')
    .option('--token-env <name>', 'environment variable with that token')
    .addOption(
      new Option('--transport <name>', 'by which --check asks: MCP or A2A')
        .choices(['tool', 'agent'])
        .default('tool'),
    )
    .option('--allow-loopback', '--check may call a seller on this machine');
  addStoreFlags(verb).action((flags: StateFlags) => run(flags, (context) => state(flags, context)));
}
