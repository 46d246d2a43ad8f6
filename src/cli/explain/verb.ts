import { type Command, Option } from 'commander';
import { readSignatureFields } from '../../auth/rfc9421/checks.ts';
import { pathAndQuery, publicUrlOf } from '../../config/public-url.ts';
import { headerFields } from '../../delivery.ts';
import type { Capture } from '../capture/capture.ts';
import { readCapture } from '../capture/read-capture.ts';
import { readInput } from '../files.ts';
import { collect } from '../key-files.ts';
import { addChainFlags } from '../keys/check.ts';
import { instant, MS_FROM, requireHttpUrl, whole } from '../numbers.ts';
import { addSecretFlags } from '../secrets.ts';
import { addVerb, type CliContext, type Report, type RunVerb } from '../shell.ts';
import { UsageError } from '../usage-error.ts';
import { configured, type SenderFlags } from './configured.ts';
import { explainDelivery, type ExplainInput, type Explanation } from './explain.ts';
import { explanationText } from './text.ts';

interface ExplainFlags extends SenderFlags {
  readonly dir?: string;
  readonly url?: string;
  readonly receivedAt?: string;
  readonly hostCheck?: 'strict' | 'off';
  readonly maxBodyBytes?: number;
  readonly contentType?: readonly string[];
  readonly entry?: number;
  readonly json?: boolean;
}

/** When it was received: as told, as captured, else at `created`, so that an old capture can be looked into. */
function momentOf(
  capture: Capture,
  flags: ExplainFlags,
  context: CliContext,
): { readonly at: number; readonly how: string } {
  if (flags.receivedAt !== undefined)
    return { at: instant('--received-at', flags.receivedAt), how: 'as told' };
  if (capture.receivedAt !== undefined) return { at: capture.receivedAt, how: `as the ${capture.form} says` };
  const fields = readSignatureFields(headerFields(capture.headers));
  const created = fields.kind === 'parsed' ? fields.input.parameters.created : undefined;
  if (created !== undefined && created > 0 && created < MS_FROM) {
    return { at: created * 1000, how: 'taken from created; --received-at tells the true one' };
  }
  return { at: context.now(), how: 'now' };
}

/** A `publicUrl` that ends in `/*` takes path and query from the request, as the receiver's does. */
function underPrefix(url: string, capture: Capture): string {
  const given = publicUrlOf(url, true);
  if (given.kind === 'exact') return url;
  const whole = given.origin + pathAndQuery(capture.target);
  if (whole.startsWith(given.prefix)) return whole;
  throw new UsageError(
    `--url ${url}: the captured path is ${capture.target}, which is not under it. Behind a router that cuts the path, give the receiver the whole one (Express: req.originalUrl), or give its exact URL here.`,
  );
}

function urlOf(capture: Capture, flags: ExplainFlags): string {
  if (flags.url !== undefined) return underPrefix(requireHttpUrl('--url', flags.url), capture);
  // As it stands: what a receiver's options refuse (a fragment, a `*`) is none of a request's fault.
  if (capture.url !== undefined) return capture.url;
  const host = capture.headers.find(([name]) => name.toLowerCase() === 'host')?.[1];
  if (host === undefined) {
    throw new UsageError('the capture has no Host. Give the URL that the seller was given: --url https://…');
  }
  return requireHttpUrl('--url', `https://${host}${capture.target}`);
}

async function explain(given: string | undefined, flags: ExplainFlags, context: CliContext): Promise<Report> {
  const { dir } = flags;
  if ((given === undefined) === (dir === undefined)) {
    throw new UsageError(
      'Give a captured delivery, or a folder of them: explain FILE, or explain --dir FOLDER.',
    );
  }
  if (given !== undefined) return explainFile(given, flags, context);
  const { explainFolder } = await import('./folder.ts');
  return explainFolder(dir ?? '', context, (file) => explained(file, flags, context));
}

/** One capture, and how it was read. */
interface Explained {
  readonly explanation: Explanation;
  readonly capture: Capture;
  readonly url: string;
  readonly at: number;
  readonly how: string;
}

async function explained(file: string, flags: ExplainFlags, context: CliContext): Promise<Explained> {
  const bytes = await readInput(file, 'a captured delivery', context);
  const fromFile = (name: string): Promise<Uint8Array> =>
    readInput(name, 'the body that the curl command names', context);
  const capture = await readCapture(bytes, {
    file,
    readFile: fromFile,
    ...(flags.entry !== undefined && { entry: flags.entry }),
  });
  const url = urlOf(capture, flags);
  const { at, how } = momentOf(capture, flags, context);
  const { protocol, edition, hostCheck, maxBodyBytes, contentType: contentTypes } = flags;
  const input: ExplainInput = {
    capture,
    url,
    receivedAt: at,
    protocol,
    edition,
    hostCheck,
    maxBodyBytes,
    contentTypes,
    ...(await configured(file, capture, flags, context)),
  };
  return { explanation: await explainDelivery(input), capture, url, at, how };
}

async function explainFile(file: string, flags: ExplainFlags, context: CliContext): Promise<Report> {
  const { explanation, capture, url, at, how } = await explained(file, flags, context);
  const received = new Date(at).toISOString();
  const intro = [
    `${capture.method} ${url}, ${capture.body.length} bytes, captured as ${capture.form}`,
    `Received ${received} (${how})`,
    ...capture.notes,
    ...(flags.url === undefined && capture.url === undefined
      ? ['The URL was made from Host: --url tells the one that the seller was given.']
      : []),
  ];
  return {
    ok: explanation.ok,
    json: { url, receivedAt: received, form: capture.form, notes: intro.slice(2), ...explanation },
    text: (paint) => explanationText(explanation, intro, paint),
  };
}

/** `explain FILE`. */
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
    .option('--dir <folder>', 'all .http files of a folder, summed up by cause: what captureRefused writes')
    .option('--keys <file>', 'JWK or JWKS of the seller; repeatable', collect)
    .option('--agent-url <url>', "the seller's agents[].url: its keys are fetched")
    .option('--url <url>', 'publicUrl: exactly the URL that the seller was given, or what ends in /*')
    .option('--received-at <instant>', 'when it was received: Unix seconds or ISO 8601')
    .addOption(new Option('--edition <name>', 'edition of the protocol').choices(['3.0', '3.1', '3.2']))
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
