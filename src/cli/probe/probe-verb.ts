// The command `proto-webhooks vectors probe`: reads keys, probes each URL of a receiver, and prints the results.
import { setTimeout as delay } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { EDITION_NAMES, type EditionName } from '../../shared/editions.ts';
import { protocolsFor } from '../../shared/wire-names.ts';
import type { Jwk } from '../../sender/sign.ts';
import { collect, isPrivate, readKeys } from '../files.ts';
import {
  addVerb,
  type CliContext,
  inLines,
  type Paint,
  type Report,
  requireHttpUrl,
  type RunVerb,
  type Style,
  UsageError,
  whole,
} from '../shell.ts';
import { chainHints, hintOf, type Identity, type IdentityFlags, identityOf } from './identity.ts';
import { OTHER_URL_CASE } from './cases-refused.ts';
import { createKit, type ProbeKit, type ProbeResult, rolesOf } from './probe-kit.ts';
import {
  awaitKeys,
  type NameTried,
  type Patience,
  PROBE_CASES,
  type ProbeStart,
  probeReceiver,
  takenKit,
} from './probe.ts';

const MARKS: Readonly<Record<ProbeResult['verdict'], readonly [Style, string]>> = {
  pass: ['good', 'pass'],
  fail: ['bad', 'FAIL'],
  skipped: ['dim', 'skip'],
  undecided: ['warn', '?'],
};

function resultLine(result: ProbeResult, paint: Paint): string {
  const { name, sends, expected, answered, verdict, why, note } = result;
  const [style, mark] = MARKS[verdict];
  const explanation =
    verdict === 'pass' ? note : `${why}${verdict === 'fail' ? `; expected ${expected}` : ''}`;
  const detail =
    explanation === undefined ? '' : `\n      ${paint(verdict === 'pass' ? 'dim' : style, explanation)}`;
  return `${paint(style, mark.padEnd(5))} ${name.padEnd(33)} ${sends}  ${paint('dim', `-> ${answered}`)}${detail}`;
}

function countsOf(results: readonly ProbeResult[]): Record<ProbeResult['verdict'], number> {
  const counts = { pass: 0, fail: 0, skipped: 0, undecided: 0 };
  for (const { verdict } of results) counts[verdict] += 1;
  return counts;
}

/**
 * Returns the output line for one tried protocol name. It is not counted as a test case, because a receiver may accept
 * only one name.
 */
function nameLine({ protocol, answered, goesOn }: NameTried, paint: Paint): string {
  const end = goesOn ? '; the cases use it' : '';
  return `${paint('dim', 'name')}  ${protocol.padEnd(33)} a good delivery under this name  ${paint('dim', `-> ${answered}${end}`)}`;
}

/** Returns the report about one URL of a receiver, which says if the receiver passed. */
export function reportOf(
  url: string,
  results: readonly ProbeResult[],
  hint: readonly string[],
  names: readonly NameTried[] = [],
): Report {
  const counts = countsOf(results);
  const { pass, fail, skipped, undecided } = counts;
  const summary = `${pass} passed, ${fail} failed, ${skipped} skipped${undecided === 0 ? '' : `, ${undecided} undecided`}`;
  return {
    ok: fail === 0 && pass > 0,
    json: {
      url,
      ok: fail === 0 && pass > 0,
      counts,
      ...(names.length > 0 && { names }),
      results,
      ...(hint.length > 0 && { hint: hint.join('\n') }),
    },
    text: (paint) =>
      [
        ...inLines(names).map((name) => nameLine(name, paint)),
        ...inLines(results).map((result) => resultLine(result, paint)),
        '',
        ...hint,
        ...(hint.length > 0 ? [''] : []),
        paint(fail === 0 ? 'good' : 'bad', summary),
      ].join('\n'),
  };
}

interface ProbeFlags extends IdentityFlags {
  readonly keys: readonly string[];
  readonly to?: string;
  readonly edition?: EditionName;
  readonly maxBodyBytes: number;
  readonly rate?: number;
  readonly hostCheck?: 'strict' | 'off';
  readonly timeoutMs: number;
  readonly waitMs: number;
  readonly only?: readonly string[];
  readonly printConfig?: boolean;
  readonly json?: boolean;
}

/** Returns the keys in the given files, and the one that signs unless a test case chooses another. */
async function signingKeys(
  flags: ProbeFlags,
  context: CliContext,
): Promise<{ readonly keys: readonly Jwk[]; readonly first: Jwk }> {
  const keys = await readKeys(flags.keys, context);
  if (!keys.every(isPrivate))
    throw new UsageError(
      `${flags.keys.join(', ')}: a key has no private part (d). Expected a file of \`proto-webhooks keys generate --probe --out FILE\`.`,
    );
  const roles = rolesOf(keys, protocolsFor(flags.protocol));
  const first = roles.ed25519 ?? roles.p256;
  if (!first)
    throw new UsageError(
      `${flags.keys.join(', ')}: no key of purpose webhook-signing. Expected at least one.`,
    );
  return { keys, first };
}

/** Sends one delivery. @throws UsageError if nothing answers, because then the URL is wrong, and not the receiver. */
async function requireReachable(kit: ProbeKit): Promise<void> {
  const { outcome, status } = await kit.send(await kit.sign('{}', { params: { tag: 'probe' } }));
  if (status === undefined) {
    throw new UsageError(
      `${kit.url}: nothing answers there (${outcome.replace('_', ' ')}). Expected a running receiver; --to names another address to connect to.`,
    );
  }
}

/**
 * Returns the function that waits until the receiver has the keys. It is needed if this process serves the keys,
 * because the receiver may remember that they were missing before.
 */
