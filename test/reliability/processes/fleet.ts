import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { launch } from './child.ts';
import type { Random } from './random.ts';
import type { ProcessOptions, Ready, Role } from './wire.ts';

const PROCESS = fileURLToPath(new URL('fixtures/process.ts', import.meta.url));

/** A process that serves. */
export interface Member {
  readonly role: Role;
  readonly pid: number;
  readonly port: number;
}

interface Living extends Member {
  readonly child: ChildProcess;
  isPaused: boolean;
}

/** Processes on one store; whichever is killed, by whomever, is replaced by a new one of its role. */
export interface Fleet {
  /** One with a door that is open, picked at random. Waits for one. @throws Error when `signal` aborts. */
  readonly door: (signal: AbortSignal) => Promise<Member>;
  /** Kills one that serves, or is stopped, picked at random. Waits for one. @throws Error when `signal` aborts. */
  readonly kill: (signal: AbortSignal) => Promise<void>;
  /** Those that serve, or are stopped. */
  readonly members: () => readonly Member[];
  /** Kills this one. @returns whether it served. */
  readonly killThis: (pid: number) => boolean;
  /** It has stopped itself, if it lives. */
  readonly pause: (pid: number) => void;
  readonly resume: (pid: number) => void;
  /** Signals sent by `kill` so far. */
  readonly kills: () => number;
  /** Those that SIGKILL has ended, of whomever, and when that was seen: by pid, Unix ms. */
  readonly deaths: () => ReadonlyMap<number, number>;
  /** Processes started so far. */
  readonly starts: () => number;
  /** Why the fleet is broken: a process ended that nobody killed. */
  readonly problem: () => Error | undefined;
  /** Resolves when every process has its full number, and serves. @throws Error when `signal` aborts. */
  readonly whole: (signal: AbortSignal) => Promise<void>;
  /** All stop as their operator would have it. @throws Error where one does not end well. */
  readonly stop: () => Promise<void>;
  /** Kills whatever is left. */
  readonly destroy: () => void;
}

export type FleetOptions = Omit<ProcessOptions, 'role'>;

interface State {
  readonly children: Set<ChildProcess>;
  readonly serving: Map<number, Living>;
  readonly deaths: Map<number, number>;
  starts: number;
  kills: number;
  isOver: boolean;
  problem?: Error;
}

function start(state: State, options: FleetOptions, role: Role, cache: string): void {
  const told = { ...options, role } satisfies ProcessOptions;
  const { process: child, ready, problem } = launch<Ready>(`a ${role}`, PROCESS, told, cache);
  const pid = child.pid ?? 0;
  state.children.add(child);
  state.starts += 1;
  void ready.then(
    ({ port }) => state.serving.set(pid, { role, pid, port, child, isPaused: false }),
    () => undefined,
  );
  child.once('exit', (code, signal) => {
    state.children.delete(child);
    state.serving.delete(pid);
    const wasKilled = signal === 'SIGKILL';
    if (wasKilled) state.deaths.set(pid, Date.now());
    if (wasKilled && !state.isOver) start(state, options, role, cache);
    else if (!wasKilled && !(state.isOver && code === 0)) state.problem ??= problem();
  });
}

async function until<T>(find: () => T | undefined, state: State, signal: AbortSignal): Promise<T> {
  for (;;) {
    const found = find();
    if (found !== undefined) return found;
    if (state.problem) throw state.problem;
    signal.throwIfAborted();
    await sleep(5);
  }
}

/** @param cache a folder in which processes keep what they have compiled, for those that come after them. */
export function startFleet(
  options: FleetOptions,
  roles: readonly Role[],
  random: Random,
  cache: string,
): Fleet {
  const state: State = {
    children: new Set(),
    serving: new Map(),
    deaths: new Map(),
    starts: 0,
    kills: 0,
    isOver: false,
  };
  const destroy = (): void => {
    state.isOver = true;
    for (const child of state.children) child.kill('SIGKILL');
  };
  // Stopped ones would stay.
  process.once('exit', destroy);
  for (const role of roles) start(state, options, role, cache);
  const one = (fits: (member: Living) => boolean): Living | undefined => {
    const fitting = [...state.serving.values()].filter(fits);
    return fitting.length === 0 ? undefined : random.pick(fitting);
  };
  return {
    door: (signal) => until(() => one(({ role, isPaused }) => role !== 'worker' && !isPaused), state, signal),
    kill: async (signal) => {
      for (let isSent = false; !isSent; state.kills += isSent ? 1 : 0) {
        const { child, pid } = await until(() => one(() => true), state, signal);
        state.serving.delete(pid);
        isSent = child.kill('SIGKILL');
      }
    },
    members: () => [...state.serving.values()],
    killThis: (pid) => {
      const isSent = state.serving.get(pid)?.child.kill('SIGKILL') ?? false;
      state.serving.delete(pid);
      if (isSent) state.kills += 1;
      return isSent;
    },
    pause: (pid) => {
      const member = state.serving.get(pid);
      if (member) member.isPaused = true;
    },
    resume: (pid) => {
      const member = state.serving.get(pid);
      if (member) member.isPaused = false;
      member?.child.kill('SIGCONT');
    },
    kills: () => state.kills,
    deaths: () => state.deaths,
    starts: () => state.starts,
    problem: () => state.problem,
    whole: (signal) =>
      until(() => (state.serving.size === roles.length ? true : undefined), state, signal).then(
        () => undefined,
      ),
    stop: async () => {
      state.isOver = true;
      const gone = [...state.children].map((child) => once(child, 'exit'));
      for (const child of state.children) child.send('stop');
      await Promise.all(gone);
      if (state.problem) throw state.problem;
    },
    destroy: () => {
      destroy();
      process.off('exit', destroy);
    },
  };
}
