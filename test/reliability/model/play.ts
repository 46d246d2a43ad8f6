import type {
  AcceptRequest,
  CompleteRequest,
  FailRequest,
  ReportClaim,
  TaskClaim,
} from '../../../src/stores/index.ts';
import type { QueueRows } from '../../../src/stores/for-tests.ts';
import type { Step } from './explore.ts';
import type { Protocol } from './world.ts';
import { OLD_MS, driven } from './protocol.ts';
import { draftOf } from './rows.ts';
import type { System } from './system.ts';
import { BUY, WINDOW } from './window.ts';
import type { Scenario, Thread, ToldEvent, World } from './world.ts';
import {
  BACKOFF_MS,
  LEASE_MS,
  RETENTION_MS,
  SELLER,
  accountOf,
  eventOf,
  processOf,
  withAccount,
} from './world.ts';

/** Who plays in which world. */
export interface Play {
  readonly scenario: Scenario;
  readonly system: System;
  /** How operations are planned and taken; absent: each is one atomic step. */
  readonly protocol?: Protocol;
}

export type Steps = readonly Step<World>[];

/** Caps are the contract suite's: here nothing meets one. */
const LIMITS = {
  maxRecordsPerSender: 1_000_000,
  maxPendingBytesPerSender: 1_000_000,
  maxNoncesPerKey: 1_000_000,
  maxNonces: 1_000_000,
};

/** One atomic operation of the store, and the world with what it wrote. */
export function onStore<T>(
  world: World,
  operation: (rows: QueueRows, now: number) => T,
): { readonly after: World; readonly result: T } {
  if (world.view?.protocol) return driven(world, world.view.protocol, operation);
  const draft = draftOf(world.kept);
  const result = operation(draft.rows, world.now);
  return { after: { ...world, kept: draft.kept() }, result };
}

export function keyOf({ scenario }: Play, event: number): string {
  return eventOf(scenario, event).name;
}

/** The copies of an event differ in one byte, which tells which one a handler got. */
export function bodyOf(copy: number): Uint8Array {
  return Uint8Array.of(copy);
}

export function copyOf(body: Uint8Array): number {
  return body[0] ?? -1;
}

/** An observation is kept for a worker at every door. */
export function modeOf({ scenario }: Play, { process, event }: Thread): 'inline' | 'inbox' {
  return isObservation(eventOf(scenario, event)) ? 'inbox' : scenario.modes[process === 0 ? 0 : 1];
}

/** Told by another channel than a webhook. */
export function isObservation({ task, report }: ToldEvent): boolean {
  return report === 'pulled' || (task?.told !== undefined && task.told.source !== 'webhook');
}

function reportClaim({ report }: ToldEvent): ReportClaim | undefined {
  if (!report) return undefined;
  const isPulled = report === 'pulled' && { isPulled: true as const };
  return { mediaBuyIds: [BUY], windows: [WINDOW], final: false, ...isPulled };
}

function taskClaim({ name, task }: ToldEvent, { askedAt }: Thread): TaskClaim | undefined {
  if (!task) return undefined;
  const { id, instant, terminal, told, keepsEnd } = task;
  const isAsked = askedAt !== undefined && instant === undefined && !terminal;
  return {
    id,
    ...(instant !== undefined && { instant: String(instant), instantMs: 0 }),
    terminal,
    ...(keepsEnd && { keepsEnd }),
    ...(told && { told: { ...told, ...(terminal && { hash: name }), ...(isAsked && { askedAt }) } }),
  };
}

export function acceptRequest(play: Play, world: World, thread: Thread): AcceptRequest {
  const { retry, onChanged } = play.scenario;
  const event = eventOf(play.scenario, thread.event);
  const task = taskClaim(event, thread);
  const { says } = event.task ?? {};
  const report = reportClaim(event);
  return {
    acceptId: thread.id,
    sender: SELLER,
    mode: modeOf(play, thread),
    ...(thread.nonce !== undefined && {
      nonce: { keyid: 'kid', nonce: thread.nonce, nowMs: 0, expiresAtMs: RETENTION_MS },
    }),
    ...(thread.replay && { replay: true }),
    event: {
      key: keyOf(play, thread.event),
      body: bodyOf(thread.copy),
      rawHash: String(thread.copy),
      onChanged,
      ...(task && { task }),
      ...(says !== undefined && { terminalHash: says }),
      ...(report && { report }),
    },
    leaseMs: LEASE_MS,
    process: processOf(world, thread.process),
    ...(thread.suspect && { alone: true }),
    limits: LIMITS,
    retry,
    retentionMs: RETENTION_MS,
  };
}

export function completeRequest(play: Play, { event, id: owner }: Thread): CompleteRequest {
  return { sender: SELLER, key: keyOf(play, event), owner, retentionMs: RETENTION_MS };
}

export function failRequest(
  play: Play,
  thread: Thread,
  how: { readonly permanent?: boolean; readonly unstarted?: boolean } = {},
): FailRequest {
  const { permanent = false, unstarted = false } = how;
  const { retry } = play.scenario;
  return { ...completeRequest(play, thread), permanent, unstarted, retry, backoffMs: BACKOFF_MS };
}

/**
 * Until when a process counts on a lease that it is told of. Its plan's clock may have been so old when it was taken,
 * and the lease is over the earlier for it.
 */
export function heldUntil({ now, view }: World): number {
  return Math.max(view?.seen?.now ?? now, now - OLD_MS) + LEASE_MS;
}

/** A lease under which nothing ran goes back. */
export function given(
  play: Play,
  world: World,
  thread: Thread,
): { readonly after: World; readonly label: string } {
  const request = failRequest(play, thread, { unstarted: true });
  const { after, result } = onStore(world, (rows, now) => play.system.fail(rows, request, now));
  const { returned } = accountOf(world, thread.event);
  const noted = result === 'lost' ? after : withAccount(after, thread.event, { returned: returned + 1 });
  return { after: noted, label: `${doer(thread)} gives ${keyOf(play, thread.event)} back → ${result}` };
}

/** Who does it, in a trace. */
export function doer({ process, worker, id }: Thread): string {
  return `process ${process + 1}, ${worker ? 'run' : 'delivery'} ${id}`;
}
