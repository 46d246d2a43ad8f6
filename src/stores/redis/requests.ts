import type { AcceptRequest, CompleteRequest } from '../contract.ts';
import type { Values } from './args.ts';
import { argsOf } from './args.ts';
import { batchesOf } from './batches.ts';
import type { Arg } from './client.ts';
import type { Keys } from './keys.ts';
import type { Lane } from './lane.ts';
import type { NonceCounts } from './nonce-counts.ts';
import { acceptArgs, completeArgs } from './pack.ts';
import type { ScriptName, Scripts } from './scripts.ts';

/** What a script is told: by names, or as it wants it, with the ms that are added to the server's clock. */
type Told = Values | ((offset: number) => Arg[]);

/** @param requests that the script is told of; 1. */
type Run = (script: ScriptName, sender: string, told: Told, requests?: number) => Promise<unknown>;

/** A media buy of a report has a row of its own: it takes the server as long as some KB of a body. */
const BUY_BYTES = 1024;

/** What is asked of the rows of a sender. */
export interface Requests {
  /** Runs a script on a sender's rows; answers once the replicas that are asked for have it. */
  readonly run: Run;
  /** Runs a script that reads only and decides nothing. */
  readonly read: Run;
  /** Runs `accept`; those of a sender that come together share one script. */
  readonly accept: (request: AcceptRequest) => Promise<unknown>;
  /** Runs `complete`, likewise. */
  readonly complete: (request: CompleteRequest) => Promise<unknown>;
}

export interface RequestsParts {
  readonly keys: Keys;
  readonly scripts: Scripts;
  readonly clockOffsetMs: () => number;
  readonly counts: NonceCounts;
}

export function requestsOf(lane: Lane, { keys, scripts, clockOffsetMs, counts }: RequestsParts): Requests {
  const send =
    (way: Lane['run']): Run =>
    (script, sender, told, requests) => {
      const offset = Math.round(clockOffsetMs());
      const args = typeof told === 'function' ? told(offset) : argsOf({ offset, ...told });
      return way({ script: scripts[script], keys: keys.of(sender), args, requests });
    };
  const run = send(lane.run);
  const accepts = batchesOf<AcceptRequest>({
    send: (sender, requests) => {
      const otherNonces = counts.others(sender);
      return run(
        'accept',
        sender,
        (offset) => acceptArgs(requests, { otherNonces, offset }),
        requests.length,
      );
    },
    bytesOf: ({ event }) => (event?.body.length ?? 0) + BUY_BYTES * (event?.report?.mediaBuyIds.length ?? 0),
  });
  const completions = batchesOf<CompleteRequest>({
    send: (sender, requests) =>
      run('complete', sender, (offset) => completeArgs(requests, offset), requests.length),
    bytesOf: () => 0,
  });
  return {
    run,
    read: send(lane.read),
    accept: (request) => accepts.run(request.sender, request),
    complete: (request) => completions.run(request.sender, request),
  };
}
