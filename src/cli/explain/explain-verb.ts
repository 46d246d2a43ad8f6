// The command `proto-webhooks explain`: reads a capture or a folder of them, and prints the checklist and the causes.
import { EDITION_NAMES } from '../../shared/editions.ts';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { readSignatureFields } from '../../auth/rfc9421/checks.ts';
import { basesOf } from '../../config/public-url.ts';
import { headerFields } from '../../shared/delivery.ts';
import { urlsOf } from '../../stages/several-bases.ts';
import type { Capture } from '../capture/capture.ts';
import { readCapture } from '../capture/read-capture.ts';
import { addSecretFlags, collect, readBeside, readInput } from '../files.ts';
import { addChainFlags } from '../keys/keys-verb.ts';
import {
  addVerb,
  type CliContext,
  inLines,
  instant,
  MS_FROM,
  type Paint,
  type Report,
  requireHttpUrl,
  type RunVerb,
  type Style,
  UsageError,
  whole,
} from '../shell.ts';
import type { ExplainInput, Explanation, Finding, Step } from './explain-case.ts';
import { type Configured, readConfigured, type SenderFlags } from './configured.ts';
import { explainDelivery } from './explain.ts';

interface ExplainFlags extends SenderFlags {
  readonly dir?: string;
  readonly url?: readonly string[];
  readonly receivedAt?: string;
  readonly hostCheck?: 'strict' | 'off';
  readonly maxBodyBytes?: number;
  readonly contentType?: readonly string[];
  readonly entry?: number;
  readonly json?: boolean;
}

/** The time at which a capture was received, and how it is known. */
interface Moment {
  readonly receivedAt: number;
  readonly receivedAtAssumed?: boolean;
  readonly receivedAtLatest?: boolean;
  readonly how: string;
}

/**
 * Returns the time of receipt: from the flag, else from the capture, else now. If the delivery has expired by now,
 * `created` is used, and check 5 is not judged.
 */
export function momentOf(
  capture: Capture,
  flags: Pick<ExplainFlags, 'receivedAt'>,
  context: Pick<CliContext, 'now'>,
): Moment {
  if (flags.receivedAt !== undefined)
    return { receivedAt: instant('--received-at', flags.receivedAt), how: 'as given' };
  if (capture.receivedAt !== undefined)
    return { receivedAt: capture.receivedAt, how: `as the ${capture.form} says` };
  const now = context.now();
  const fields = readSignatureFields(headerFields(capture.headers));
  const { created = 0, expires = 0 } = fields.kind === 'parsed' ? fields.input.parameters : {};
  const isExpired = created > 0 && created < MS_FROM && expires * 1000 < now;
  if (!isExpired) return { receivedAt: now, receivedAtLatest: true, how: 'now' };
  return {
    receivedAt: created * 1000,
    receivedAtAssumed: true,
    how: 'taken from created; --received-at sets the true one',
  };
}

/**
 * Returns those of the given URLs for which a receiver may accept the request, in the receiver's order (verification.md
 * §4.16).
 * @throws UsageError if there are none.
 */
function urlsAmong(
  given: readonly string[],
  { method, headers, target: url }: Capture,
): readonly [string, ...string[]] {
  const bases = basesOf(given, true);
  const head = { method, url, headers: headerFields(headers), urlNormalised: false };
  const [first, ...others] = urlsOf(head, bases).map(({ base, target }) =>
    base.kind === 'exact' ? (given[bases.indexOf(base)] ?? '') : target.targetUri,
  );
  if (first !== undefined) return [first, ...others];
  throw new UsageError(
    `--url ${given.join(' --url ')}: the captured path is ${url}, which is not under it. Behind a router that cuts the path, give the receiver the whole one (Express: req.originalUrl), or give its exact URL here.`,
  );
}

/** True for a host on this machine, for which no certificates are issued. */
const isLoopbackHost = (host: string): boolean =>
  /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i.test(host);

/**
 * Returns the URLs to which a capture may have been sent: the given ones, or its own. @throws UsageError if there are
 * none.
 */
