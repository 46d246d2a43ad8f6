// The seller's side: sends what real sellers send, and what they should not, and compares every answer.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Table from 'cli-table3';
import { createFakeSeller, type Attempt, type FakeSeller, type PayloadInput } from 'proto-webhooks/testing';
import { createBuyer, type Buyer } from './buyer.ts';

interface Line {
  readonly sent: string;
  /** Answers in order, `status` or `status code`. */
  readonly answers: string;
  readonly saw: string;
}

interface Step {
  readonly sent: string;
  readonly expected: Omit<Line, 'sent'>;
  readonly run: () => Promise<readonly Attempt[]>;
}

const NOTHING = '—';
const RETRY = { attempts: 8, delayMs: () => 100 };

const described = (attempts: readonly Attempt[]): string =>
  attempts
    .map(({ status, code, outcome }) =>
      [status ?? outcome, code].filter((part) => part !== undefined).join(' '),
    )
    .join(', then ');

/** A free port, so that the receiver comes back on the one it had. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

function statusSteps(seller: FakeSeller): Step[] {
  const saw = {
    completed: (transport: string) => `completed ${transport}`,
    working: (transport: string) => `working ${transport}, 40 %`,
    'input-required': (transport: string) => `input-required ${transport}, APPROVAL_REQUIRED`,
    failed: (transport: string) => `failed ${transport}`,
    canceled: (transport: string) => `canceled ${transport}`,
  } as const;
  const statuses = Object.keys(saw) as (keyof typeof saw)[];
  return (['tool', 'agent'] as const).flatMap((transport) =>
    statuses.map((status) => ({
      sent: `${status}, ${transport} transport`,
      expected: { answers: '200', saw: saw[status](transport) },
      run: async () => (await seller.deliver(seller.payloads[transport](status))).attempts,
    })),
  );
}

const once = async (seller: FakeSeller, payload: PayloadInput, options = {}) =>
  (await seller.deliver(payload, { retry: { ...RETRY, attempts: 1 }, ...options })).attempts;

function duplicateSteps(seller: FakeSeller): Step[] {
  const first = seller.payloads.tool('completed', { timestamp: '2026-01-01T12:00:00Z' });
  const older = {
    ...seller.payloads.tool('working', { timestamp: '2026-01-01T11:59:59.999Z' }),
    task_id: first.task_id,
  };
  let delivered: Attempt | undefined;
  return [
    {
      sent: 'delivery report',
      expected: { answers: '200', saw: 'report scheduled' },
      run: () => once(seller, seller.payloads.report()),
    },
    {
      sent: 'an event, signed with P-256',
      expected: { answers: '200', saw: 'completed tool' },
      run: async () => {
        const attempts = await once(seller, first, { key: 'p256' });
        delivered = attempts[0];
        return attempts;
      },
    },
    {
      sent: 'its retry, fresh nonce',
      expected: { answers: '200', saw: NOTHING },
      run: () => once(seller, first),
    },
    {
      sent: 'changed payload under its key',
      expected: { answers: '200', saw: NOTHING },
      run: () => once(seller, { ...first, message: 'changed' }),
    },
    {
      sent: 'older status of its task',
      expected: { answers: '200', saw: NOTHING },
      run: () => once(seller, older),
    },
    {
      sent: 'its bytes and nonce again',
      expected: { answers: '401 webhook_signature_replayed', saw: NOTHING },
      run: async () => {
        if (!delivered) throw new Error('nothing was delivered before');
        return [await seller.send(delivered.delivery)];
      },
    },
  ];
}

function refusalSteps(seller: FakeSeller): Step[] {
  const refused = (sent: string, mistake: string, answers: string): Step => ({
    sent,
    expected: { answers, saw: NOTHING },
    run: () => once(seller, seller.payloads.tool('completed'), { mistake }),
  });
  return [
    refused('tampered body', 'tampered-body', '401 webhook_signature_digest_mismatch'),
    refused('tampered signature', 'tampered-signature', '401 webhook_signature_invalid'),
    refused('signed for another URL', 'wrong-url', '401 webhook_signature_invalid'),
    refused('expired signature', 'expired', '401 webhook_signature_window_invalid'),
    refused('wrong tag', 'wrong-tag', '401 webhook_signature_tag_invalid'),
    refused('no signature', 'unsigned', '401 webhook_signature_header_malformed'),
    refused('duplicate JSON key', 'duplicate-json-key', '401 webhook_body_malformed'),
    refused('body over 1 MiB', 'oversize', '413'),
    refused('text/plain', 'text-plain', '415'),
    {
      sent: 'no idempotency_key',
      expected: { answers: '400 missing_idempotency_key', saw: NOTHING },
      run: () => once(seller, { ...seller.payloads.tool('completed'), idempotency_key: undefined }),
    },
  ];
}

function faultSteps(seller: FakeSeller, buyer: Buyer): Step[] {
  return [
    {
      sent: 'handler fails once',
      expected: { answers: '503, then 200', saw: 'completed tool; completed tool' },
      run: async () => {
        const payload = seller.payloads.tool('completed', { operation_id: 'fail-once' });
        return (await seller.deliver(payload, { retry: RETRY })).attempts;
      },
    },
    {
      sent: 'kill -9 in the handler, restart',
      expected: {
        answers: 'connection_error, then 200, then 200',
        saw: 'completed tool; completed tool',
      },
      run: () => crash(seller, buyer),
    },
  ];
}

/** The receiver dies in the middle of a handler; the seller retries; and once more, to show that it is done. */
async function crash(seller: FakeSeller, buyer: Buyer): Promise<readonly Attempt[]> {
  const payload = seller.payloads.tool('completed', { operation_id: 'crash', idempotency_key: randomUUID() });
  const started = buyer.nextSeen();
  const first = once(seller, payload);
  await started;
  await buyer.kill();
  const attempts = [...(await first)];
  await buyer.start();
  for (let round = 0; round < 2; round += 1) {
    attempts.push((await seller.deliver(payload, { retry: RETRY })).last);
  }
  return attempts;
}

