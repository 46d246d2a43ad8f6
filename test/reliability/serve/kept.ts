import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** One process that is started again whenever it was killed. */
export interface Kept {
  /** Resolves when it answers. @throws Error when `signal` aborts, or where it has ended by itself. */
  readonly up: (signal: AbortSignal) => Promise<void>;
  /** kill -9, if it lives; it is started again after so many ms. @returns whether it lived. */
  readonly kill: (awayMs: number) => boolean;
  readonly kills: () => number;
  /** SIGSTOP, and after so many ms SIGCONT, if it lives still. */
  readonly hang: (forMs: number) => Promise<void>;
  /** Processes started so far. */
  readonly starts: () => number;
  /** SIGTERM. @returns the exit code, or the signal. @throws Error where it has ended by itself before. */
  readonly stop: () => Promise<number | NodeJS.Signals>;
  /** Kills whatever is left. */
  readonly destroy: () => void;
}

export interface KeptOptions {
  /** For messages. */
  readonly name: string;
  readonly start: () => ChildProcess;
  /** Whether it answers; a rejection says that it does not. */
  readonly answers: () => Promise<boolean>;
  /** What it said last, for messages. */
  readonly said: () => string;
}

const LOOK_MS = 20;

interface State {
  child: ChildProcess | undefined;
  isUp: boolean;
  awayMs: number;
  kills: number;
  starts: number;
  isOver: boolean;
  problem: Error | undefined;
}

async function waitForAnswer(
  state: State,
  child: ChildProcess,
  answers: KeptOptions['answers'],
): Promise<void> {
  while (state.child === child && !state.isOver) {
    const isUp = await answers().catch(() => false);
    if (state.child !== child) return;
    state.isUp = isUp;
    if (isUp) return;
    await sleep(LOOK_MS);
  }
}

function begin(state: State, options: KeptOptions): void {
  if (state.isOver) return;
  const child = options.start();
  state.child = child;
  state.starts += 1;
  void waitForAnswer(state, child, options.answers);
  child.once('exit', (code, signal) => {
    state.child = undefined;
    state.isUp = false;
    if (state.isOver) return;
    if (signal === 'SIGKILL') setTimeout(() => begin(state, options), state.awayMs);
    else state.problem ??= new Error(`${options.name} ended by itself, ${code ?? signal}: ${options.said()}`);
  });
}

/** Starts it, and keeps it. */
export function keep(options: KeptOptions): Kept {
  const state: State = {
    child: undefined,
    isUp: false,
    awayMs: 0,
    kills: 0,
    starts: 0,
    isOver: false,
    problem: undefined,
  };
  const destroy = (): void => {
    state.isOver = true;
    state.child?.kill('SIGKILL');
  };
  process.once('exit', destroy);
  begin(state, options);
  return {
    async up(signal) {
      while (!state.isUp) {
        if (state.problem) throw state.problem;
        signal.throwIfAborted();
        await sleep(LOOK_MS);
      }
    },
    kill(awayMs) {
      state.awayMs = awayMs;
      state.isUp = false;
      const isSent = state.child?.kill('SIGKILL') ?? false;
      if (isSent) state.kills += 1;
      return isSent;
    },
    kills: () => state.kills,
    async hang(forMs) {
      const { child } = state;
      child?.kill('SIGSTOP');
      await sleep(forMs);
      child?.kill('SIGCONT');
    },
    starts: () => state.starts,
    async stop() {
      if (state.problem) throw state.problem;
      state.isOver = true;
      const { child } = state;
      if (!child) throw new Error(`${options.name} is not there to be stopped`);
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      const [code, signal] = (await gone) as [number | null, NodeJS.Signals];
      return code ?? signal;
    },
    destroy: () => {
      destroy();
      process.off('exit', destroy);
    },
  };
}