export function urlsIn(capture: Capture, { url }: Pick<ExplainFlags, 'url'>): readonly [string, ...string[]] {
  if (url !== undefined) {
    return urlsAmong(
      url.map((one) => requireHttpUrl('--url', one)),
      capture,
    );
  }
  // The captured URL is used unchanged. It may have a fragment or a `*`, which a receiver's option `publicUrl` refuses,
  // but which is no fault of the request.
  if (capture.url !== undefined) return [capture.url];
  const host = capture.headers.find(([name]) => name.toLowerCase() === 'host')?.[1];
  if (host === undefined) {
    throw new UsageError('the capture has no Host. Give the URL that you gave the seller: --url https://…');
  }
  return [requireHttpUrl('--url', `${isLoopbackHost(host) ? 'http' : 'https'}://${host}${capture.target}`)];
}

/** True if the signature is right for the URL, but a proxy has rewritten `Host`. */
const isSignedFor = ({ steps }: Explanation): boolean =>
  steps.some(({ id, fault }) => id === '10' && fault === true);

/**
 * Explains a capture with the first URL for which no check fails. If a check fails for every URL, it uses the URL for
 * which the signature is right, or else the first one.
 */
async function explainAmong(
  input: Omit<ExplainInput, 'url'>,
  [first, ...others]: readonly [string, ...string[]],
): Promise<Pick<Explained, 'explanation' | 'url'>> {
  let found = { explanation: await explainDelivery({ ...input, url: first }), url: first };
  for (const url of others) {
    if (found.explanation.ok) return found;
    const explanation = await explainDelivery({ ...input, url });
    if (explanation.ok || (isSignedFor(explanation) && !isSignedFor(found.explanation)))
      found = { explanation, url };
  }
  return found;
}

/** One explained capture, with the URL and the time of receipt that were used. */
interface Explained {
  readonly explanation: Explanation;
  readonly capture: Capture;
  readonly url: string;
  readonly moment: Moment;
}

type Explain = (file: string) => Promise<Explained>;

/** Explains captures one by one. Keys are read and fetched only once, after the first capture was read. */
function explainer(flags: ExplainFlags, context: CliContext): Explain {
  let reading: ReturnType<typeof readConfigured> | undefined;
  const configured = async (file: string, capture: Capture): Promise<Configured> =>
    (await (reading ??= readConfigured(flags, context)))(file, capture);
  return async (file) => {
    const bytes = await readInput(file, 'a captured delivery (a folder of them: --dir)', context);
    const capture = await readCapture(bytes, {
      file,
      readFile: (name) => readBeside(file, name, context),
      ...(flags.entry !== undefined && { entry: flags.entry }),
    });
    const urls = urlsIn(capture, flags);
    const { how, ...receipt } = momentOf(capture, flags, context);
    const { protocol, edition, hostCheck, maxBodyBytes, contentType: contentTypes } = flags;
    const input = {
      capture,
      ...receipt,
      protocol,
      edition,
      hostCheck,
      maxBodyBytes,
      contentTypes,
      ...(await configured(file, capture)),
    };
    return { ...(await explainAmong(input, urls)), capture, moment: { how, ...receipt } };
  };
}

const VERDICTS: Readonly<Record<Step['verdict'], readonly [Style, string]>> = {
  pass: ['good', 'pass'],
  fail: ['bad', 'FAIL'],
  open: ['dim', '-'],
};

function stepLine(step: Step, paint: Paint): string {
  const [style, word] = VERDICTS[step.verdict];
  const why = [step.code, step.detail].filter((part) => part !== undefined && part !== '').join(': ');
  const detail = why === '' ? '' : paint('dim', `  ${why}`);
  return `${paint(style, word.padEnd(5))} ${step.id.padEnd(9)} ${step.title}${detail}`;
}

/**
 * Returns the lines of a finding. If several findings have the same fix, it is printed once, after the last of them.
 */
