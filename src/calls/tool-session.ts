// Defines a session with a seller over the tool transport (MCP): its id, its version, its next request (calls.md
// §4.12). `mcpCaller` opens it; the tool transport sends its headers.
import type { Moved } from './redirects.ts';
import { PrintableError } from '../codec/printable-value.ts';

/** An MCP session with a seller, shared by its requests. */
export interface ToolSession {
  readonly url: string;
  readonly moved: Moved;
  /** The id that the seller gave the session; undefined if it gave none, or the session is not open. */
  id: string | undefined;
  /** The version of MCP that both sides have agreed on. */
  version: string | undefined;
  /**
   * True once both sides have agreed on the version. The client of a further call then does not repeat the
   * initialization.
   */
  isOpen: boolean;
  /** The id of the next request. Each request of a session has its own. */
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

/** Thrown if the seller does not know the session any more. The request was not carried out. */
export class SessionLostError extends PrintableError {
  override readonly name = 'SessionLostError';
  /** The stable code, always `session_lost`. */
  readonly code = 'session_lost';
}

/** Returns the headers of a request within the session. */
export const sessionHeaders = ({ id, version }: ToolSession): Record<string, string> => ({
  ...(id !== undefined && { 'mcp-session-id': id }),
  ...(version !== undefined && { 'mcp-protocol-version': version }),
});
