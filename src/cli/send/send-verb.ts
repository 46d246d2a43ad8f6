// The command `proto-webhooks send`: signs a sample delivery, good or altered, and sends it.
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Jwk } from '../../crypto/engine.ts';
import type { DeliveryReport, TaskStatus } from '../../events/event.ts';
import { REPORT_TYPES } from '../../events/schemas.ts';
import { payloadBytes } from '../../sender/signed-delivery.ts';
import type { PayloadInput, SignedDelivery } from '../../sender/sign.ts';
import { needsNoSignature } from '../../testing/mistake-row.ts';
import { MISTAKES, WRONG_DELIVERIES } from '../../testing/mistakes.ts';
import { SAMPLE_FAMILIES, type SampleFamily, samplePayloads } from '../../testing/payloads.ts';
import { makeDelivery } from '../../testing/seller-delivery.ts';
import { post, type PostResult } from '../../testing/seller-post.ts';
import {
  addSecretFlags,
  collect,
  isPrivate,
  readKeys,
  type SecretFlags,
  secretsOf,
  readInput,
} from '../files.ts';
import { type IdentityFlags, identityOf } from '../probe/identity.ts';
import {
  addVerb,
  type CliContext,
  inLines,
  type Paint,
  type Report,
  requireHttpUrl,
  type RunVerb,
  UsageError,
  whole,
} from '../shell.ts';

/** The flags that choose a sample. */
export interface PayloadFlags {
  /** The envelope of the sample: that of the tool transport or of the agent transport. Default: `tool`. */
  readonly transport?: 'tool' | 'agent';
  /** The status of the task in the sample. Default: `completed`. */
  readonly status?: TaskStatus;
  readonly report?: DeliveryReport['notification_type'];
  readonly family?: SampleFamily;
  readonly body?: string;
}

export const STATUSES: readonly TaskStatus[] = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected',
];
/** Returns the body to send: the unchanged bytes of a file, or a sample. */
export async function payloadOf(flags: PayloadFlags, context: CliContext): Promise<PayloadInput> {
  if (flags.body !== undefined) return readInput(flags.body, 'the body to send', context);
  const payloads = samplePayloads({ now: context.now });
  if (flags.report !== undefined) return payloads.report(flags.report);
  if (flags.family !== undefined) return payloads.family(flags.family);
  const { transport = 'tool', status = 'completed' } = flags;
  return payloads[transport](status);
}

/** One POST, and the answer that a conforming receiver gives to it. */
export interface Planned {
  readonly sends: string;
  readonly delivery: SignedDelivery;
  /** The expected status: `2xx`, or one status. */
  readonly status: '2xx' | number;
  readonly code?: string;
}

/** The flags that alter or repeat the delivery. */
export interface PlanFlags {
  readonly mistake?: string;
  readonly tamper?: boolean;
  readonly dupKey?: boolean;
  readonly expired?: boolean;
  readonly replay?: boolean;
  readonly duplicate?: boolean;
  readonly stale?: boolean;
}

type Make = (payload: PayloadInput, mistake?: string) => Promise<SignedDelivery>;

function mistakeOf({ mistake, tamper, dupKey, expired }: PlanFlags): string | undefined {
  if (tamper) return 'tampered-body';
  if (dupKey) return 'duplicate-json-key';
  return expired ? 'expired' : mistake;
}

const good = (sends: string, delivery: SignedDelivery): Planned => ({ sends, delivery, status: '2xx' });

/** Plans a newer status of a task, followed by an older status of the same task. */
async function stalePlan(make: Make, now: () => number): Promise<Planned[]> {
  const newer = samplePayloads({ now }).tool('completed');
  const older = samplePayloads({ now: () => now() - 60_000 }).tool('working', { task_id: newer['task_id'] });
  return [
    good('completed', await make(newer)),
    good('working, a minute older: stale, and still 2xx', await make(older)),
  ];
}