function findingLines(finding: Finding, next: Finding | undefined, paint: Paint): string[] {
  const word = finding.proved ? 'Cause' : 'Likely';
  const head = `${paint('bold', `${word} (${finding.cause}, step ${finding.step}):`)} ${finding.says}`;
  return next?.fix === finding.fix ? [head] : [head, `${paint('bold', 'Fix:')} ${finding.fix}`, ''];
}

/**
 * Parts of the sentence that says that a receiver would accept the delivery. A part is printed if the check with this
 * id was not judged (`open`).
 */
const CONDITIONS: readonly (readonly [id: string, condition: string])[] = [
  ['5', 'it came before it expired'],
  ['11', 'its body is as it was signed'],
  ['9', 'its key is not revoked'],
];

function acceptance(steps: readonly Step[]): string {
  const conditions = CONDITIONS.filter(([id]) =>
    steps.some((step) => step.id === id && step.verdict === 'open'),
  );
  const rest = conditions.map(
    ([, condition], i) => `, ${i === conditions.length - 1 ? 'and ' : ''}${condition}`,
  );
  return `A receiver would accept this delivery, unless it has received it before${rest.join('')}.`;
}

/** Returns the text: the checklist, and then each cause with its fix. */
function explanationText(
  { ok, steps, findings }: Explanation,
  intro: readonly string[],
  paint: Paint,
): string {
  const end = ok ? ['', paint('good', acceptance(steps))] : [];
  return [
    ...intro,
    '',
    ...steps.map((step) => stepLine(step, paint)),
    ...(findings.length > 0 ? [''] : []),
    ...findings.flatMap((finding, i) => findingLines(finding, findings[i + 1], paint)),
    ...end,
  ]
    .join('\n')
    .trimEnd();
}

async function explainFile(file: string, explain: Explain, flags: ExplainFlags): Promise<Report> {
  const { explanation, capture, url, moment } = await explain(file);
  const received = new Date(moment.receivedAt).toISOString();
  const intro = [
    `${capture.method} ${url}, ${capture.body.length} bytes, captured as ${capture.form}`,
    `Received ${received} (${moment.how})`,
    ...capture.notes,
    ...(flags.url === undefined && capture.url === undefined
      ? ['The URL was made from Host: --url sets the one that you gave the seller.']
      : []),
  ];
  return {
    ok: explanation.ok,
    json: { url, receivedAt: received, form: capture.form, notes: intro.slice(2), ...explanation },
    text: (paint) => explanationText(inLines(explanation), inLines(intro), paint),
  };
}

/** The captures that have the same cause. */
interface Group {
  /** The cause's code; `none`: a receiver would accept the captures; `unreadable`: they cannot be read. */
  readonly cause: string;
  readonly says: string;
  readonly fix: string;
  /** The files of the captures, in their order. */
  readonly files: string[];
}

/** The largest number of captures in a folder that are explained. */
const MOST = 1_000;

async function capturesIn(dir: string, context: CliContext): Promise<readonly string[]> {
  try {
    const names = await readdir(resolve(context.cwd, dir));
    return names
      .filter((name) => name.endsWith('.http'))
      .sort()
      .map((name) => join(dir, name));
  } catch (error) {
    throw new UsageError(
      `${dir}: ${(error as NodeJS.ErrnoException).code ?? ''}. Expected a folder of .http files.`,
    );
  }
}

function causeOf({ ok, steps, findings }: Explanation): Omit<Group, 'files'> {
  const [finding] = findings;
  if (finding) return finding;
  if (ok) return { cause: 'none', says: 'None of the checks that can be made here fails.', fix: '' };
  const failed = steps.find(({ verdict }) => verdict === 'fail');
  return { cause: failed?.code ?? 'unknown', says: failed?.detail ?? '', fix: '' };
}

function folderText(causes: readonly Group[], total: number, paint: Paint): string {
  const blocks = causes.map(({ cause, says, fix, files }) =>
    [
      `${paint('bold', `${files.length} × ${cause}:`)} ${says}`,
      ...(fix === '' ? [] : [`${paint('bold', 'Fix:')} ${fix}`]),
      paint('dim', `e.g. ${files[0] ?? ''}`),
    ].join('\n'),
  );
  return [`${total} captures`, ...blocks].join('\n\n');
}

