// Makes a sink (destination of events) from a module of the owner (serve.md §2.9). An instance calls it.
import { ConfigError } from '../../index.ts';
import type { Event } from '../../events/event.ts';
import { onAbort } from './on-abort.ts';
import { type Sink, type SinkAttempt, SinkFault } from './sink.ts';

/** The second argument of a module's `send`. */
export type SendContext = Pick<SinkAttempt, 'signal' | 'id' | 'run' | 'log'>;

interface SinkModule {
  readonly send: (event: Event, context: SendContext) => unknown;
  readonly close?: () => unknown;
}

export interface ModuleSinkOptions {
  /** The path of the module, for messages. */
  readonly name: string;
  /** The time limit of `send`. Ms. */
  readonly timeoutMs: number;
}

/** Makes a sink from the owner's module (serve.md §2.9). @throws ConfigError if it exports no `send`. */
export function moduleSink(module: unknown, { name, timeoutMs }: ModuleSinkOptions): Sink {
  const { send, close } = exportsOf(module, name);
  const underWay = new Set<Promise<unknown>>();

  async function sendOne({ event, signal, id, run, log }: SinkAttempt): Promise<void> {
    signal.throwIfAborted();
    const own = new AbortController();
    const late = Promise.withResolvers<never>();
    const stop = (why: unknown): void => {
      own.abort(why);
      late.reject(why);
    };
    const timer = setTimeout(
      () => stop(new SinkFault(`send has not ended within ${timeoutMs} ms`)),
      timeoutMs,
    );
    const takeBack = onAbort(signal, () => stop(signal.reason));
    const called = async (): Promise<unknown> => send(event, { signal: own.signal, id, run, log });
    const over = Promise.race([called(), late.promise]);
    underWay.add(over);
    try {
      await over;
    } finally {
      underWay.delete(over);
      clearTimeout(timer);
      takeBack();
    }
  }

  return {
    name,
    send: sendOne,
    check: async () => {},
    close: async () => {
      await Promise.allSettled(underWay);
      await close?.();
    },
  };
}

function exportsOf(module: unknown, name: string): SinkModule {
  const { send, close } = Object(module) as Partial<Record<keyof SinkModule, unknown>>;
  if (typeof send !== 'function') {
    throw new ConfigError(
      `${name}: exports no function send. Write: export async function send(event, { signal }) { … }`,
    );
  }
  if (close !== undefined && typeof close !== 'function') {
    throw new ConfigError(`${name}: its export close is not a function. Make it one, or leave it out.`);
  }
  return module as SinkModule;
}
