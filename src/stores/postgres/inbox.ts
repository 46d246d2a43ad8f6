import { ConfigError } from '../../errors.ts';
import type {
  InboxPage,
  InboxQuery,
  InboxRecord,
  LeaseDueRequest,
  LeaseDueResult,
  LeasedEvent,
  StoreInbox,
} from '../contract.ts';
import { columnText, fromColumnText } from '../text.ts';
import type { Batches } from './batches.ts';
import { retried } from './batches.ts';
import type { Answer } from './call.ts';
import { leaseJson, recordCall } from './call.ts';
import { asFault } from './faults.ts';
import type { Server } from './server.ts';

export interface InboxParts {
  /** @throws Fault before `open` and after `close`. */
  readonly current: () => { readonly server: Server; readonly batches: Batches };
  readonly random: () => number;
  readonly clockOffsetMs: () => number;
  /** Keeps `close` waiting. */
  readonly during: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Longest page. */
const PAGE_MOST = 1000;

export function inboxOf({ current, random, clockOffsetMs, during }: InboxParts): StoreInbox {
  const offset = (): number => Math.trunc(clockOffsetMs());
  const ask = (name: string, value: unknown): Promise<readonly Answer[]> =>
    during(async () => {
      try {
        return await current().server.rows(name, [JSON.stringify(value), offset()]);
      } catch (error) {
        throw asFault(error);
      }
    });
  const operate = async (op: string, sender: string, key: string, retentionMs = 0): Promise<string> =>
    (await current().batches.run(recordCall(op, sender, key, retentionMs))).kind;
  return {
    lease: (request) => during(() => leaseDue(current().server, request, random)),
    list: async (query) => {
      current();
      const { limit, ...asked } = listQuery(query);
      return pageOf(await ask('list', { ...asked, limit: limit + 1 }), limit);
    },
    inspect: async (sender, key) => {
      const [answer] = await ask('inspect', { sender: columnText(sender), key: columnText(key) });
      if (!answer) return undefined;
      return { ...recordOf(answer), ...(answer.body && { body: answer.body }) };
    },
    redrive: async (sender, key) => (await operate('redrive', sender, key)) as 'queued' | 'absent' | 'other',
    discard: async (sender, key, retentionMs) =>
      (await operate('discard', sender, key, retentionMs)) as 'discarded' | 'absent' | 'other',
  };
}

/** Candidates that one call looks at, and beside those asked for in one transaction. */
const LOOK_MOST = 256;
const LOOK_BESIDE = 16;

/** Of one transaction: candidates, those that are due no more, those that ended, and ms until the next one is due. */
interface LeaseEnd {
  readonly found: number;
  readonly moved: number;
  readonly ended: number;
  readonly nextDue: number | null;
}

/** Several transactions where many candidates cannot run; each leaves the due ones, so the next sees others. */
async function leaseDue(
  server: Server,
  request: LeaseDueRequest,
  random: () => number,
): Promise<LeaseDueResult> {
  const call = leaseJson(request);
  const events: LeasedEvent[] = [];
  const died: { sender: string; key: string }[] = [];
  let nextDueMs: number | undefined;
  for (let looked = 0; looked < LOOK_MOST && events.length < request.max;) {
    const most = request.max - events.length;
    const look = Math.min(most + LOOK_BESIDE, LOOK_MOST - looked);
    const answers = await leaseSome(() => server.lease(call, look, most), events.length > 0, random);
    const end = answers?.at(-1)?.said as LeaseEnd | undefined;
    if (!answers || !end) break;
    for (const answer of answers) {
      if (answer.kind === 'event') events.push(leasedEvent(answer, request.owner));
      if (answer.kind === 'died') died.push(recordOf(answer));
    }
    nextDueMs = end.nextDue ?? undefined;
    looked += end.found;
    // There may be more where the look was full, and where one that ended has freed its task for another.
    if (end.moved === 0 || (end.found < look && end.ended === 0)) break;
  }
  const ended = died.map(({ sender, key }) => ({ sender, key }));
  return { events, died: ended, ...(nextDueMs !== undefined && { nextDueMs }) };
}

/** A later transaction that fails takes nothing from what is leased already: undefined. */
async function leaseSome(
  send: () => Promise<readonly Answer[]>,
  hasSome: boolean,
  random: () => number,
): Promise<readonly Answer[] | undefined> {
  try {
    return await retried(send, random);
  } catch (error) {
    if (hasSome) return undefined;
    throw asFault(error);
  }
}

function leasedEvent(answer: Answer, owner: string): LeasedEvent {
  const { sender, key } = recordOf(answer);
  const { lease, reemission, afterTerminal, afterFinal, ahead } = answer.said as unknown as LeasedEvent;
  const { fence, attempt } = lease;
  const body = answer.body ?? new Uint8Array();
  return {
    sender,
    key,
    lease: { owner, fence, attempt },
    body,
    reemission,
    afterTerminal,
    afterFinal,
    ahead,
  };
}

/** @throws ConfigError for an `after` that no page gave. */
function listQuery({ state, sender, limit, after = '0' }: InboxQuery): {
  readonly state: string;
  readonly sender?: string;
  readonly after: string;
  readonly limit: number;
} {
  if (!/^[0-9]{1,16}$/.test(after)) {
    throw new ConfigError('inbox.list: after is not the next of a page before.');
  }
  const most = Math.min(Math.max(1, Math.floor(limit)), PAGE_MOST);
  return { state, after, limit: most, ...(sender !== undefined && { sender: columnText(sender) }) };
}

function pageOf(answers: readonly Answer[], limit: number): InboxPage {
  const page = answers.slice(0, limit);
  const last = page.at(-1);
  const more = answers.length > limit && last;
  return { records: page.map(recordOf), ...(more && { next: String(last.said['seq']) }) };
}

/** Texts as they came. */
function recordOf({ said }: Answer): InboxRecord {
  const { seq: _seq, ...record } = said as unknown as InboxRecord & { readonly seq: number };
  const { sender, key, taskId, lastError } = record;
  return {
    ...record,
    sender: fromColumnText(sender),
    key: fromColumnText(key),
    ...(taskId !== undefined && { taskId: fromColumnText(taskId) }),
    ...(lastError !== undefined && { lastError: fromColumnText(lastError) }),
  };
}
