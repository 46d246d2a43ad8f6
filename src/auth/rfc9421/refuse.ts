import { type AuthenticationCode, type CheckId, type Refusal, refused } from '../../outcome.ts';

/** A refusal of one of the checks of verification.md §2. `detail` is for the owner's log only. */
export function refuse(check: CheckId, code: AuthenticationCode, detail: string): Refusal {
  return refused(code, detail, check);
}

/** A sender's text in a `detail` or an alarm: quoted and short, whatever it holds. */
export function quoted(text: string): string {
  const printable = text.slice(0, 64).replace(/[^\x20-\x7e]/g, '?');
  return JSON.stringify(text.length > 64 ? `${printable}…` : printable);
}