/**
 * Explains every capture of a folder. The captures are grouped by their first cause, the most frequent cause first.
 * @throws UsageError if there is no such folder, or if it has no captures.
 */
async function explainFolder(dir: string, explain: Explain, context: CliContext): Promise<Report> {
  const files = await capturesIn(dir, context);
  if (files.length === 0) throw new UsageError(`${dir}: there is no .http file in it.`);
  if (files.length > MOST)
    throw new UsageError(`${dir}: ${files.length} captures, and at most ${MOST} are looked at.`);
  const causes = new Map<string, Group>();
  for (const file of files) {
    const found = await explain(file).then(
      ({ explanation }) => causeOf(explanation),
      (error: unknown) => {
        // Only an error about this capture is caught. Any other error, e.g. a wrong flag, concerns all captures and
        // ends the command.
        if (!(error instanceof UsageError) || !error.message.startsWith(file)) throw error;
        return { cause: 'unreadable', says: error.message.slice(file.length + 2), fix: '' };
      },
    );
    const { cause, says, fix } = found;
    const known = causes.get(cause) ?? { cause, says, fix, files: [] };
    known.files.push(file);
    causes.set(cause, known);
  }
  const sorted = [...causes.values()].sort((a, b) => b.files.length - a.files.length);
  return {
    ok: sorted.every(({ cause }) => cause === 'none'),
    json: { captures: files.length, causes: sorted },
    text: (paint) => folderText(inLines(sorted), files.length, paint),
  };
}

async function explain(file: string | undefined, flags: ExplainFlags, context: CliContext): Promise<Report> {
  const { dir } = flags;
  if ((file === undefined) === (dir === undefined)) {
    throw new UsageError(
      'Give a captured delivery, or a folder of them: explain FILE, or explain --dir FOLDER.',
    );
  }
  const each = explainer(flags, context);
  return file === undefined ? explainFolder(dir ?? '', each, context) : explainFile(file, each, flags);
}

export function addExplain(parent: Command, run: RunVerb): void {
  const verb = addVerb(
    parent,
    'explain',
    'say which check a captured delivery fails, why, and what to change',
    [
      'explain delivery.http --keys seller-jwks.json --url https://buyer.example/webhooks/proto',
      'explain delivery.har --agent-url https://seller.example/mcp',
      'explain - --keys jwks.json < delivery.http',
      'explain --dir refused --keys seller-jwks.json --url https://buyer.example/webhooks/proto',
      'explain delivery.http --hmac-secret-env WEBHOOK_SECRET --json',
    ],
  )
    .argument('[file]', 'raw HTTP request, HAR file or entry, curl command, or vector; - is standard input')
    .option('--dir <folder>', 'all .http files of a folder, e.g. that of captureRefused, grouped by cause')
    .option('--keys <file>', 'JWK or JWKS of the seller; repeatable', collect)
    .option('--agent-url <url>', "the seller's agents[].url: its keys are fetched")
    .option(
      '--reports-secret-file <file>',
      'of a seller that signs: file with the secret for reports by HMAC',
    )
    .option('--reports-secret-env <name>', 'the same: environment variable with the secret')
    .option(
      '--url <url>',
      'publicUrl: exactly the URL that the seller was given, or one that ends in /*; repeatable',
      collect,
    )
    .option('--received-at <instant>', 'when it was received: Unix seconds or ISO 8601')
    .addOption(new Option('--edition <name>', 'edition of the protocol').choices(EDITION_NAMES))
    .addOption(
      new Option('--host-check <how>', 'whether Host is compared with --url').choices(['strict', 'off']),
    )
    .option('--max-body-bytes <n>', 'limit of the receiver (default: 1048576)', whole(1))
    .option('--content-type <type>', "one of the receiver's contentTypes; repeatable", collect)
    .option('--entry <n>', 'which entry of a HAR, from 0', whole(0));
  addSecretFlags(addChainFlags(verb)).action((file: string | undefined, flags: ExplainFlags) =>
    run(flags, (context) => explain(file, flags, context)),
  );
}
