// Defines the parts of dev to each other, types alone: scenarios, and the sellers that are called. With it scenarios
// and called sellers import nothing of what sends.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Jwk } from '../crypto/engine.ts';
import type { SenderAuth } from '../config/sender-entry.ts';
import type { PayloadInput, SignedDelivery } from '../sender/sign.ts';
import type { SamplePayloads } from '../testing/payloads.ts';
import type { CallEvent, DeliveryRow, DevScheme, DevSeller, Expected, SendRequest, Told } from './wire.ts';

/** One delivery that a scenario sends: made of a payload, or as it is. */
export interface StepDraft {
  /** The content of the delivery, as a sentence. */
  readonly sends: string;
  /** The answer that a right receiver gives. */
  readonly expected: Expected;
  /** The words for the row of the delivery, e.g. `completed (tool)`. */
  readonly what: string;
  readonly payload: PayloadInput | SignedDelivery;
  /** The private key that signs in place of the seller's own. */
  readonly key?: Jwk;
  /** True for a proof of control: it is signed, whatever the seller's scheme is. */
  readonly signed?: boolean;
  /** True if another answer does not fail the run: the delivery is sent again. */
  readonly mayFail?: boolean;
}

/** The means that a scenario works with. */
export interface ScenarioKit extends Required<Pick<SendRequest, 'scheme' | 'edition'>> {
  readonly seller: DevSeller;
  /** The legacy authentication. Absent: the seller signs. */
  readonly auth: SenderAuth | undefined;
  /** Builds payloads as a seller of the edition writes them. */
  readonly payloads: SamplePayloads;
  /** Unix ms. */
  readonly now: () => number;
  /** Aborts when dev ends. */
  readonly signal: AbortSignal;
  /** Signs a step, sends it once, and adds it to the steps. It resolves with its row when it was answered. */
  readonly send: (step: StepDraft) => Promise<DeliveryRow>;
  /** Signs a payload without sending it. */
  readonly sign: (payload: PayloadInput) => Promise<SignedDelivery>;
  /** Publishes a new key beside the seller's own, and gives the private one. */
  readonly addKey: () => Promise<Jwk>;
  /** Waits `ms`; rejects when `signal` aborts, or the one that is given. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  /** Reports that the scenario waits, and for what; undefined: it goes on. The last note stays. */
  readonly waiting: (note: string | undefined) => void;
}

/** One scenario. */
export interface Scenario {
  /** The description of the scenario, as a sentence. */
  readonly says: string;
  readonly schemes: readonly DevScheme[];
  /**
   * Plays the scenario. It has passed if this resolves and every answer was the expected one. An Error's message
   * becomes the run's note.
   */
  readonly run: (kit: ScenarioKit) => Promise<void>;
}

/** The parts that the called sellers are made of. */
export interface CallParts {
  readonly sellers: readonly DevSeller[];
  /** The name in wire identifiers. */
  readonly protocol: string;
  readonly brandJsonUrl: string;
  /** Unix ms. */
  readonly now: () => number;
  /** Called for each call, which becomes an event of the API. */
  readonly heard: (call: CallEvent) => void;
  /** Signs the webhook of a call and sends it once, where dev sends everything. Nobody waits for its answer. */
  readonly deliver: (seller: DevSeller, draft: CallDraft) => void;
}

/** The webhook of a call. */
export interface CallDraft extends Pick<StepDraft, 'what' | 'expected'> {
  /** Makes the body, of payloads as a seller of the edition writes them. */
  readonly payload: (payloads: SamplePayloads) => PayloadInput;
}

/** The tool transport at the agent URLs, and the scenarios that need it. */
export interface CalledSellers {
  /** Answers a request at the seller's agent URL. It rejects with ApiError for what is no message. */
  readonly answer: (seller: DevSeller, request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Takes a telling of a hook of the receiver. */
  readonly told: (told: Told) => void;
  readonly scenarios: Readonly<Record<string, Scenario>>;
}
