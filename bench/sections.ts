import type { Figures } from './lib/measure.ts';

interface Section {
  readonly title: string;
  /** Each is measured in a process of its own. */
  readonly parts: readonly string[];
  readonly load: () => Promise<{ readonly measure: (part: string) => Promise<Figures> }>;
}

const STORES = ['redis', 'postgres', 'sqlite'];

/** What is measured, by the names that `npm run bench -- …` takes. */
export const SECTIONS: Readonly<Record<string, Section>> = {
  pipeline: {
    title: 'Whole pipeline ÷ one bare verification (1 KB, one thread, memory store)',
    parts: [''],
    load: () => import('./sections/pipeline.ts'),
  },
  breakdown: {
    title: 'Where the time of a delivery goes (1 KB, Ed25519, one thread, memory store)',
    parts: [''],
    load: () => import('./sections/breakdown.ts'),
  },
  sizes: {
    title: 'Whole pipeline ÷ FLOOR (verification, SHA-256, decoding, JSON.parse) by size of the body',
    parts: [''],
    load: () => import('./sections/sizes.ts'),
  },
  parser: {
    title: 'Strict parser ÷ JSON.parse',
    parts: [''],
    load: () => import('./sections/parser.ts'),
  },
  peers: {
    title: 'Whole pipeline ÷ what peers take to verify the signature alone (1 KB)',
    parts: [''],
    load: () => import('./sections/peers.ts'),
  },
  http: {
    title: 'Over HTTP: 32 connections unless a row says how many, load from a second process (1 KB, Ed25519)',
    parts: ['32', '1', '128', '1000', ...STORES, 'mysql'],
    load: () => import('./sections/http.ts'),
  },
  refusals: {
    title: 'Refusals before cryptography ÷ one bare verification',
    parts: [''],
    load: () => import('./sections/refusals.ts'),
  },
  flood: {
    title: 'A flood of bad signatures beside good deliveries',
    parts: [''],
    load: () => import('./sections/flood.ts'),
  },
  stalled: {
    title: 'Uploads that stop after 16 KiB: by strangers, and with headers that were sent before',
    parts: [''],
    load: () => import('./sections/stalled.ts'),
  },
  stores: {
    title: 'Accepts ÷ bare writes at the same durability (every answer on disk)',
    parts: [...STORES, 'mysql'],
    load: () => import('./sections/stores.ts'),
  },
  events: {
    title: 'One event on a durable store: accept and completion, 64 in flight, one sender; room it takes',
    parts: [...STORES, 'mysql'],
    load: () => import('./sections/events.ts'),
  },
  growth: {
    title: 'Growth with the records held',
    parts: STORES,
    load: () => import('./sections/growth.ts'),
  },
  looks: {
    title: 'A look at what is due, of 10,000 senders',
    parts: [...STORES, 'mysql'],
    load: () => import('./sections/looks.ts'),
  },
  reports: {
    title: 'A report of 10,000 media buys: with an account of each, and without registrations',
    parts: ['memory', ...STORES, 'mysql'],
    load: () => import('./sections/reports.ts'),
  },
  watched: {
    title: 'A task that is watched: what it takes in its store, and in the process that polls it',
    parts: ['sqlite'],
    load: () => import('./sections/watched.ts'),
  },
  forward: {
    title:
      'serve: from the seller’s request to the sink’s answer, beside a bare forwarder with each event on disk (1 KB, SQLite)',
    parts: ['16', '64'],
    load: () => import('./sections/forward.ts'),
  },
  cold: {
    title: 'Cold start and installed size',
    parts: [''],
    load: () => import('./sections/cold.ts'),
  },
};