/** Returns the deliveries in the order in which they are sent. */
export async function planOf(
  flags: PlanFlags,
  payload: PayloadInput,
  make: Make,
  now: () => number,
): Promise<Planned[]> {
  if (flags.stale) return stalePlan(make, now);
  const bytes = payloadBytes(payload);
  const mistake = mistakeOf(flags);
  const first = await make(bytes, mistake);
  const known = mistake === undefined ? undefined : MISTAKES[mistake];
  if (mistake !== undefined && known) return [{ ...known, sends: mistake, delivery: first }];
  const planned = [good('the delivery', first)];
  if (flags.duplicate) planned.push(good('the same event, signed anew: a duplicate', await make(bytes)));
  if (flags.replay) {
    planned.push({
      sends: 'the same bytes again: a replay',
      delivery: first,
      status: 401,
      code: 'webhook_signature_replayed',
    });
  }
  return planned;
}

/** Returns a delivery as a raw HTTP request, which `explain` can read. */
export function httpText({ method, url, headers, body }: SignedDelivery): string {
  const [, host = '', target = ''] = /^[^:]+:\/\/([^/?#]*)([^#]*)/.exec(url) ?? [];
  const fields = Object.entries({ Host: host, ...headers, 'Content-Length': String(body.byteLength) });
  const head = [`${method} ${target || '/'} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`)];
  return `${head.join('\r\n')}\r\n\r\n${new TextDecoder().decode(body)}`;
}

type Flags = PayloadFlags & PlanFlags & SecretFlags;
type Flag = keyof Flags;

const SAMPLE: readonly Flag[] = ['status', 'transport'];
const SPOILT: readonly Flag[] = ['tamper', 'dupKey', 'expired', 'mistake'];
const REPEATED: readonly Flag[] = ['replay', 'duplicate'];
const SECRETS: readonly Flag[] = ['hmacSecretFile', 'hmacSecretEnv', 'bearerTokenFile', 'bearerTokenEnv'];

const NEEDS_SIGNATURE = 'it needs a signature, which legacy senders do not make';

/** Flags that conflict: a flag, the flags that would be ignored beside it, and the reason. */
const CONFLICTS: readonly (readonly [Flag, readonly Flag[], string])[] = [
  ['body', [...SAMPLE, 'report', 'family'], 'the body is sent as it is'],
  ['report', [...SAMPLE, 'family'], 'a delivery report has one form'],
  ['family', SAMPLE, 'a webhook of another family has one form'],
  [
    'stale',
    [...SAMPLE, 'body', 'report', 'family', ...SPOILT, ...REPEATED],
    'it sends two statuses of its own, both good',
  ],
  [
    'tamper',
    ['dupKey', 'expired', 'mistake', ...REPEATED],
    'an altered delivery is sent once, with one mistake',
  ],
  ['dupKey', ['expired', 'mistake', ...REPEATED], 'an altered delivery is sent once, with one mistake'],
  ['expired', ['mistake', ...REPEATED], 'an altered delivery is sent once, with one mistake'],
  ['mistake', REPEATED, 'an altered delivery is sent once'],
  ...SECRETS.map((secret) => [secret, ['replay'], NEEDS_SIGNATURE] as const),
];

const named = (flag: Flag): string => `--${flag.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)}`;

/** True for a mistake in headers or signature, which a legacy sender cannot make. */
function isOfSignatures(flags: Flags): boolean {
  const mistake = mistakeOf(flags);
  const row = mistake === undefined ? undefined : WRONG_DELIVERIES[mistake];
  return row !== undefined && !needsNoSignature(row);
}

/** Refuses two flags that exclude each other, because one of them would be ignored silently. @throws UsageError */
export function requireTogether(flags: Flags): void {
  for (const [flag, others, why] of CONFLICTS) {
    const other = flags[flag] === undefined ? undefined : others.find((name) => flags[name] !== undefined);
    if (other !== undefined)
      throw new UsageError(`${named(flag)} and ${named(other)}: ${why}. Expected one of them.`);
  }
  const secret = SECRETS.find((name) => flags[name] !== undefined);
  const spoilt = SPOILT.find((name) => flags[name] !== undefined);
  if (secret !== undefined && spoilt !== undefined && isOfSignatures(flags)) {
    const mistake = spoilt === 'mistake' ? ` ${flags.mistake}` : '';
    throw new UsageError(
      `${named(secret)} and ${named(spoilt)}${mistake}: ${NEEDS_SIGNATURE}. Expected one of them.`,
    );
  }
}

interface SendFlags extends PayloadFlags, PlanFlags, SecretFlags, IdentityFlags {
  readonly keys?: readonly string[];
  readonly kid?: string;
  readonly to?: string;
  readonly timeoutMs: number;
  readonly print?: boolean;
  readonly json?: boolean;
}

/** Returns the key to sign with. @throws UsageError if none of the keys can sign, or none has the given kid. */
function keyOf(flags: SendFlags, keys: readonly Jwk[]): Jwk {
  const key = keys.find((jwk) => isPrivate(jwk) && (flags.kid === undefined || jwk['kid'] === flags.kid));
  if (key) return key;
  throw new UsageError(
    `${flags.kid === undefined ? 'no private key' : `no private key with the kid ${flags.kid}`}. Give --keys FILE (proto-webhooks keys generate --out FILE), or --hmac-secret-file / --bearer-token-file.`,
  );
}

/**
 * Returns a function that makes deliveries, signed with a private key or with legacy credentials. Also returns all keys
 * of `--keys`. The fake seller publishes all of them, as in a probe, so that a receiver that was probed knows them.
 */
async function maker(
  url: string,
  flags: SendFlags,
  context: CliContext,
): Promise<{ readonly make: Parameters<typeof planOf>[2]; readonly keys: readonly Jwk[] }> {
  const auth = await secretsOf(flags, context);
  const { protocol = 'proto' } = flags;
  const keys = auth ? [] : await readKeys(flags.keys ?? [], context);
  const key = auth ? {} : keyOf(flags, keys);
  return {
    keys,
    make: (payload, mistake) =>
      makeDelivery({ url, payload, key, protocol, now: context.now, auth, mistake, sign: undefined }),
  };
}

interface Sent extends Planned {
  readonly answer: PostResult;
  readonly ok: boolean;
}

function passes({ status, code }: Planned, answer: PostResult): boolean {
  if (status === '2xx') return answer.outcome === 'success';
  return answer.status === status && (code === undefined || answer.code === code);
}

async function sendAll(planned: readonly Planned[], flags: SendFlags): Promise<Sent[]> {
  const sent: Sent[] = [];
  const { to, timeoutMs } = flags;
  for (const one of planned) {
    const answer = await post(one.delivery, {
      timeoutMs,
      signal: new AbortController().signal,
      ...(to !== undefined && { to }),
    });
    if (answer.status === undefined) {
      throw new UsageError(
        `${to ?? one.delivery.url}: nothing answers there (${answer.outcome.replace('_', ' ')}). Expected a running receiver; --to names another address to connect to.`,
      );
    }
    sent.push({ ...one, answer, ok: passes(one, answer) });
  }
  return sent;
}

function sentLine({ sends, status, code, answer, ok }: Sent, paint: Paint): string {
  const cut = /^(?:timeout|connection_error)$/.test(answer.outcome) ? 'cut short' : undefined;
  const received = [answer.status, answer.code, cut].filter((part) => part !== undefined).join(' ');
  const retry = answer.headers['retry-after'];
  const expected = ok ? '' : `, expected ${[status, code].filter((part) => part !== undefined).join(' ')}`;
  return `${paint(ok ? 'good' : 'bad', (ok ? 'pass' : 'FAIL').padEnd(5))} ${sends} -> ${received}${retry === undefined ? '' : ` (Retry-After: ${retry})`}${expected}`;
}

function printed(planned: readonly Planned[]): Report {
  const json = planned.map(({ sends, delivery }) => ({
    sends,
    ...delivery,
    body: new TextDecoder().decode(delivery.body),
  }));
  return { ok: true, json, text: () => planned.map(({ delivery }) => httpText(delivery)).join('\n\n') };
}

async function send(url: string, flags: SendFlags, context: CliContext): Promise<Report> {
  requireHttpUrl('URL', url);
  requireTogether(flags);
  if (flags.to !== undefined) requireHttpUrl('--to', flags.to);
  const { make, keys } = await maker(url, flags, context);
  const planned = await planOf(flags, await payloadOf(flags, context), make, context.now);
  if (flags.print) return printed(planned);
  const identity = await identityOf(flags, keys);
  try {
    const sent = await sendAll(planned, flags);
    const json = sent.map(({ sends, ok, status, code, answer }) => ({
      sends,
      ok,
      expected: { status, code },
      answer,
    }));
    return {
      ok: sent.every(({ ok }) => ok),
      json,
      text: (paint) => sent.map((one) => sentLine({ ...one, answer: inLines(one.answer) }, paint)).join('\n'),
    };
  } finally {
    await identity.close();
  }
}

/**
 * Checks the name of a mistake. @throws InvalidArgumentError with the list of names, which is too long for the help.
 */
function mistakeNamed(name: string): string {
  if (Object.hasOwn(MISTAKES, name)) return name;
  throw new InvalidArgumentError(`Allowed choices are ${Object.keys(MISTAKES).join(', ')}.`);
}

function addPlanFlags(verb: Command): Command {
  return verb
    .option('--tamper', 'change the body after it was signed')
    .option('--dup-key', 'a member twice in the body')
    .option('--expired', 'signed a quarter of an hour ago')
    .option('--replay', 'send the same bytes twice')
    .option('--duplicate', 'send the same event twice, signed anew')
    .option('--stale', 'send a newer status of a task, then an older one')
    .option('--mistake <name>', 'alter it: wrong-url, unknown-key, not-json, …; ? lists all', mistakeNamed);
}

export function addSend(parent: Command, run: RunVerb): void {
  const verb = addVerb(parent, 'send', 'sign a sample delivery, good or altered, and send it', [
    'send http://127.0.0.1:3000/webhooks/proto --keys seller.private.json',
    'send http://127.0.0.1:3000/webhooks/proto --keys seller.private.json --fake-seller 4555 --transport agent --status working',
    'send http://127.0.0.1:3000/webhooks/proto --keys seller.private.json --report final --replay',
    'send http://127.0.0.1:3000/webhooks/proto --hmac-secret-env WEBHOOK_SECRET --body event.json',
    'send https://buyer.example/hook --keys seller.private.json --tamper --print > delivery.http',
  ])
    .argument('<url>', "the buyer's webhook URL")
    .option('--keys <file>', 'private key to sign with', collect)
    .option('--kid <kid>', 'which of several keys')
    .addOption(new Option('--transport <name>', 'envelope (default: tool)').choices(['tool', 'agent']))
    .addOption(new Option('--status <name>', 'task status (default: completed)').choices(STATUSES))
    .addOption(new Option('--report <type>', 'a delivery report instead').choices(REPORT_TYPES))
    .addOption(new Option('--family <name>', 'a webhook of another family instead').choices(SAMPLE_FAMILIES))
    .option('--body <file>', 'these bytes instead; - is standard input');
  addSecretFlags(addPlanFlags(verb))
    .option('--fake-seller <port>', 'serve the keys at http://127.0.0.1:<port>/mcp during the run', whole(0))
    .option('--to <url>', 'address to connect to, if not that of the URL')
    .option('--protocol <name>', 'name in wire identifiers (default: proto)')
    .option('--timeout-ms <n>', 'time limit of one answer', whole(1), 15_000)
    .option('--print', 'print what would be sent as raw HTTP, and send nothing')
    .action((url: string, flags: SendFlags) => run(flags, (context) => send(url, flags, context)));
}
