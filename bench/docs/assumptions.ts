import type { Load } from '../lib/fleet.ts';
import type { BackendName } from '../lib/places.ts';

/** What the worked calculation assumes. Yours differ: the formulas stand beside the tables. */
const COMMON: Omit<Load, 'eventsPerDay' | 'busiestShare'> = {
  peakFactor: 3,
  tasksPerEvent: 0.25,
  bodyBytes: 1024,
  headerBytes: 600,
  retentionDays: 1,
  backlogHours: 1,
  utilisation: 0.6,
};

/** By the names of their columns. */
export const LOADS: Readonly<Record<string, Load>> = {
  '10 million a day': { ...COMMON, eventsPerDay: 1e7, busiestShare: 0.3 },
  '1 billion a day': { ...COMMON, eventsPerDay: 1e9, busiestShare: 0.05 },
  '10 billion a day': { ...COMMON, eventsPerDay: 1e10, busiestShare: 0.01 },
};

export const ORDINARY: Load = { ...COMMON, eventsPerDay: 1e7, busiestShare: 0.3 };

/** What one primary is to hold. Redis: half of a machine of 64 GB, the other half is for rewrites of its file. */
export const PRIMARY_BYTES: Readonly<Record<BackendName, number>> = {
  mysql: 2e12,
  postgres: 2e12,
  redis: 32e9,
  sqlite: 1e12,
};
