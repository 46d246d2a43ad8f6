/** Room for bodies that are being read or not yet answered: what uploads can take of this process. */
export interface Room {
  /** False: no room for that many bytes more; nothing was counted. */
  readonly take: (sender: string, bytes: number) => boolean;
  readonly give: (sender: string, bytes: number) => void;
}

/**
 * A sender gets as much as it leaves free for the others, and what is assured in any case: however many uploads one of
 * them holds open, there is room for the next sender.
 * @param maxBytes of all of them.
 * @param assured bytes: one body; all, where there are no others.
 */
export function createRoom(maxBytes: number, assured: number): Room {
  let held = 0;
  const bySender = new Map<string, number>();
  return {
    take(sender, bytes) {
      const own = (bySender.get(sender) ?? 0) + bytes;
      const free = maxBytes - held - bytes;
      if (free < 0 || own > Math.max(free, assured)) return false;
      held += bytes;
      bySender.set(sender, own);
      return true;
    },
    give(sender, bytes) {
      held -= bytes;
      const own = (bySender.get(sender) ?? 0) - bytes;
      if (own > 0) bySender.set(sender, own);
      else bySender.delete(sender);
    },
  };
}
