import { type Command, Option } from 'commander';
import type { EditionName } from '../../edition.ts';
import { protocolFor } from '../../protocol.ts';
import type { Jwk } from '../../sender/sign.ts';
import { collect, isPrivate, readKeys } from '../key-files.ts';
import { requireHttpUrl, whole } from '../numbers.ts';
import { addVerb, type CliContext, type Paint, type Report, type RunVerb, type Style } from '../shell.ts';
import { UsageError } from '../usage-error.ts';
import type { ProbeResult } from './case.ts';
import { chainHints } from './chain-hints.ts';
import { hintOf } from './hints.ts';
import { identityOf, type IdentityFlags } from './identity.ts';
import { createKit, type ProbeKit, rolesOf } from './kit.ts';
import { PROBE_CASES, probeReceiver } from './probe.ts';

interface ProbeFlags extends IdentityFlags {
  readonly keys: readonly string[];
  readonly to?: string;
  readonly edition?: EditionName;
  readonly maxBodyBytes: number;
  readonly rate?: number;
  readonly timeoutMs: number;
  readonly only?: readonly string[];
  readonly printConfig?: boolean;
  readonly json?: boolean;
}

const MARKS: Readonly<Record<ProbeResult['verdict'], readonly [Style, string]>> = {
  pass: ['good', 'pass'],
  fail: ['bad', 'FAIL'],
  skipped: ['dim', 'skip'],
  undecided: ['warn', '?'],
};

function resultLine({ name, sends, expected, answered, verdict, why }: ProbeResult, paint: Paint): string {
  const [style, mark] = MARKS[verdict];
  const detail =
    verdict === 'pass'
      ? ''
      : `\n      ${paint(style, `${why}${verdict === 'fail' ? `; expected ${expected}` : ''}`)}`;
  return `${paint(style, mark.padEnd(5))} ${name.padEnd(24)} ${sends}  ${paint('dim', `-> ${answered}`)}${detail}`;
}

function countsOf(results: readonly ProbeResult[]): Record<ProbeResult['verdict'], number> {
  const counts = { pass: 0, fail: 0, skipped: 0, undecided: 0 };
  for (const { verdict } of results) counts[verdict] += 1;
  return counts;
}

function reportOf(url: string, results: readonly ProbeResult[], hint: readonly string[]): Report {
  const counts = countsOf(results);
  const { pass, fail, skipped, undecided } = counts;
  const summary = `${pass} passed, ${fail} failed, ${skipped} skipped${undecided === 0 ? '' : `, ${undecided} undecided`}`;
  return {
    ok: fail === 0 && pass > 0,
    json: {
      url,
      ok: fail === 0 && pass > 0,
      counts,
      results,
      ...(hint.length > 0 && { hint: hint.join('\n') }),
    },
    text: (paint) =>
      [
        ...results.map((result) => resultLine(result, paint)),
        '',
        ...hint,
        ...(hint.length > 0 ? [''] : []),
        paint(fail === 0 ? 'good' : 'bad', summary),
      ].join('\n'),
  };
}

/** The keys to sign with, and which of them signs where a case does not care. */
async function signingKeys(
  flags: ProbeFlags,
  context: CliContext,
): Promise<{ readonly keys: readonly Jwk[]; readonly first: Jwk }> {
  const keys = await readKeys(flags.keys, context);
  if (!keys.every(isPrivate))
    throw new UsageError(
      `${flags.keys.join(', ')}: a key has no private half (d). Expected what \`proto-webhooks keys generate --probe --out FILE\` writes.`,
    );
  const roles = rolesOf(keys, protocolFor(flags.protocol).name);
  const first = roles.ed25519 ?? roles.p256;
  if (!first)
    throw new UsageError(
      `${flags.keys.join(', ')}: no key of purpose webhook-signing. Expected at least one.`,
    );
  return { keys, first };
}