function waitingFor(
  identity: Identity,
  { waitMs, only = [] }: ProbeFlags,
  { now, notice }: CliContext,
): ProbeStart['awaitKeys'] {
  if (identity.how !== 'fake-seller') return undefined;
  const needsList = PROBE_CASES.some(
    ({ name, needs }) => needs === 'revoked' && (only.length === 0 || only.includes(name)),
  );
  const patience: Patience = {
    ms: waitMs,
    now,
    pause: (ms) => delay(ms),
    begins: () =>
      notice(
        `The receiver answers a good delivery with 503: it may remember that the fake seller was unreachable. Waiting up to ${Math.round(waitMs / 1000)} s.`,
      ),
    complete: needsList ? identity.askedForList : undefined,
  };
  return (kit) => awaitKeys(kit, patience);
}

function requireCases(wanted: readonly string[] = []): void {
  const names = [...PROBE_CASES, OTHER_URL_CASE].map(({ name }) => name);
  const unknown = wanted.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new UsageError(`--only ${unknown}: no such case. Expected one of ${names.join(', ')}.`);
}

/** The parts that the probe of each URL needs. */
interface Probing {
  readonly flags: ProbeFlags;
  readonly context: CliContext;
  readonly identity: Identity;
  readonly keys: readonly Jwk[];
  readonly first: Jwk;
}

async function probeUrl(
  url: string,
  otherUrl: string | undefined,
  { flags, context, identity, keys, first }: Probing,
): Promise<Report> {
  const { to, maxBodyBytes, rate, timeoutMs, hostCheck, edition } = flags;
  const { now } = context;
  const options = { url, otherUrl, to, edition, hostCheck, maxBodyBytes, rate, timeoutMs, keys, now };
  const [kit, ...others] = protocolsFor(flags.protocol).map(({ name: protocol }) =>
    createKit({ ...options, protocol }, first),
  ) as [ProbeKit, ...ProbeKit[]];
  await requireReachable(kit);
  let names: readonly NameTried[] = [];
  const results = await probeReceiver(kit, flags.only, {
    choose: async () => {
      const taken = await takenKit([kit, ...others]);
      names = taken.names;
      return taken.kit;
    },
    awaitKeys: waitingFor(identity, flags, context),
  });
  const firstAnswer = names.find(({ goesOn }) => goesOn)?.answered;
  const hint = hintOf(results, { url, identity, waitedMs: flags.waitMs, firstAnswer });
  if (hint.length === 0 || flags.agentUrl === undefined) return reportOf(url, results, hint, names);
  const chain = inLines(await chainHints(flags.agentUrl, flags, keys, context));
  return reportOf(url, results, [...hint, ...chain], names);
}

/** Returns the report about several URLs of one receiver. */
function together(urls: readonly string[], reports: readonly Report[]): Report {
  const ok = reports.every((one) => one.ok);
  return {
    ok,
    json: { ok, urls: reports.map(({ json }) => json) },
    text: (paint) =>
      reports.map(({ text }, i) => `${paint('bold', urls[i] ?? '')}\n${text(paint)}`).join('\n\n'),
  };
}

async function probe(urls: readonly string[], flags: ProbeFlags, context: CliContext): Promise<Report> {
  for (const url of urls) requireHttpUrl('URL', url);
  if (flags.to !== undefined) requireHttpUrl('--to', flags.to);
  requireCases(flags.only);
  const { keys, first } = await signingKeys(flags, context);
  const identity = await identityOf(flags, keys);
  try {
    if (flags.printConfig)
      return { ok: true, json: { config: identity.config }, text: () => identity.config };
    const reports: Report[] = [];
    for (const url of urls) {
      const otherUrl = urls.find((one) => new URL(one).host !== new URL(url).host);
      reports.push(await probeUrl(url, otherUrl, { flags, context, identity, keys, first }));
    }
    const [only, ...more] = reports;
    return only && more.length === 0 ? only : together(urls, reports);
  } finally {
    await identity.close();
  }
}

/** Adds the flags for the configuration of the receiver under test. */
function addReceiverFlags(verb: Command): Command {
  return verb
    .option('--protocol <name>', 'only this name in wire identifiers (default: proto and adcp)')
    .addOption(
      new Option('--edition <name>', 'edition that the receiver has for this sender (default: none)').choices(
        EDITION_NAMES,
      ),
    )
    .addOption(
      new Option('--host-check <how>', 'whether the receiver compares Host with its URL').choices([
        'strict',
        'off',
      ]),
    )
    .option('--max-body-bytes <n>', 'limit of the receiver', whole(1), 1_048_576);
}

export function addProbe(parent: Command, run: RunVerb): void {
  const verb = addVerb(
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
    .argument(
      '<url...>',
      'publicUrl of the receiver: exactly what sellers are given; each, if it has several',
    )
    .requiredOption('--keys <file>', 'private keys of `keys generate --probe`; repeatable', collect)
    .option('--agent-url <url>', 'the receiver finds the keys by this agent, whose brand.json you host')
    .option('--fake-seller <port>', 'serve the keys at http://127.0.0.1:<port>/mcp during the run', whole(0))
    .option('--print-config', 'print the configuration that the receiver needs, and send nothing')
    .option('--to <url>', 'address to connect to, if not that of the URL');
  addReceiverFlags(verb)
    .option('--rate <n>', 'send n more deliveries, and expect 429 among them', whole(1))
    .option('--timeout-ms <n>', 'time limit of one answer', whole(1), 15_000)
    .option(
      '--wait-ms <n>',
      'with --fake-seller: time limit of the wait for a receiver that remembers a failed fetch',
      whole(0),
      65_000,
    )
    .option('--only <case>', 'only this case; repeatable', collect)
    .action((urls: readonly string[], flags: ProbeFlags) =>
      run(flags, (context) => probe(urls, flags, context)),
    );
}