async function runSteps(steps: readonly Step[], buyer: Buyer): Promise<{ lines: Line[]; wrong: string[] }> {
  const lines: Line[] = [];
  const wrong: string[] = [];
  for (const { sent, expected, run } of steps) {
    const answers = described(await run());
    const saw = (await buyer.takeSeen()).join('; ') || NOTHING;
    lines.push({ sent, answers, saw });
    if (answers !== expected.answers || saw !== expected.saw) {
      wrong.push(`${sent}: expected ${expected.answers} and ${expected.saw}, got ${answers} and ${saw}`);
    }
  }
  return { lines, wrong };
}

const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-demo-'));
const port = await freePort();
const seller = await createFakeSeller({ url: `http://127.0.0.1:${port}/webhooks/proto` });
const buyer = createBuyer({
  PORT: String(port),
  DATABASE: join(folder, 'webhooks.db'),
  AGENT_URL: seller.agentUrl,
  BRAND_JSON_URL: seller.brandJsonUrl,
});
try {
  await buyer.start();
  const steps = [
    ...statusSteps(seller),
    ...duplicateSteps(seller),
    ...refusalSteps(seller),
    ...faultSteps(seller, buyer),
  ];
  const { lines, wrong } = await runSteps(steps, buyer);
  const table = new Table({
    head: ['sent', 'answered', 'the handler saw'],
    style: { head: [], border: [] },
    chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
  });
  table.push(...lines.map(({ sent, answers, saw }) => [sent, answers, saw]));
  console.log(table.toString());
  const handled = lines.filter(({ saw }) => saw !== NOTHING).length;
  console.log(
    `${lines.length} sent, ${handled} handled, ${lines.length - handled} answered without a handler.`,
  );
  console.log(`${lines.length - wrong.length} passed, ${wrong.length} failed`);
  for (const line of wrong) console.error(line);
  process.exitCode = wrong.length === 0 ? 0 : 1;
} finally {
  await buyer.kill();
  await seller.close();
  rmSync(folder, { recursive: true, force: true });
}
