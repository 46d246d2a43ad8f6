import type { EventRegistrations } from '../../events/event-registration.ts';
import type { RaiseAlarm } from '../../shared/alarms.ts';
import { requireRetired, requireStateQuery } from '../option-checks.ts';
import type { Routes } from '../routes.ts';
import { requestInvalid } from '../seller.ts';
import { heardUrls } from './heard.ts';
import type { RecordedContext } from './recorded.ts';
import { retire } from './retire.ts';
import { stateOf } from './state.ts';
import type { RegistrationUrls } from './state-types.ts';

interface UrlsContext extends RecordedContext {
  readonly routes: Pick<Routes, 'given' | 'isRetired' | 'reread'>;
  /** Ms, of a clock that is never set. */
  readonly now: () => number;
  readonly raise: RaiseAlarm;
}

/** What registrations say of the URLs that sellers were given, and what their receiver tells them of these. */
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
      return stateOf(context, query).catch((error: unknown) => {
        throw requestInvalid(error);
      });
    },
    retire: async (url, how = {}) => {
      requireRetired(url, how);
      await retire({ ...context, forget: routes.reread }, url, how);
    },
  };
}
