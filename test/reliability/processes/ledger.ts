import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';

/** What a process writes of what it does, before it goes on: a process that is killed has still written it. */
export type Line =
  /** A handler was called. */
  | {
      readonly what: 'run';
      readonly key: string;
      readonly pid: number;
      readonly run: number;
      /** What the event tells of a task. */
      readonly told?: ToldOfTask;
      /** Unix ms. */
      readonly at?: number;
    }
  /** Its effect outside the store. */
  | { readonly what: 'effect'; readonly key: string; readonly pid: number; readonly copy: string }
  /** The store told this owner that it completed the event. */
  | { readonly what: 'told'; readonly key: string; readonly pid: number; readonly owner: string }
  /** The process stops (SIGSTOP) in the handler, until somebody lets it go on. */
  | { readonly what: 'pause'; readonly key: string; readonly pid: number }
  /** It goes on. */
  | { readonly what: 'woke'; readonly key: string; readonly pid: number }
  /** The handler throws, as it was told to. */
  | { readonly what: 'fail'; readonly key: string; readonly pid: number }
  /** A process begins to read or write registrations; `key` names that turn. */
  | { readonly what: 'turn'; readonly key: string; readonly pid: number }
  /** Its poller asks a seller about a task, as was decided in the turn of this key. */
  | { readonly what: 'ask'; readonly key: string; readonly pid: number; readonly taskId: string }
  /** The process begins an operation, whose request key this is: written before the store has it. */
  | { readonly what: 'begin'; readonly key: string; readonly pid: number }
  /** The process kills itself in the handler, or at a point of a call. */
  | { readonly what: 'die'; readonly key: string; readonly pid: number; readonly point?: string };

/** What an event tells of a task. */
export interface ToldOfTask {
  readonly taskId: string;
  readonly status: string;
  readonly source: string;
  /** `result.step`: the seller's number of the status. */
  readonly step?: number;
  /** `result.media_buy_id`. */
  readonly resultId?: string;
}

export type Write = (line: Line) => void;

/** Opened for appending, a line a write: lines of several processes never mix, and none is lost with its process. */
export function ledgerWriter(file: string): Write {
  const fd = openSync(file, 'a');
  return (line) => {
    writeSync(fd, `${JSON.stringify(line)}\n`);
  };
}

/** A ledger as it grows. */
export interface LedgerReader<L = Line> {
  /** All lines so far, in the order in which they were written. */
  readonly read: () => readonly L[];
  readonly close: () => void;
}

export function ledgerReader<L = Line>(file: string): LedgerReader<L> {
  const fd = openSync(file, 'a+');
  const lines: L[] = [];
  let offset = 0;
  return {
    read: () => {
      const more = Buffer.alloc(fstatSync(fd).size - offset);
      const text = more.subarray(0, readSync(fd, more, 0, more.length, offset));
      const end = text.lastIndexOf('\n') + 1;
      offset += end;
      for (const line of text.subarray(0, end).toString().split('\n')) {
        if (line !== '') lines.push(JSON.parse(line) as L);
      }
      return lines;
    },
    close: () => closeSync(fd),
  };
}
