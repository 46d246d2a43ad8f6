// Takes tellings of a receiver's hooks, and finds the delivery that each is about (dev.md §3.2). The API passes them
// to it.
import type { DeliveryLog, Entry } from './delivery-log.ts';
import { nextStep } from './next-step.ts';
import type { Sellers } from './sellers.ts';
import type { HookEvent, Told } from './wire.ts';

/** The time for which a telling that names no delivery may be about the latest one, ms. */
const RECENT_MS = 15_000;

/** The parts that tellings change. */
export interface TellingParts {
  readonly sellers: Sellers;
  readonly log: DeliveryLog;
  /** Unix ms. */
  readonly now: () => number;
  readonly heard: (event: HookEvent) => void;
}

/** The word for the row; undefined: it keeps the one it has. */
function wordOf(told: Told, { row }: Entry): string | undefined {
  switch (told.hook) {
    case 'handled':
      return told.state;
    case 'refused':
      return 'refused';
    case 'outcome':
      // A copy has the state of the event, but what became of the copy is that it was one.
      if (told.kind === 'duplicate' || told.kind === 'stale') return told.kind;
      // An earlier telling of the run's end says more.
      return row.told ?? told.state ?? told.kind;
    case 'alarm':
      return undefined;
  }
}

/** True if a hook of this kind told of the entry already. */
const hasHeard = ({ tellings }: Entry, { hook }: Told): boolean =>
  tellings.some((told) => told.hook === hook);

/** True if the answer that is told may be the entry's. */
const mayBe = ({ row }: Entry, told: Told): boolean =>
  told.hook === 'handled' || !('status' in told) || row.status === undefined || row.status === told.status;

/** True if the entry was told to be a copy: no handler ran for it. */
const isCopy = ({ tellings }: Entry): boolean =>
  tellings.some((told) => told.hook === 'outcome' && (told.kind === 'duplicate' || told.kind === 'stale'));

/** Unix ms of its answer: answers come in the order in which a receiver tells of them. */
const answeredAt = ({ row: { at, ms } }: Entry): number =>
  ms === undefined ? Number.POSITIVE_INFINITY : at + ms;

/** The one that was answered first. Of those that have no answer yet: the one that was sent first. */
const firstAnswered = (entries: readonly Entry[]): Entry | undefined =>
  entries.reduce<Entry | undefined>(
    (first, entry) => (first && answeredAt(first) <= answeredAt(entry) ? first : entry),
    undefined,
  );

/** The delivery that a hook told of; undefined: none of dev's. */
function aboutOf(told: Told, { log, now, sellers }: TellingParts): Entry | undefined {
  const seller = sellers.list.find(({ agentUrl }) => agentUrl === told.sender);
  const isSent = ({ to, row }: Entry): boolean =>
    to !== undefined && (!seller || row.scheme === seller.scheme);
  const isNew = (entry: Entry): boolean => isSent(entry) && mayBe(entry, told) && !hasHeard(entry, told);
  const latest = (fits: (entry: Entry) => boolean): Entry | undefined =>
    log.findLast((entry) => isNew(entry) && fits(entry)) ??
    log.findLast((entry) => isSent(entry) && fits(entry));
  // Copies of an event have one key, and the hook may tell of the first when the second has been sent.
  const next = (fits: (entry: Entry) => boolean): Entry | undefined => {
    const isMeant = (entry: Entry): boolean => fits(entry) && !(told.hook === 'handled' && isCopy(entry));
    const candidates = log.all((entry) => isNew(entry) && isMeant(entry) && entry.row.at > now() - RECENT_MS);
    return firstAnswered(candidates) ?? latest(isMeant);
  };
  if (told.hook === 'alarm')
    return latest(({ row }) => row.at > now() - RECENT_MS && row.state !== 'captured');
  if ('proof' in told && told.proof !== undefined) return next(({ proof }) => proof === told.proof);
  if ('key' in told && told.key !== undefined) return next(({ key }) => key === told.key);
  // A body without an event has neither key nor proof. An outcome may also lack a sender: it was decided before the
  // sender was known, e.g. because a store is away. Then it is one of dev's if dev has just sent a delivery with that
  // answer.
  const isRecent = ({ row }: Entry): boolean => seller !== undefined || row.at > now() - RECENT_MS;
  return log.findLast((entry) => isNew(entry) && isRecent(entry));
}

/** Keeps a telling with its delivery, whose next step may follow from it. */
function keep(told: Told, about: Entry, { log, sellers }: TellingParts): void {
  const { id, scheme = 'signature' } = about.row;
  const word = wordOf(told, about);
  const entry = log.change(id, { told, ...(word !== undefined && { row: { told: word } }) });
  const next = entry && nextStep(entry, sellers.byScheme[scheme]);
  if (next !== undefined && next !== entry?.row.next) log.change(id, { row: { next } });
}

/** Omits the event, which the delivery has: the ring of events keeps many tellings. */
function briefly(told: Told): Told {
  if (told.hook !== 'outcome') return told;
  const { event: _event, ...rest } = told;
  return rest;
}

/** Makes the function that takes tellings (dev.md §3.2). Of others' sellers nothing is kept. */
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