/** Nothing answers: a mistake in the command, not a fault of the receiver. */
async function requireReachable(kit: ProbeKit): Promise<void> {
  const { outcome } = await kit.send(await kit.sign('{}', { params: { tag: 'probe' } }));
  if (outcome === 'connection_error' || outcome === 'timeout') {
    throw new UsageError(
      `${kit.url}: nothing answers there (${outcome.replace('_', ' ')}). Expected a running receiver; --to names another address to connect to.`,
    );
  }
}

function requireCases(wanted: readonly string[] = []): void {
  const unknown = wanted.find((name) => !PROBE_CASES.some((probe) => probe.name === name));
  if (unknown !== undefined)
    throw new UsageError(
      `--only ${unknown}: no such case. Expected one of ${PROBE_CASES.map(({ name }) => name).join(', ')}.`,
    );
}

async function probe(url: string, flags: ProbeFlags, context: CliContext): Promise<Report> {
  requireHttpUrl('URL', url);
  if (flags.to !== undefined) requireHttpUrl('--to', flags.to);
  requireCases(flags.only);
  const { keys, first } = await signingKeys(flags, context);
  const identity = await identityOf(flags, keys);
  try {
    if (flags.printConfig)
      return { ok: true, json: { config: identity.config }, text: () => identity.config };
    const { to, maxBodyBytes, rate, timeoutMs, edition = '3.0' } = flags;
    const protocol = protocolFor(flags.protocol).name;
    const kit = createKit(
      { url, to, protocol, edition, maxBodyBytes, rate, timeoutMs, keys, now: context.now },
      first,
    );
    await requireReachable(kit);
    const results = await probeReceiver(kit, flags.only);
    const hint = hintOf(results, identity);
    if (hint.length === 0 || flags.agentUrl === undefined) return reportOf(url, results, hint);
    return reportOf(url, results, [...hint, ...(await chainHints(flags.agentUrl, flags, keys, context))]);
  } finally {
    await identity.close();
  }
}

/** `vectors probe URL`. */
export function addProbe(parent: Command, run: RunVerb): void {
  addVerb(
    parent,
    'probe',
    'send a running receiver every kind of delivery, good and bad, and grade its answers',
    [
      'keys generate --probe --out probe-keys.json > probe-jwks.json',
      'vectors probe http://127.0.0.1:3000/webhooks/proto --keys probe-keys.json --print-config',
      'vectors probe http://127.0.0.1:3000/webhooks/proto --keys probe-keys.json --fake-seller 4555',
      'vectors probe https://test.buyer.example/hook --keys probe-keys.json --agent-url https://probe.buyer.example/mcp --json',
    ],
  )
    .argument('<url>', 'publicUrl of the receiver: exactly what sellers are given')
    .requiredOption('--keys <file>', 'private keys, of `keys generate --probe`; repeatable', collect)
    .option('--agent-url <url>', 'the receiver finds the keys by this agent, whose brand.json you host')
    .option(
      '--fake-seller <port>',
      'the receiver finds the keys by http://127.0.0.1:<port>/mcp, which is served meanwhile',
      whole(0),
    )
    .option(
      '--print-config',
      'print what the receiver under test has to be configured with, and send nothing',
    )
    .option('--to <url>', 'where to connect, if not where URL says')
    .option('--protocol <name>', 'name in wire identifiers (default: proto)')
    .addOption(
      new Option('--edition <name>', 'edition that the receiver has for this sender (default: 3.0)').choices([
        '3.0',
        '3.1',
        '3.2',
      ]),
    )
    .option('--max-body-bytes <n>', 'limit of the receiver', whole(1), 1_048_576)
    .option('--rate <n>', 'send so many deliveries more, and expect 429 among them', whole(1))
    .option('--timeout-ms <n>', 'for one answer', whole(1), 15_000)
    .option('--only <case>', 'only this case; repeatable', collect)
    .action((url: string, flags: ProbeFlags) => run(flags, (context) => probe(url, flags, context)));
}
