import type { SenderEntry } from '../senders.ts';
import type { Candidate, KeySearch } from './contract.ts';

/** What asking one sender gave; both where an old key is held and a newer one could not be had. */
export interface Reply {
  /** Several where publishers pin several keys under one `kid`. Absent or at least one. */
  readonly candidates?: readonly Candidate[];
  /** Why this sender's keys do not decide; for the owner's log. */
  readonly undecided?: string;
}

export interface GatherLimits {
  /** Senders asked at a time. */
  readonly width: number;
  /** Ms after which senders that have not answered are undecided; none where absent. */
  readonly deadlineMs?: number;
  /** Ms for which other senders are waited for once there is a candidate: one slow seller must not hold up the rest. */
  readonly graceMs: number;
}

/**
 * Asks every sender, `width` at a time; answers in the order of `senders`. Never rejects.
 * @param turns the same senders in the order in which they are asked.
 */
export async function gather(
  senders: readonly SenderEntry[],
  ask: (sender: SenderEntry) => Promise<Reply>,
  limits: GatherLimits,
  turns: readonly SenderEntry[] = senders,
): Promise<KeySearch> {
  const replies = new Map<SenderEntry, Reply>();
  const queue = turns.values();
  const timers: ReturnType<typeof setTimeout>[] = [];
  let over = false;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      over = true;
      resolve();
    };
    const work = async (): Promise<void> => {
      for (const sender of queue) {
        if (over) return;
        const reply = await attempt(sender, ask);
        replies.set(sender, reply);
        if (reply.candidates !== undefined) timers.push(setTimeout(end, limits.graceMs));
      }
    };
    if (limits.deadlineMs !== undefined) timers.push(setTimeout(end, limits.deadlineMs));
    void Promise.all(Array.from({ length: Math.min(limits.width, senders.length) }, work)).then(end);
  });
  for (const timer of timers) clearTimeout(timer);
  return summary(senders, replies);
}

/** A fault of ours with one sender (no engine, no suffix list) leaves that sender undecided and no other. */
export async function attempt(
  sender: SenderEntry,
  ask: (sender: SenderEntry) => Promise<Reply>,
): Promise<Reply> {
  try {
    return await ask(sender);
  } catch (error) {
    return { undecided: error instanceof Error ? error.message : 'failed' };
  }
}

export function summary(
  senders: readonly SenderEntry[],
  replies: ReadonlyMap<SenderEntry, Reply>,
): KeySearch {
  const candidates: Candidate[] = [];
  const undecided: string[] = [];
  for (const sender of senders) {
    const reply = replies.get(sender) ?? { undecided: 'no answer in time' };
    candidates.push(...(reply.candidates ?? []));
    if (reply.undecided !== undefined) undecided.push(`${sender.agentUrl}: ${reply.undecided}`);
  }
  return { candidates, undecided };
}
