// Implements `registrations.state` and `retire`. Also notes deliveries at URLs for the receiver, and tells the receiver
// if a URL is retired. `createRegistrations` calls it; most of the code is loaded when first used.
import type { EventRegistrations } from '../../events/event-registration.ts';
import type { RaiseAlarm } from '../../shared/alarms.ts';
import { givenCaller, requireRetired, requireStateQuery } from '../option-checks.ts';
import type { CallSeller } from '../call-seller.ts';
import type { Routes } from '../routes.ts';
import { checked, requestInvalid } from '../seller.ts';
import type { CheckContext } from './check.ts';
import { heardUrls } from './heard.ts';
import type { StateContext } from './state.ts';
import type { RegistrationUrls } from './state-types.ts';

interface UrlsContext extends StateContext, Omit<CheckContext, 'call'> {
  readonly call: CallSeller | undefined;
  readonly base: string;
  readonly routes: Pick<Routes, 'given' | 'isRetired' | 'reread'>;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly raise: RaiseAlarm;
}

/**
 * Returns `state` and `retire`, and the two functions that the receiver calls: for each delivery, and for retired URLs.
 */
export function urlsOf(
  context: UrlsContext,
): RegistrationUrls & Required<Pick<EventRegistrations, 'heard' | 'retired'>> {
  const { routes } = context;
  const { heard, used } = heardUrls({ ...context, given: routes.given });
  return {
    heard,
    retired: (url, sender) => (routes.isRetired(url) ? (used(url, sender) ?? {}) : undefined),
    state: async (query = {}) => {
      requireStateQuery(query);
      const { check = false, signal = new AbortController().signal } = query;
      const call = check
        ? checked(() => givenCaller('registrations.state({ check: true })', context.call))
        : undefined;
      const { checkedPage, stateOf, tellDrift } = await import('../on-demand.ts');
      const page = await stateOf(context, query).catch((error: unknown) => {
        throw requestInvalid(error);
      });
      if (!call) return page;
      const compared = await checkedPage({ ...context, call }, page, signal);
      await tellDrift(context, compared);
      return compared;
    },
    retire: async (url, how = {}) => {
      requireRetired(url, how);
      const { retire } = await import('../on-demand.ts');
      await retire({ ...context, forget: routes.reread }, url, how);
    },
  };
}
