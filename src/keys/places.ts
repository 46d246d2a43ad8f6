// The URLs at which a sender's keys are searched: the well-known URL, and the one that the seller declares
// (verification.md §5.1a). The code calls them places.
// Called by the resolver around every search; each place is searched like a separate sender.

import type { RaiseAlarm } from '../shared/alarms.ts';
import { isThenable } from '../shared/realms.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import { settledWithin } from '../shared/time-limits.ts';
import { brandJsonUrl, createMoveWatch } from './agent-location.ts';
import type { KeyRequest, KeySearch } from './key-resolver.ts';
import type { Declarations, Declared } from './declarations.ts';
import { urlRefusedReason } from './net/addresses.ts';

/**
 * The places (URLs) at which a sender's keys are searched (verification.md §5.1a), in the order of the search. Each
 * place is represented as a sender with that URL.
 */
export interface Places {
  /**
   * Returns the places that are known now, without waiting.
   * @param sender a configured sender, or one of its places.
   */
  readonly of: (sender: SenderEntry) => readonly SenderEntry[];
  /** Reads the declarations of these senders from the store. Undefined if all declarations have been read before. */
  ready(senders: readonly SenderEntry[], waitMs: () => number): Promise<void> | undefined;
  /**
   * Searches the first place of each sender. If no first place has the key, searches the other places, and then any
   * place that was declared meanwhile.
   * @param search searches a key among the senders of a request.
   */
  find(
    request: KeyRequest,
    search: (request: KeyRequest) => KeySearch | Promise<KeySearch>,
    waitMs: () => number,
  ): KeySearch | Promise<KeySearch>;
  /**
   * Returns the request from which `find` or `everywhere` made `request` for some or all places. Any other request is
   * returned unchanged. Fetches and waiting time are limited for the original request as a whole.
   */
  whole(request: KeyRequest): KeyRequest;
  /** Returns the request with each sender replaced by all of its places. */
  everywhere(request: KeyRequest): KeyRequest;
}

interface PlacesOptions {
  readonly declarations: Declarations;
  readonly allowLoopback: boolean;
  readonly raiseAlarm: RaiseAlarm;
}

/** Before a key is called unknown, a declaration that was read longer ago than this is read again, in ms. */
const REREAD_MS = 10_000;

/**
 * True if the seller's declaration may be used: the owner has configured no brand.json URL and no keys, and the
 * edition allows it.
 */
function mayDeclare({ auth, brandJsonUrl: configured, pins, edition }: SenderEntry): boolean {
  const isOpen = auth.scheme === 'signature' && configured === undefined && pins === undefined;
  return isOpen && edition.declaredPlace !== 'ignored';
}

/** True if no other place has to be searched: a candidate was found, or no sender may declare a place. */
const isFinal = ({ candidates }: KeySearch, { senders }: KeyRequest): boolean =>
  candidates.length > 0 || !senders.some(mayDeclare);

