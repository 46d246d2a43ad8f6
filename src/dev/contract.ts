// Defines the types that connect dev's scenarios, its sellers that answer tool calls, and the code that sends for both.
// So scenarios and sellers do not import the code that sends.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Jwk } from '../crypto/engine.ts';
import type { SenderAuth } from '../config/sender-entry.ts';
import type { PayloadInput, SignedDelivery } from '../sender/sign.ts';
import type { SamplePayloads } from '../testing/payloads.ts';
import type { CallEvent, DeliveryRow, DevScheme, DevSeller, Expected, SendRequest, Told } from './wire.ts';

/** One delivery that a scenario sends. `payload` is a body to be signed, or a delivery that is signed already. */
export interface StepDraft {
  /** A sentence for the page that says what is delivered. */
  readonly sends: string;
  /** The answer that a correct receiver gives. */
  readonly expected: Expected;
  /** The label of the delivery in the page's list, e.g. `completed (tool)`. */
  readonly what: string;
  readonly payload: PayloadInput | SignedDelivery;
  /** The private key to sign with. Default: the seller's own key. */
  readonly key?: Jwk;
  /**
   * True if the body is a proof of control (a challenge to the owner of the URL). It is signed even if the seller
   * otherwise uses HMAC or a bearer token.
   */
  readonly signed?: boolean;
  /** True if an unexpected answer does not fail the scenario, because the scenario then sends the delivery again. */
  readonly mayFail?: boolean;
}

/** The functions and settings that a running scenario gets. */
export interface ScenarioKit extends Required<Pick<SendRequest, 'scheme' | 'edition'>> {
  readonly seller: DevSeller;
  /** The seller's HMAC secret or bearer token (legacy authentication). Undefined if the seller signs. */
  readonly auth: SenderAuth | undefined;
  /** Builds bodies in the form of the chosen protocol version (`edition`). */
  readonly payloads: SamplePayloads;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  /** Aborts when dev ends. */
  readonly signal: AbortSignal;
  /**
   * Signs a delivery unless it is signed already, posts it once, and adds it to the run's list. Resolves with the
   * delivery's list row once the receiver has answered.
   */
  readonly send: (step: StepDraft) => Promise<DeliveryRow>;
  /** Signs a payload without sending it. */
  readonly sign: (payload: PayloadInput) => Promise<SignedDelivery>;
  /** Publishes one more key of the seller, and returns the private key. */
  readonly addKey: () => Promise<Jwk>;
  /** Waits `ms`. Rejects if dev ends, or if the given `signal` aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  /**
   * Shows `note` on the page while the scenario waits. Undefined: the scenario goes on, and the last note stays
   * visible.
   */
  readonly waiting: (note: string | undefined) => void;
}

/** A scripted sequence of deliveries that a user can start on dev's page. */
export interface Scenario {
  /** A sentence for the page that describes the scenario. */
  readonly says: string;
  readonly schemes: readonly DevScheme[];
  /**
   * Runs the scenario. The run passes if the promise resolves and every answer was as expected. If the promise rejects,
   * the page shows the error's message as the run's note.
   */
  readonly run: (kit: ScenarioKit) => Promise<void>;
}

/** The parts of dev that its sellers need to answer tool calls. */
export interface CallParts {
  readonly sellers: readonly DevSeller[];
  /** The protocol name in wire identifiers, e.g. `proto`. */
  readonly protocol: string;
  readonly brandJsonUrl: string;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  /** Called for each tool call, which the page then shows. */
  readonly heard: (call: CallEvent) => void;
  /**
   * Signs the webhook that follows from a tool call, and posts it once to the receiver at `--forward`. The caller does
   * not wait for the answer.
   */
  readonly deliver: (seller: DevSeller, draft: CallDraft) => void;
}

/** The webhook that follows from a buyer's tool call, e.g. the completion of an order. */
export interface CallDraft extends Pick<StepDraft, 'what' | 'expected'> {
  /** Makes the body of the webhook with the given builders. */
  readonly payload: (payloads: SamplePayloads) => PayloadInput;
}

/** Answers tool calls at the agent URLs of dev's sellers, and has the scenarios that wait for such calls. */
export interface CalledSellers {
  /**
   * Answers an HTTP request to the seller's agent URL. Rejects with ApiError unless the request is a POST with a JSON
   * object.
   */
  readonly answer: (seller: DevSeller, request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Called with each report of the receiver's hooks (`devHooks`), because a scenario may be waiting for it. */
  readonly told: (told: Told) => void;
  readonly scenarios: Readonly<Record<string, Scenario>>;
}
