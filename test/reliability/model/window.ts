import type { RegistrationRow, WindowClaim } from '../../../src/stores/index.ts';
import { emptyStream, streamText } from '../../../src/windows/for-tests.ts';

/* The one window of the one media buy that the reports of a world are of: a day that is over when it begins. */

const DAY_MS = 86_400_000;

export const BUY = 'buy';

/** As a report says it. */
export const WINDOW: WindowClaim = {
  id: BUY,
  mediaBuyId: BUY,
  start: 10 * DAY_MS,
  end: 11 * DAY_MS,
  stage: '',
  isRevision: false,
};

/** The account of a media buy that reports daily, of which nothing has come. */
export function followed(sender: string): RegistrationRow {
  const terms = [{ from: 0, frequency: 'daily', spans: [{ start: 0, end: Infinity }] }] as const;
  const value = streamText({ ...emptyStream(BUY), terms });
  return { kind: 'stream', sender, id: BUY, value, dueAt: null, list: null, expiresAt: null };
}
