import type { PostResult } from '../../testing/seller-post.ts';
import type { ProbeKit } from './kit.ts';

/** How a receiver that remembers a failed fetch is waited for. */
export interface Patience {
  /** Ms in all. A receiver remembers a failed fetch for at most 60 s (verification.md §5.19). */
  readonly ms: number;
  /** Unix ms. */
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
  /** Called once, before the first pause. */
  readonly begins: () => void;
  /** Whether everything else that the receiver has to fetch was asked for; absent: there is nothing else. */
  readonly complete?: (() => boolean) | undefined;
}

/** Ms between two deliveries, whatever `Retry-After` says. */
const PAUSE = { least: 1_000, most: 10_000 } as const;

/** 503 with `Retry-After`, and nothing that a seller would take for the end of the event. */
export function isPutOff({ status, headers }: PostResult): boolean {
  return status === 503 && 'retry-after' in headers && !('www-authenticate' in headers);
}

function pauseAfter({ headers }: PostResult): number {
  const seconds = Number(headers['retry-after'] ?? 0);
  return Math.min(Math.max((Number.isFinite(seconds) ? seconds : 0) * 1000, PAUSE.least), PAUSE.most);
}

/**
 * Sends one good event, signed anew each time, until it is no longer put off. Until then nothing can be said of the
 * receiver: its keys are served only while the probe runs, and it may have asked for them before.
 * @returns whether it was put off at first and is no longer.
 */
export async function awaitKeys(kit: ProbeKit, patience: Patience): Promise<boolean> {
  const { ms, now, pause, begins, complete = () => true } = patience;
  const event = kit.payloads.tool('submitted');
  const until = now() + ms;
  let answer = await kit.send(await kit.sign(event));
  if (!isPutOff(answer)) return false;
  let pauseMs = pauseAfter(answer);
  if (now() + pauseMs <= until) begins();
  while ((isPutOff(answer) || !complete()) && now() + pauseMs <= until) {
    await pause(pauseMs);
    answer = await kit.send(await kit.sign(event));
    if (isPutOff(answer)) pauseMs = pauseAfter(answer);
  }
  return !isPutOff(answer);
}
