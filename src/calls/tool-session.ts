import type { Moved } from './redirects.ts';
import { PrintableError } from '../codec/printable-value.ts';

/** A session with a seller over the tool transport, and what its requests have in common. */
export interface ToolSession {
  readonly url: string;
  readonly moved: Moved;
  /** As the seller has named it; undefined where it has none, or it is not open. */
  id: string | undefined;
  /** Of the protocol, as both sides have agreed. */
  version: string | undefined;
  /** Whether both sides have agreed: then a client does not begin anew. */
  isOpen: boolean;
  /** Of the next request: each of a session has another one. */
  nextId: number;
}

export const newSession = (url: string): ToolSession => ({
  url,
  moved: new Map(),
  id: undefined,
  version: undefined,
  isOpen: false,
  nextId: 0,
});

/** The seller does not know the session, or does not any more: what was asked was not done. */
export class SessionLostError extends PrintableError {
  override readonly name = 'SessionLostError';
  /** Stable, machine readable: always `session_lost`. */
  readonly code = 'session_lost';
}

/** Headers of a request within the session. */
export const sessionHeaders = ({ id, version }: ToolSession): Record<string, string> => ({
  ...(id !== undefined && { 'mcp-session-id': id }),
  ...(version !== undefined && { 'mcp-protocol-version': version }),
});
