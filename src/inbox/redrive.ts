import { deliveryId } from '../delivery.ts';
import { boundLogger } from '../logging.ts';
import type { ReadyContext } from '../parts.ts';
import { acceptAlone } from '../stages/admit.ts';
import { announce, hasDied } from '../stages/announce.ts';
import { dispatch } from '../stages/dispatch.ts';
import { tellEnded } from '../stages/ended.ts';
import { giveBack } from '../stages/give-back.ts';
import { claimOf } from '../stages/read.ts';
import { settle, type SettleDelivery } from '../stages/settle.ts';
import { type FirstCopy, originOf, readStored, started, type AdmittedEvent } from '../stages/stored.ts';
import type { AcceptDecision, AcceptRequest, StoreInbox } from '../stores/contract.ts';
import type { RedriveResult } from './contract.ts';

/** An event that its owner wants run, with what it was stored as. */
interface Kept {
  readonly sender: string;
  readonly key: string;
  readonly body: Uint8Array;
  readonly copy: FirstCopy;
}

/** As a delivery of the same bytes would ask, but without a nonce: nobody signed this one. */
function acceptRequest({ sender, body, copy }: Kept, parts: ReadyContext): AcceptRequest {
  const { config, hashes, registrations } = parts;
  const known = config.senders.fixed?.find(({ agentUrl }) => agentUrl === sender);
  return {
    acceptId: parts.newId(),
    sender,
    mode: 'inline',
    event: claimOf(body, copy, { edition: known?.edition ?? config.edition, hashes, registrations }),
    leaseMs: config.leaseMs,
    process: parts.running.process(),
    limits: config.limits,
    retry: config.retry,
    retentionMs: config.retentionMs,
  };
}

type Win = Extract<AcceptDecision, { kind: 'won' }>;

async function runHere(
  { sender, key, copy }: Kept,
  win: Win,
  parts: ReadyContext,
  background: SettleDelivery['background'],
): Promise<RedriveResult> {
  const id = deliveryId(parts.hashes, sender, key);
  const arrivedAt = parts.now();
  const log = boundLogger(parts.logger, { sender, key, deliveryId: id });
  const origin = originOf(parts.config, sender);
  // No seller brings it again, and no worker: a failure must not leave it waiting for either.
  const won: AdmittedEvent = {
    kind: 'won',
    origin,
    key,
    deliveryId: id,
    lease: win.lease,
    flags: win,
    firstCopy: () => copy,
    once: true,
  };
  const run = started(won, parts.running);
  if (!run) {
    await giveBack({ sender, key, owner: win.lease.owner }, parts);
    return 'busy';
  }
  const result = await settle(await dispatch(run, parts, log), parts, { log, background, arrivedAt });
  // Not settled: it runs on past its deadline, or somebody else has it.
  return result.kind === 'settled' ? result.state : 'busy';
}

function resultOf(decision: Exclude<AcceptDecision, Win>): RedriveResult {
  if (decision.kind === 'done') return decision.state;
  if (decision.kind === 'stale') return 'stale';
  return decision.kind === 'in-flight' || decision.kind === 'task-busy' ? 'busy' : 'other';
}

/**
 * Mode `inline`: runs a DEAD or stuck event's handler in this process (admission.md §4.10).
 * @throws Fault `misconfigured` where the stored body cannot be read any more: then nothing has changed.
 */
export async function redriveInline(
  { sender, key }: Pick<Kept, 'sender' | 'key'>,
  inbox: StoreInbox,
  parts: ReadyContext,
  background: SettleDelivery['background'],
): Promise<RedriveResult> {
  const record = await inbox.inspect(sender, key);
  if (!record) return 'absent';
  const { body } = record;
  if (!body) return 'other';
  // Its lease may be over, and what runs here is not started again here.
  const id = deliveryId(parts.hashes, sender, key);
  if (parts.running.has(id)) return 'busy';
  const kept = {
    sender,
    key,
    body,
    copy: readStored(originOf(parts.config, sender), { ...record, body }, parts),
  };
  if (record.state === 'dead') await inbox.redrive(sender, key);
  const decision = await acceptAlone(acceptRequest(kept, parts), id, parts);
  announce(decision, { sender, key }, parts.raiseAlarm);
  if (hasDied(decision)) await tellEnded({ sender, key }, 'dead', parts);
  if (decision.kind !== 'won') return resultOf(decision);
  return runHere(kept, decision, parts, background);
}
