/*
 * What the seller's process is told, and what it writes down. Types alone: it shares no code with the buyer, nor with who judges.
 */

/** The tool transport, or the agent transport in one of its versions. */
export type Transport = 'tool' | 'agent 1.0' | 'agent 0.3';

/** How one agent of the seller is reached, and how bad it is. */
export interface AgentPolicy {
  /** First segment of its path. */
  readonly name: string;
  readonly transport: Transport;
  /** Of its webhooks so many are never sent, percent. */
  readonly drops: number;
  /** It does not know a request by its key: what is asked again is done again. */
  readonly forgets?: true;
  /** It takes no registration: its tasks are known by polling alone. */
  readonly refuses?: true;
  /** The longest time between two statuses, and until a webhook is sent, ms. 120. */
  readonly withinMs?: number;
  /** It never gives a webhook up. */
  readonly isPatient?: true;
  /** A status query takes up to so long, ms. 1. */
  readonly pollMs?: number;
  /** Of status queries so many are never answered, percent. */
  readonly hangs?: number;
  /** Its first status queries, so many, are never answered: who asks can be killed meanwhile. */
  readonly holds?: number;
}

/** What the process is told when it starts. */
export interface SellerOptions {
  /** 0: any that is free. */
  readonly port: number;
  /** Of its log and its keys, which outlive it. */
  readonly folder: string;
  /** Of all that it does, with the names of the orders. */
  readonly seed: number;
  readonly agents: readonly AgentPolicy[];
}

/** It serves. */
export interface SellerReady {
  readonly port: number;
}

/** A webhook that is to be sent. */
export interface PlannedHook {
  /** Its idempotency key. */
  readonly key: string;
  /** Of `Task.steps`. */
  readonly step: number;
  /** Unix ms. */
  readonly at: number;
  /** Sent so often, each newly signed. */
  readonly copies: number;
  /** Attempts without a final answer, then it is given up. */
  readonly attempts: number;
  /** Beside the result: another channel may say something else of it. */
  readonly note: string;
}

/** A status of a task. The last one is its end. */
export interface Step {
  readonly status: string;
  /** Unix ms. */
  readonly at: number;
}

/** What the seller has taken on. */
export interface Task {
  readonly agent: string;
  /** Of the order: its `buyer_ref`. */
  readonly name: string;
  readonly requestKey: string;
  readonly taskId: string;
  readonly taskType: string;
  /** `media_buy_id` of its result. No two tasks have the same. */
  readonly resultId: string;
  /** Where its webhooks go; absent: nobody asked for them. */
  readonly url?: string;
  readonly operationId?: string;
  readonly context?: unknown;
  readonly createdAt: number;
  /** What its request was answered, and is answered again: the end itself, without a task_id, or that it is under way. */
  readonly answers: 'end' | 'submitted' | 'working';
  readonly steps: readonly Step[];
  readonly hooks: readonly PlannedHook[];
}

/** A line of the seller's log; `at`: Unix ms. */
export type SellerLine = { readonly at: number } & (
  | { readonly what: 'start'; readonly pid: number }
  /** A request has come. */
  | { readonly what: 'request'; readonly agent: string; readonly name: string; readonly requestKey: string }
  /** What it was answered: the connection ended, before the work was done or after. */
  | {
      readonly what: 'answer';
      readonly requestKey: string;
      readonly said: 'end' | 'submitted' | 'working' | 'refusal' | 'nothing';
    }
  | { readonly what: 'task'; readonly task: Task }
  /** A status query has begun, and ended: `status` is absent where the task is not known. */
  | { readonly what: 'poll'; readonly id: string; readonly agent: string; readonly taskId: string }
  | { readonly what: 'polled'; readonly id: string; readonly taskId: string; readonly status?: string }
  /** The connection of a status query has ended before it was answered. */
  | { readonly what: 'cut'; readonly id: string; readonly taskId: string }
  /** A POST of a webhook; `answered` is absent where nothing was answered. */
  | {
      readonly what: 'hook';
      readonly taskId: string;
      readonly key: string;
      readonly status: string;
      readonly answered?: number;
    }
  /** It is not sent again: 2xx, another final answer, or after so many attempts. */
  | {
      readonly what: 'hook-over';
      readonly taskId: string;
      readonly key: string;
      readonly how: 'taken' | 'refused' | 'given-up';
    }
);
