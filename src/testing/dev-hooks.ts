// Makes hooks for a receiver that report to `proto-webhooks dev` what became of the deliveries of its sellers (dev.md
// §3.2). The entry `proto-webhooks/testing` exports `devHooks`.
import { resolve } from 'node:path';
import { isOfDev } from '../config/public-url.ts';
import type { Handled, RefusedDelivery } from '../config/receiver-options.ts';
import { onlyKnown, text } from '../config/validate.ts';
import type { Told } from '../dev/wire.ts';
import type { Alarm } from '../shared/alarms.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Outcome } from '../shared/outcome.ts';
import { tellDev } from './dev-post.ts';

/** Options of `devHooks`: the folder of `proto-webhooks dev`. */
export interface DevHookOptions {
  /** The folder of `proto-webhooks dev` (its `--dir`). Default: `.proto-webhooks` in the working directory. */
  readonly dir?: string;
}

/**
 * Hooks for the options of a receiver, made by `devHooks`. They report to `proto-webhooks dev` what became of the
 * deliveries of dev's sellers.
 */
export interface DevHooks {
  /** Reports the answer to a delivery, and the event in it. */
  readonly onOutcome: (outcome: Outcome) => void;
  /** Reports the end of a handler's run. */
  readonly onHandled: (handled: Handled) => void;
  /** Reports why a delivery was refused. */
  readonly onRefused: (delivery: RefusedDelivery) => void;
  /** Reports an alarm about a seller of dev, or about the receiver itself. */
  readonly onAlarm: (alarm: Alarm) => void;
}

const OPTION_NAMES: Readonly<Record<keyof DevHookOptions, true>> = { dir: true };

/**
 * Makes hooks that report to `proto-webhooks dev` what became of the deliveries of its sellers. They report the event
 * as your handler got it, how the handler's run ended, and alarms. Dev's page shows the reports beside the delivery.
 *
 * The hooks report nothing about other sellers. They never throw, wait, or keep the process alive: if dev is not
 * running, their reports are dropped. For a hook of your own beside them, call both in one function. `createVerifier`
 * takes all of these hooks but `onHandled`.
 * @throws ConfigError under `NODE_ENV=production`, and for an unknown option.
 * @example
 * ```ts
 * import { createReceiver } from 'proto-webhooks';
 * import { memoryStore } from 'proto-webhooks/memory';
 * import { devHooks } from 'proto-webhooks/testing';
 *
 * export const receiver = createReceiver({
 *   publicUrl: 'http://127.0.0.1:3000/webhooks/seller',
 *   senders: [{ agentUrl: 'http://127.0.0.1:4646/proto-webhooks-dev/signature' }], // as dev's page says
 *   allowLoopback: true,
 *   store: memoryStore(),
 *   handlers: { other: async (event) => console.log(event.kind, event.status) },
 *   ...devHooks(),
 * });
 * ```
 */
export function devHooks(options: DevHookOptions = {}): DevHooks {
  onlyKnown('devHooks', options, OPTION_NAMES);
  if (process.env['NODE_ENV'] === 'production') {
    throw new ConfigError(
      "devHooks: is for development and refused under NODE_ENV=production. Write: ...(process.env.NODE_ENV !== 'production' && devHooks()).",
    );
  }
  const { dir = '.proto-webhooks' } = options;
  text('devHooks: dir', dir);
  const tell = tellDev(resolve(dir));
  /**
   * Makes a hook that reports only about dev's sellers. A call of the hook without a sender is reported too: it is
   * about the receiver itself, or about an unknown sender.
   */
  const hook =
    <T extends { readonly sender?: string | undefined }>(told: (of: T) => Told | undefined) =>
    (of: T): void => {
      if (of.sender !== undefined && !isOfDev(of.sender)) return;
      try {
        const said = told(of);
        if (said !== undefined) tell(said);
      } catch {
        // An error while reporting must not change the receiver's answer.
      }
    };
  return {
    onOutcome: hook(outcomeTold),
    onHandled: hook(handledTold),
    onRefused: hook(refusedTold),
    onAlarm: hook(({ sender, code, message }) => ({ hook: 'alarm', ...named(sender), code, message })),
  };
}

const named = (sender: string | undefined): { readonly sender?: string } =>
  sender === undefined ? {} : { sender };

/**
 * Makes the report about an outcome. Returns undefined for a refusal without an event: `refusedTold` reports such a
 * refusal, with the signature by which dev finds the delivery.
 */
function outcomeTold(outcome: Outcome): Told | undefined {
  const { kind, sender, deliveryId, response } = outcome;
  const event = 'event' in outcome ? outcome.event : undefined;
  if (kind === 'refused' && event === undefined) return undefined;
  const shown = kind === 'challenge' ? outcome.challenge : event;
  return {
    hook: 'outcome',
    ...named(sender),
    kind,
    ...('state' in outcome && { state: outcome.state }),
    status: response.status,
    ...('code' in outcome && outcome.code !== undefined && { code: outcome.code }),
    ...('detail' in outcome && { detail: outcome.detail }),
    ...(event !== undefined && { key: event.idempotencyKey }),
    ...(deliveryId !== undefined && { deliveryId }),
    ...(shown !== undefined && { event: shown }),
  };
}

function handledTold(handled: Handled): Told {
  const { sender, key, deliveryId, taskId, status, state, run, durationMs, waitedMs, error } = handled;
  return {
    hook: 'handled',
    sender,
    key,
    deliveryId,
    ...(taskId !== undefined && { taskId }),
    ...(status !== undefined && { status }),
    state,
    run,
    durationMs,
    waitedMs,
    ...(error !== undefined && { error }),
  };
}

const HMAC_FIELD = /^x-[a-z0-9-]+-signature$/;

function refusedTold({ sender, headers, outcome }: RefusedDelivery): Told {
  const { response, code } = outcome;
  const field = headers.has('signature')
    ? 'signature'
    : [...headers.keys()].find((name) => HMAC_FIELD.test(name));
  const proof = field === undefined ? undefined : headers.get(field)?.join(', ');
  return {
    hook: 'refused',
    ...named(sender),
    status: response.status,
    code: code ?? '',
    detail: 'detail' in outcome ? outcome.detail : '',
    ...(proof !== undefined && { proof }),
  };
}
