// Takes hook reports (what `devHooks` in the receiver reports), and finds the delivery that each is about (dev.md
// §3.2). The API calls it.
import type { DeliveryLog, Entry } from './delivery-log.ts';
import { nextStep } from './next-step.ts';
import type { Sellers } from './sellers.ts';
import type { HookEvent, Told } from './wire.ts';

/**
 * The age up to which a delivery counts as recent, ms. A report of a hook that names no delivery can only be about a
 * recent one.
 */
const RECENT_MS = 15_000;

/** The parts of dev that change when a hook of the receiver reports. */
export interface TellingParts {
  readonly sellers: Sellers;
  readonly log: DeliveryLog;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  readonly heard: (event: HookEvent) => void;
}

/** Returns the word that the row shows as `told` after a report of a hook. Undefined: the row keeps its word. */
function wordOf(told: Told, { row }: Entry): string | undefined {
  switch (told.hook) {
    case 'handled':
      return told.state;
    case 'refused':
      return 'refused';
    case 'outcome':
      // For a duplicate the hook reports the state that the event has from its first copy. The row shows `duplicate` or
      // `stale` instead.
      if (told.kind === 'duplicate' || told.kind === 'stale') return told.kind;
      // If a hook reported the end of the handler's run first, the row keeps that word, because it says more.
      return row.told ?? told.state ?? told.kind;
    case 'alarm':
      return undefined;
  }
}

/** True if a hook of the same kind has reported about the delivery already. */
const hasHeard = ({ tellings }: Entry, { hook }: Told): boolean =>
  tellings.some((told) => told.hook === hook);

/** False only if the hook reported another status than that of the delivery's answer. */
const mayBe = ({ row }: Entry, told: Told): boolean =>
  told.hook === 'handled' || !('status' in told) || row.status === undefined || row.status === told.status;

/** True if a hook reported the delivery as a duplicate or as stale, so that no handler ran for it. */
const isCopy = ({ tellings }: Entry): boolean =>
  tellings.some((told) => told.hook === 'outcome' && (told.kind === 'duplicate' || told.kind === 'stale'));

/**
 * Returns the time of the answer to the delivery, Unix ms; infinity if there is no answer. A receiver reports
 * deliveries in the order in which it answered them.
 */
const answeredAt = ({ row: { at, ms } }: Entry): number =>
  ms === undefined ? Number.POSITIVE_INFINITY : at + ms;

/** Returns the delivery that was answered first. If none was answered yet, returns the one that was sent first. */
const firstAnswered = (entries: readonly Entry[]): Entry | undefined =>
  entries.reduce<Entry | undefined>(
    (first, entry) => (first && answeredAt(first) <= answeredAt(entry) ? first : entry),
    undefined,
  );

/** Finds the delivery that a report of a hook is about. Returns undefined if it is about none of dev's deliveries. */
function aboutOf(told: Told, { log, now, sellers }: TellingParts): Entry | undefined {
  const seller = sellers.list.find(({ agentUrl }) => agentUrl === told.sender);
  const isSent = ({ to, row }: Entry): boolean =>
    to !== undefined && (!seller || row.scheme === seller.scheme);
  const isNew = (entry: Entry): boolean => isSent(entry) && mayBe(entry, told) && !hasHeard(entry, told);
  const latest = (fits: (entry: Entry) => boolean): Entry | undefined =>
    log.findLast((entry) => isNew(entry) && fits(entry)) ??
    log.findLast((entry) => isSent(entry) && fits(entry));
  // Copies of an event have the same key. A report about the first copy may come after the second was sent. So it is
  // taken to be about the first copy without a report.
  const next = (fits: (entry: Entry) => boolean): Entry | undefined => {
    const isMeant = (entry: Entry): boolean => fits(entry) && !(told.hook === 'handled' && isCopy(entry));
    const candidates = log.all((entry) => isNew(entry) && isMeant(entry) && entry.row.at > now() - RECENT_MS);
    return firstAnswered(candidates) ?? latest(isMeant);
  };
  if (told.hook === 'alarm')
    return latest(({ row }) => row.at > now() - RECENT_MS && row.state !== 'captured');
  if ('proof' in told && told.proof !== undefined) return next(({ proof }) => proof === told.proof);
  if ('key' in told && told.key !== undefined) return next(({ key }) => key === told.key);
  // This report has no signature and no key, e.g. because the body had no event. If it also lacks the sender, e.g.
  // because the store was down, only a recent delivery can be meant.
  const isRecent = ({ row }: Entry): boolean => seller !== undefined || row.at > now() - RECENT_MS;
  return log.findLast((entry) => isNew(entry) && isRecent(entry));
}

/** Adds a report of a hook to its delivery, and updates the advice. */
function keep(told: Told, about: Entry, { log, sellers }: TellingParts): void {
  const { id, scheme = 'signature' } = about.row;
  const word = wordOf(told, about);
  const entry = log.change(id, { told, ...(word !== undefined && { row: { told: word } }) });
  const next = entry && nextStep(entry, sellers.byScheme[scheme]);
  if (next !== undefined && next !== entry?.row.next) log.change(id, { row: { next } });
}

/**
 * Returns a report of a hook without the event. Many reports are kept in memory, and the delivery has the event anyway.
 */
function briefly(told: Told): Told {
  if (told.hook !== 'outcome') return told;
  const { event: _event, ...rest } = told;
  return rest;
}

/**
 * Makes the function that takes reports of the receiver's hooks (dev.md §3.2). Reports about other senders than dev's
 * sellers are dropped.
 */
export function createTelling(parts: TellingParts): (told: Told) => void {
  const isOurs = ({ sender }: Told): boolean =>
    sender === undefined || parts.sellers.list.some(({ agentUrl }) => agentUrl === sender);
  return (told) => {
    if (!isOurs(told)) return;
    const about = aboutOf(told, parts);
    if (about) keep(told, about, parts);
    if (about || told.hook === 'alarm')
      parts.heard({ told: briefly(told), ...(about && { delivery: about.row.id }) });
  };
}
