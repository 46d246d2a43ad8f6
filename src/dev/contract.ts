import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Jwk } from '../crypto/engine.ts';
import type { SenderAuth } from '../config/sender-entry.ts';
import type { PayloadInput, SignedDelivery } from '../sender/sign.ts';
import type { SamplePayloads } from '../testing/payloads.ts';
import type { CallEvent, DeliveryRow, DevScheme, DevSeller, Expected, SendRequest, Told } from './wire.ts';

/* What the parts of dev are to each other: types alone. */

/** One delivery that a scenario sends: made of a payload, or as it is. */
export interface StepDraft {
  /** What is sent, as a sentence. */
  readonly sends: string;
  /** The answer that a right receiver gives. */
  readonly expected: Expected;
  /** For the row of the delivery, e.g. `completed (tool)`. */
  readonly what: string;
  readonly payload: PayloadInput | SignedDelivery;
  /** The private key that signs in place of the seller's own. */
  readonly key?: Jwk;
  /** Signed, whatever the seller's scheme is: a proof of control. */
  readonly signed?: boolean;
  /** Another answer does not fail the run: it is sent again. */
  readonly mayFail?: boolean;
}

/** What a scenario works with. */
export interface ScenarioKit extends Required<Pick<SendRequest, 'scheme' | 'edition'>> {
  readonly seller: DevSeller;
  /** Absent: it signs. */
  readonly auth: SenderAuth | undefined;
  /** As a seller of the edition writes them. */
  readonly payloads: SamplePayloads;
  /** Unix ms. */
  readonly now: () => number;
  /** Aborts when dev ends. */
  readonly signal: AbortSignal;
  /** Signs it, sends it once, and adds it to the steps. Resolves with its row when it was answered. */
  readonly send: (step: StepDraft) => Promise<DeliveryRow>;
  /** Signs a payload without sending it. */
  readonly sign: (payload: PayloadInput) => Promise<SignedDelivery>;
  /** Publishes a new key beside the seller's own, and gives the private one. */
  readonly addKey: () => Promise<Jwk>;
  /** Waits `ms`; rejects when `signal` aborts, or the one that is given. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  /** Says that the scenario waits, and for what; undefined: it goes on. The last note stays. */
  readonly waiting: (note: string | undefined) => void;
}

/** One scenario. */
export interface Scenario {
  /** What it does, as a sentence. */
  readonly says: string;
  readonly schemes: readonly DevScheme[];
  /** It has passed if it resolves and every answer was the expected one. An Error's message becomes the run's note. */
  readonly run: (kit: ScenarioKit) => Promise<void>;
}

/** What the called sellers are made of. */
export interface CallParts {
  readonly sellers: readonly DevSeller[];
  /** The name in wire identifiers. */
  readonly protocol: string;
  readonly brandJsonUrl: string;
  /** Unix ms. */
  readonly now: () => number;
  /** Told of each call, which becomes an event of the API. */
  readonly heard: (call: CallEvent) => void;
  /** Signs the webhook of a call and sends it once, where dev sends everything. Nobody waits for its answer. */
  readonly deliver: (seller: DevSeller, draft: CallDraft) => void;
}

/** The webhook of a call. */
export interface CallDraft extends Pick<StepDraft, 'what' | 'expected'> {
  /** Made of payloads as a seller of the edition writes them. */
  readonly payload: (payloads: SamplePayloads) => PayloadInput;
}

/** The tool transport at the agent URLs, and the scenarios that need it. */
export interface CalledSellers {
  /** Answers a request at the seller's agent URL. Rejects for nothing that the request is. */
  readonly answer: (seller: DevSeller, request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Takes what hooks of the receiver tell. */
  readonly told: (told: Told) => void;
  readonly scenarios: Readonly<Record<string, Scenario>>;
}
