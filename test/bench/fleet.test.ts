import { describe, expect, it } from 'vitest';
import {
  ceilingOf,
  DEFAULT_CAPS,
  defaultsAllow,
  fleetFor,
  NONCE_S,
  recordsHeld,
  TASK_DAYS,
  type Constants,
  type Load,
} from '../../bench/lib/fleet.ts';
import { MAX_VALIDITY_S, SKEW_S } from '../../src/auth/for-tests.ts';
import { resolveOptions } from '../../src/config/for-tests.ts';
import { MARK_RETENTION_MS } from '../../src/stores/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { AGENT, URL_GIVEN } from '../receiver/setup.ts';

/** 1,000 events/s on average, 2,000 in the busiest second. */
const LOAD: Load = {
  eventsPerDay: 86_400_000,
  peakFactor: 2,
  busiestShare: 0.1,
  tasksPerEvent: 0.25,
  bodyBytes: 1024,
  headerBytes: 476,
  retentionDays: 2,
  backlogHours: 0.5,
  utilisation: 0.5,
};

const CONSTANTS: Constants = {
  deliveryMicros: 150,
  store: {
    eventsPerSecond: 1000,
    micros: 50,
    doneBytes: 300,
    taskBytes: 200,
    nonceBytes: 100,
    waitingBytes: 1500,
  },
  primaryBytes: 50e9,
};

describe('fleet: processors, primaries, round trips, network', () => {
  const fleet = fleetFor(LOAD, CONSTANTS);

  it('has enough processors for the busiest second at the wanted utilisation', () => {
    expect(fleet.averagePerSecond).toBe(1000);
    expect(fleet.peakPerSecond).toBe(2000);
    // 2,000 events × 200 µs are 0.4 processors, half used.
    expect(fleet.cores).toBe(1);
    expect(fleetFor({ ...LOAD, eventsPerDay: LOAD.eventsPerDay * 100 }, CONSTANTS).cores).toBe(80);
  });

  it('has as many primaries as rate and memory need', () => {
    // Each is to carry half of its 1,000 events/s.
    expect(fleet.primariesByRate).toBe(4);
    expect(fleet.primariesByRoom).toBe(4);
    expect(fleet.primaries).toBe(4);
    const small = fleetFor(LOAD, { ...CONSTANTS, primaryBytes: 20e9 });
    expect([small.primariesByRate, small.primariesByRoom, small.primaries]).toEqual([4, 10, 10]);
  });

  it('adds up what is in memory at once', () => {
    expect(fleet.bytes.done).toBeCloseTo(86_400_000 * 2 * 300);
    expect(fleet.bytes.tasks).toBeCloseTo(86_400_000 * 0.25 * 30 * 200);
    expect(fleet.bytes.nonces).toBeCloseTo(2000 * 360 * 100);
    expect(fleet.bytes.waiting).toBeCloseTo(2000 * 1800 * 1500);
    expect(fleet.bytesTogether).toBeCloseTo(51_840e6 + 129_600e6 + 72e6 + 5_400e6);
  });

  it('counts a body by how much it is larger than the measured one', () => {
    const larger = fleetFor({ ...LOAD, bodyBytes: 10_240 }, CONSTANTS);
    expect(larger.bytes.waiting).toBeCloseTo(2000 * 1800 * (1500 + 9216));
    expect(larger.bytes.done).toBe(fleet.bytes.done);
  });

  it('makes two round trips an event, and lets in bodies with their headers', () => {
    expect(fleet.roundTripsPerSecond).toBe(4000);
    expect(fleet.inboundBitsPerSecond).toBe(2000 * 1500 * 8);
  });

  it('says whether one primary carries the busiest seller', () => {
    expect(fleet.busiestPeakPerSecond).toBe(200);
    expect(fleet.busiestFits).toBe(true);
    expect(fleetFor({ ...LOAD, busiestShare: 0.25 }, CONSTANTS).busiestFits).toBe(true);
    expect(fleetFor({ ...LOAD, busiestShare: 0.26 }, CONSTANTS).busiestFits).toBe(false);
  });
});

describe('fleet: caps', () => {
  it('needs caps for the busiest seller, and for the nonces of all', () => {
    const { caps } = fleetFor(LOAD, CONSTANTS);
    expect(caps.maxNoncesPerKey).toBe(200 * 360);
    expect(caps.maxNonces).toBe(2000 * 360);
    expect(caps.maxRecordsPerSender).toBeCloseTo(8_640_000 * (2 + 0.25 * 30));
    expect(caps.maxPendingBytesPerSender).toBe(200 * 1800 * 1024);
  });

  it('keeps tasks 30 days, or as long as events where that is longer', () => {
    expect(recordsHeld(100, { retentionDays: 1, tasksPerEvent: 0.5 })).toBe(100 + 50 * 30);
    expect(recordsHeld(100, { retentionDays: 40, tasksPerEvent: 0.5 })).toBe(4000 + 50 * 40);
  });

  it('has the constants of the library', () => {
    const { limits, senders } = resolveOptions({
      publicUrl: URL_GIVEN,
      senders: [{ agentUrl: AGENT }],
      store: memoryStore(),
      durability: { require: 'process' },
      handlers: { other: () => undefined },
    });
    const resolved = senders.forUrl(URL_GIVEN);
    const [sender] = 'then' in resolved ? [] : resolved;
    expect({ ...limits, maxNoncesPerKey: sender?.maxNoncesPerKey }).toEqual(DEFAULT_CAPS);
    expect(NONCE_S).toBe(MAX_VALIDITY_S + SKEW_S);
    expect(TASK_DAYS * 86_400_000).toBe(MARK_RETENTION_MS);
  });

  it('computes what the defaults allow: 278 events/s per key', () => {
    const { keyPerSecond, senderPerDay } = defaultsAllow({ retentionDays: 1, tasksPerEvent: 0.25 });
    expect(Math.round(keyPerSecond)).toBe(278);
    expect(Math.round(senderPerDay)).toBe(117_647);
  });
});

it('one seller on one primary: its rate at the wanted utilisation, and a day of it', () => {
  const ceiling = ceilingOf(LOAD, CONSTANTS.store);
  expect(ceiling).toEqual({ eventsPerSecond: 500, eventsPerDay: 250 * 86_400 });
});
