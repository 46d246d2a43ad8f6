import { onTestFinished, vi } from 'vitest';
import {
  type Backend,
  type CommitRequest,
  type CommitResult,
  type DrivenStore,
  type LoadRequest,
  type LoadResult,
  storeOf,
} from '../../src/stores/index.ts';
import type { AcceptRequest } from '../../src/stores/index.ts';
import { acceptRequest } from '../stores/requests.ts';
import type { KeptRows } from './row-backend.ts';
import { keptRows, rowBackend } from './row-backend.ts';

/** What happens between a handle and its rows; each once, unless it is set again. */
export interface Between {
  /** The plan is made, nothing is compared yet. */
  beforeCommit?: ((request: CommitRequest) => Promise<void>) | undefined;
  /** What was taken is taken; a throw is a reply that is lost. */
  afterCommit?: ((result: CommitResult) => Promise<void>) | undefined;
  beforeLoad?: ((request: LoadRequest) => Promise<void>) | undefined;
  /** What was seen is on its way. */
  afterLoad?: ((result: LoadResult) => Promise<void>) | undefined;
}

/** One process's store over the rows, and its calls so far. */
export interface Handle {
  readonly store: DrivenStore<unknown>;
  readonly inbox: DrivenStore<unknown>['inbox'];
  readonly between: Between;
  readonly commits: CommitRequest[];
  readonly loads: LoadRequest[];
}

export interface Driven {
  readonly kept: KeptRows;
  readonly a: Handle;
  readonly b: Handle;
  /** Moves the store's clock. Ms. */
  readonly later: (ms: number) => void;
  readonly now: () => number;
}

export interface DrivenOptions {
  /** What differs from `rowBackend`. */
  readonly of?: (backend: Backend, kept: KeptRows) => Backend;
}

/** Two processes over one set of rows, opened. */
export async function driven({ of = (backend) => backend }: DrivenOptions = {}): Promise<Driven> {
  const kept = keptRows();
  let offsetMs = 0;
  // Nothing but `later` moves it, however long the machine takes.
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000);
  onTestFinished(() => clock.mockRestore());
  const now = (): number => 1_000_000 + offsetMs;
  const handle = (): Handle => {
    const backend = of(rowBackend(kept, now), kept);
    const between: Between = {};
    const commits: CommitRequest[] = [];
    const loads: LoadRequest[] = [];
    const once = async (name: keyof Between, given: unknown): Promise<void> => {
      const does = between[name] as ((given: unknown) => Promise<void>) | undefined;
      between[name] = undefined;
      await does?.(given);
    };
    const commit = async (request: CommitRequest): Promise<CommitResult> => {
      commits.push(request);
      await once('beforeCommit', request);
      const result = await backend.commit(request);
      await once('afterCommit', result);
      return result;
    };
    const load = async (request: LoadRequest): Promise<LoadResult> => {
      loads.push(request);
      await once('beforeLoad', request);
      const result = await backend.load(request);
      await once('afterLoad', result);
      return result;
    };
    const options = { clockOffsetMs: () => offsetMs, random: () => 0 };
    const store = storeOf({ ...backend, commit, load }, options);
    return { store, inbox: store.inbox, between, commits, loads };
  };
  const [a, b] = [handle(), handle()];
  await a.store.open();
  await b.store.open();
  return {
    kept,
    a,
    b,
    later: (ms) => {
      offsetMs += ms;
    },
    now,
  };
}

/** Forgets what was called so far. */
export function recount({ commits, loads }: Handle): void {
  commits.length = 0;
  loads.length = 0;
}

export const SENDER = 'https://seller.example/mcp';

export const inbox = (request: AcceptRequest): AcceptRequest => ({ ...request, mode: 'inbox' });

/** The status of a task at second `second`. */
export function status(key: string, task: string, second: number, terminal = false): AcceptRequest {
  const request = acceptRequest({ key });
  const claim = { id: task, instant: `0000000000${second}.`, instantMs: second * 1000, terminal };
  return { ...request, ...(request.event && { event: { ...request.event, task: claim } }) };
}

/** With these limits in the place of the ordinary ones. */
export function capped(request: AcceptRequest, limits: Partial<AcceptRequest['limits']>): AcceptRequest {
  return { ...request, limits: { ...request.limits, ...limits } };
}

/** What a worker asks for. */
export function leaseRequest(owner: string, max = 1): Parameters<Handle['inbox']['lease']>[0] {
  return {
    owner,
    max,
    leaseMs: 8000,
    retry: { attempts: 12, crashes: 5 },
    retentionMs: 86_400_000,
    senders: [SENDER],
  };
}
