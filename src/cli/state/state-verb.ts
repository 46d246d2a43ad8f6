import type { Command } from 'commander';
import { loadHashes } from '../../crypto/native-hashes.ts';
import { stateOf } from '../../registrations/told/state.ts';
import type { StatePage, UrlState } from '../../registrations/told/state-types.ts';
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

interface StateFlags extends StoreFlags {
  readonly seller?: string;
  readonly limit: number;
  readonly after?: string;
  readonly json?: boolean;
}

/** Names of each kind that are printed; `--json` has up to 100. */
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

function urlLines(url: UrlState, asOf: number, paint: Paint): readonly string[] {
  const { agentUrl, base, route, scheme, heardAt, credentialsMadeAt, counts, quietAt, moving } = url;
  const isQuiet = quietAt !== undefined && quietAt <= asOf;
  const use =
    url.retiredAt !== undefined ? 'retired' : quietAt === undefined ? 'used' : isQuiet ? 'quiet' : 'left';
  const heard = heardAt === undefined ? 'never heard' : `heard ${iso(heardAt)}`;
  const made = credentialsMadeAt === undefined ? '' : `, credentials of ${iso(credentialsMadeAt)}`;
  return [
    `${paint(isQuiet ? 'dim' : 'good', use.padEnd(10))} ${base}/… (${route})  ${scheme}  ${agentUrl}`,
    `           given ${iso(url.givenAt)}, ${heard}${made}`,
    ...named('calls', counts.operations, url.operations),
    ...named('media buys', counts.mediaBuys, url.mediaBuys),
    ...named('subscriptions', counts.subscriptions, url.subscriptions),
    ...moving
      .slice(0, SHOWN)
      .map(
        ({ mediaBuyId, state, reason }) =>
          `           moving ${mediaBuyId}: ${state.replace('_', ' ')}${reason === undefined ? '' : `: ${reason}`}`,
      ),
  ];
}

function textOf(page: StatePage, paint: Paint): string {
  const { urls, asOf, next } = page;
  return [
    ...urls.flatMap((url) => urlLines(inLines(url), asOf, paint)),
    ...(urls.length === 0 ? ['No seller was given a URL.'] : []),
    ...(next === undefined ? [] : [`More: --after '${next}'`]),
  ].join('\n');
}

async function state(flags: StateFlags, context: CliContext): Promise<Report> {
  const { seller: agentUrl, limit, after } = flags;
  const { registrations, close } = await openStore(flags, context);
  try {
    const page = await pageBehind(
      stateOf({ registrations, hashes: await loadHashes() }, { agentUrl, limit, after }),
    );
    const { urls, asOf, next } = page;
    return {
      ok: true,
      json: { urls: urls.map(plain), asOf: iso(asOf), ...(next !== undefined && { next }) },
      text: (paint) => textOf(page, paint),
    };
  } finally {
    await close();
  }
}

/** `state`. */
export function addState(parent: Command, run: RunVerb): void {
  const verb = addVerb(parent, 'state', 'URLs that sellers were given, and who is on each', [
    'state --sqlite webhooks.db',
    'state --postgres --json',
    'state --redis redis://localhost --seller https://seller.example/mcp',
  ])
    .option('--seller <url>', 'only of this agent URL')
    .option('--limit <n>', 'at most this many, up to 1000', whole(1), 100)
    .option('--after <cursor>', 'the next page, after this cursor');
  addStoreFlags(verb).action((flags: StateFlags) => run(flags, (context) => state(flags, context)));
}
