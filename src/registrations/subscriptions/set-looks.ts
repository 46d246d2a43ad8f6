// Checks subscription sets that are due (subscriptions.md §1.4, §4). Finishes changes that a process left when it died,
// and compares active subscriptions with their seller once a day. Run by `registrations.start`.
import { MAX_TEXT, printableText } from '../../codec/printable.ts';
import type { RaiseAlarm } from '../../shared/alarms.ts';
import { messageOf } from '../../shared/errors.ts';
import { LOOK_MS, untilNextLook } from '../retry-loop.ts';
import { type ChangeContext, changeSet } from './change.ts';
import { take } from './hold.ts';
import { tellChange } from './subscription-news.ts';

export interface LooksContext extends ChangeContext {
  readonly raise: RaiseAlarm;
  readonly warn: (fields: object, message: string) => void;
}

/** The most subscription sets that a process checks concurrently. */
const MOST = 10;

/** Checks due subscription sets until the signal aborts; resolves when the running checks have ended. */
export async function lookAtSets(context: LooksContext, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) await context.sleep(await looks(context, stopping), stopping);
}

/** Checks the subscription sets that are due now. @returns the time until the next check. Ms. */
async function looks(context: LooksContext, stopping: AbortSignal): Promise<number> {
  const { registrations, holdMs, warn } = context;
  try {
    const found = await registrations.due({ kind: 'subscription', max: MOST, holdMs, senders: [] });
    await Promise.all(
      found.rows.map(async ({ sender, id }) => {
        try {
          await look(context, sender, id, stopping);
        } catch (error) {
          warn({ sender, error }, `${LATER} ${textOf(error)}`);
        }
      }),
    );
    return untilNextLook(found.nextDueMs);
  } catch (error) {
    warn({ error }, `Registrations: the store could not list the subscriptions. ${textOf(error)}`);
    return LOOK_MS;
  }
}

const LATER = 'Subscriptions are looked at again later.';

const textOf = (error: unknown): string => printableText(messageOf(error), MAX_TEXT);

async function look(
  context: LooksContext,
  agentUrl: string,
  name: string,
  stopping: AbortSignal,
): Promise<void> {
  const held = { agentUrl, name, by: context.newId() };
  const found = await take(context, held, (set) => set);
  if (!found || !('set' in found)) return;
  const changed = await changeSet(context, held, found.set, { credentials: {}, signal: stopping });
  if (!changed) return;
  tellChange(context.raise, held, changed);
  const { error, refused } = changed;
  if (error === undefined || refused.length > 0 || stopping.aborted) return;
  context.warn({ sender: agentUrl, error }, `${LATER} ${textOf(error)}`);
}
