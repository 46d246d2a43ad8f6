/** Where a page ended. */
export interface Cursor {
  /** Score in the sender's list, as Redis gave it. */
  readonly place: string;
  readonly sender: string;
  readonly key: string;
}

/** The `next` of a page: opaque, and the same in every process. JSON keeps lone surrogates as they are. */
export function cursorOf({ place, sender, key }: Cursor): string {
  return Buffer.from(JSON.stringify([place, sender, key])).toString('base64url');
}

/** undefined: from the beginning; null: no page gave that. */
export function readCursor(text: string | undefined): Cursor | undefined | null {
  if (text === undefined) return undefined;
  try {
    const [place, sender, key] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[];
    if (typeof place !== 'string' || !Number.isFinite(Number(place))) return null;
    return typeof sender === 'string' && typeof key === 'string' ? { place, sender, key } : null;
  } catch {
    return null;
  }
}
