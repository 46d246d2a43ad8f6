import type { RegistrationRow } from '../contract.ts';
import type { RegistrationSearch } from '../rules/registrations.ts';
import { inTurns } from '../rules/registrations.ts';
import { noteExpiry, purge } from './expiry-queue.ts';
import type { MemoryState, SenderState } from './state.ts';
import { senderState } from './state.ts';
import { find, put } from './table.ts';

/** Entries looked at by each save: more than it adds. */
const PURGE_A_SAVE = 16;

/** Rows of registrations. What is searched is gone through: a memory store is for tests and development. */
export function registrationRows(state: MemoryState): RegistrationSearch {
  const all = (kind: RegistrationRow['kind']): readonly RegistrationRow[] =>
    [...state.senders.values()].flatMap(({ registrations }) => [...registrations[kind].byKey.values()]);
  return {
    registration: (kind, sender, id, now) => {
      const row = find(senderState(state, sender).registrations[kind], id);
      return row && (row.expiresAt === null || row.expiresAt > now) ? row : undefined;
    },
    saveRegistration: (row, now) => {
      purge(state.expiry, now, PURGE_A_SAVE);
      const { registrations, shelves } = senderState(state, row.sender);
      const table = registrations[row.kind];
      noteExpiry(state.expiry, shelves[row.kind], row.id, find(table, row.id)?.expiresAt, row.expiresAt);
      put(table, row.id, row);
    },
    dueRegistrations: (of, now) => {
      const bySender = new Map<string, RegistrationRow[]>();
      for (const row of all(of.kind)) {
        if (row.dueAt === null || row.dueAt > now) continue;
        const rows = bySender.get(row.sender);
        if (rows) rows.push(row);
        else bySender.set(row.sender, [row]);
      }
      for (const rows of bySender.values()) rows.sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0));
      return inTurns(bySender, of);
    },
    nextRegistration: (kind) => {
      const instants = all(kind).flatMap(({ dueAt }) => dueAt ?? []);
      return instants.length > 0 ? instants.reduce((a, b) => Math.min(a, b)) : undefined;
    },
    registrations: ({ kind, list, sender, limit, after }) => {
      const senders: readonly SenderState[] =
        sender === undefined
          ? [...state.senders.values()].filter((of) => of.sender !== '')
          : [senderState(state, sender)];
      return senders
        .flatMap(({ registrations }) => [...registrations[kind].byKey.values()])
        .filter((row) => list === undefined || row.list === list)
        .filter((row) => !after || compared(row.sender, after.sender) > 0 || isBehindOf(row, after))
        .sort((a, b) => compared(a.sender, b.sender) || compared(a.id, b.id))
        .slice(0, limit);
    },
  };
}

function isBehindOf(row: RegistrationRow, after: { readonly sender: string; readonly id: string }): boolean {
  return row.sender === after.sender && row.id > after.id;
}

function compared(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
