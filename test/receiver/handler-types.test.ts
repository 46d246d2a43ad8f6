import { describe, expectTypeOf, it } from 'vitest';
import type { Event, OtherEvent } from '../../src/events/index.ts';
import type { Handler, Handlers } from '../../src/index.ts';

const any: Handler<Event> = () => undefined;

/** Never called: what compiles is the test. */
export const handlers: Handlers = {
  other: async (event) => {
    if (event.kind !== 'other') return;
    expectTypeOf(event).toEqualTypeOf<OtherEvent>();
    if (event.family === 'impairment' && event.notification) {
      expectTypeOf(event.notification.impairment_id).toEqualTypeOf<string>();
    }
    if (event.family === 'product.updated' && event.notification) {
      expectTypeOf(event.notification.event.event_id).toEqualTypeOf<string>();
    }
  },
  notifications: {
    impairment: async (event) => {
      expectTypeOf(event.family).toEqualTypeOf<'impairment'>();
      expectTypeOf(event.notification.impairment_id).toEqualTypeOf<string>();
      expectTypeOf(event.notification.transition?.to).toEqualTypeOf<string | null | undefined>();
      expectTypeOf(event.notification['vendor_member']).toEqualTypeOf<unknown>();
      // @ts-expect-error of another family
      void event.notification.creative_id.length;
    },
    'creative.status_changed': (event, ctx) => {
      expectTypeOf(event.notification.creative_id).toEqualTypeOf<string>();
      expectTypeOf(ctx.deliveryId).toEqualTypeOf<string>();
    },
    'account.status_changed': (event) => {
      expectTypeOf(event.notification.account_id).toEqualTypeOf<string>();
    },
    wholesale_feed: (event) => {
      expectTypeOf(event.notification.event.event_id).toEqualTypeOf<string>();
    },
    'signal.removed': (event) => {
      expectTypeOf(event.notification.event.event_id).toEqualTypeOf<string>();
    },
    'vendor.anything': async (event) => {
      expectTypeOf(event).toEqualTypeOf<OtherEvent>();
      expectTypeOf(event.family).toEqualTypeOf<string | undefined>();
    },
    'revocation-notification': any,
    'vendor.other': any,
  },
};

const notifications: NonNullable<Handlers['notifications']> = {
  // @ts-expect-error no function
  impairment: 'handler',
};

const misfit: NonNullable<Handlers['notifications']> = {
  // @ts-expect-error takes another family's event
  impairment: (event: { readonly family: 'creative.purged' }) => event,
};

describe('handlers of notifications', () => {
  it('are typed by their names', () => {
    expectTypeOf(handlers.notifications).toEqualTypeOf<Handlers['notifications']>();
    expectTypeOf(notifications).toEqualTypeOf(misfit);
  });
});