export function createPlaces({ declarations, allowLoopback, raiseAlarm }: PlacesOptions): Places {
  const noteMoved = createMoveWatch(raiseAlarm, 'brand.json', 'is declared at');
  const origins = new WeakMap<SenderEntry, SenderEntry>();
  const wholes = new WeakMap<KeyRequest, KeyRequest>();
  const made = new WeakMap<
    SenderEntry,
    { readonly declared: Declared; readonly places: readonly SenderEntry[] }
  >();

  const placesBy = (sender: SenderEntry, { brandJsonUrl: url, keyOrigin }: Declared): SenderEntry[] => {
    const isAlone = sender.edition.declaredPlace === 'alone';
    const isNamed = url !== undefined && urlRefusedReason(url, allowLoopback) === undefined;
    if (!isNamed && !(isAlone && keyOrigin !== undefined)) return [sender];
    if (isNamed) noteMoved(sender.agentUrl, url);
    // If a seller declares the URL of its brand.json, the registrable domain's file is not used in addition
    // (verification.md §5.1).
    const own = isNamed
      ? { ...sender, edition: { ...sender.edition, asksRegistrableDomain: false } }
      : sender;
    origins.set(own, sender);
    if (!isAlone && url === brandJsonUrl(sender, allowLoopback)) return [own];
    const declared = { ...(keyOrigin !== undefined && { keyOrigin }) };
    const place = { ...sender, ...(isNamed && { brandJsonUrl: url }), declared };
    origins.set(place, sender);
    return isAlone ? [place] : [place, own];
  };
  const of: Places['of'] = (given) => {
    const sender = origins.get(given) ?? given;
    const known = made.get(sender);
    const declared = declarations.of(sender.agentUrl);
    if (known?.declared === declared) return known.places;
    const places = mayDeclare(sender) ? placesBy(sender, declared) : [sender];
    made.set(sender, { declared, places });
    return places;
  };
  const part = (request: KeyRequest, senders: readonly SenderEntry[]): KeyRequest => {
    if (senders.length === request.senders.length && senders.every((one, i) => one === request.senders[i]))
      return request;
    const made = { ...request, senders };
    wholes.set(made, request);
    return made;
  };
  /** True if each sender has one place, which is the sender itself. That is so for nearly every request. */
  const isWhole = ({ senders }: KeyRequest): boolean =>
    senders.every((sender) => {
      const places = of(sender);
      return places.length === 1 && places[0] === sender;
    });
  const firstPart = (request: KeyRequest): KeyRequest =>
    part(
      request,
      request.senders.map((sender) => of(sender)[0] ?? sender),
    );

  const ready: Places['ready'] = (senders, waitMs) => {
    const unread = senders.filter((one) => mayDeclare(one) && !declarations.isRead(one.agentUrl));
    if (unread.length === 0) return undefined;
    const reading = Promise.all(unread.map(({ agentUrl }) => declarations.read(agentUrl)));
    return settledWithin(reading, waitMs()).then(() => undefined);
  };
  /**
   * Reads the declarations again. Returns the senders whose declaration changed, and the reasons for those that
   * could not be read.
   */
  const reread = async (senders: readonly SenderEntry[], waitMs: number) => {
    const changed: SenderEntry[] = [];
    const undecided: string[] = [];
    const reading = senders.filter(mayDeclare).map(async (sender) => {
      const read = declarations.read(sender.agentUrl, REREAD_MS);
      const result = (await settledWithin(read, waitMs)) ?? 'failed';
      if (result === 'changed') changed.push(sender);
      if (result === 'failed') undecided.push(`${sender.agentUrl}: what it declared cannot be read`);
    });
    await Promise.all(reading);
    return { changed, undecided };
  };

  const findFurther = async (
    request: KeyRequest,
    search: (request: KeyRequest) => KeySearch | Promise<KeySearch>,
    waitMs: () => number,
    asked: KeySearch | Promise<KeySearch>,
  ): Promise<KeySearch> => {
    const first = await asked;
    if (isFinal(first, request)) return first;
    const reasons = [...first.undecided];
    const searchAt = async (senders: readonly SenderEntry[]): Promise<KeySearch | undefined> => {
      if (senders.length === 0) return undefined;
      const found = await search(part(request, senders));
      reasons.push(...found.undecided);
      return found.candidates.length > 0 ? found : undefined;
    };
    const others = await searchAt(request.senders.flatMap((sender) => of(sender).slice(1)));
    if (others) return others;
    const { changed, undecided } = await reread(request.senders, waitMs());
    reasons.push(...undecided);
    return (await searchAt(changed.flatMap(of))) ?? { candidates: [], undecided: reasons };
  };

  return {
    of,
    ready,
    find: (request, search, waitMs) => {
      const first = search(isWhole(request) ? request : firstPart(request));
      // A final result that was found without a promise is returned without one.
      return !isThenable(first) && isFinal(first, request)
        ? first
        : findFurther(request, search, waitMs, first);
    },
    whole: (request) => wholes.get(request) ?? request,
    everywhere: (request) => (isWhole(request) ? request : part(request, request.senders.flatMap(of))),
  };
}
