import { type AuthenticationCode, type CheckId, type Refusal, refused } from '../../outcome.ts';

/** A refusal of one of the checks of verification.md §2. `detail` is for the owner's log only. */
export function refuse(check: CheckId, code: AuthenticationCode, detail: string): Refusal {
  return refused(code, detail, check);
}
