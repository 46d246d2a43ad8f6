import type { AdmissionPressure } from './admission-pressure.ts';
import { withPressureGauge } from './admission-pressure.ts';
import type { KeyResolver, NameLookUp, Transport } from './contract.ts';
import { createKeyResolver, type KeyResolverOptions } from './resolver.ts';
import { defaultTransport } from './safe-fetch.ts';

export interface DiscoveryOptions extends Omit<KeyResolverOptions, 'transport'> {
  /** The runtime's own where absent. */
  readonly transport: Transport | undefined;
  /** Of the runtime's own transport. */
  readonly dns?: NameLookUp | undefined;
  /** Above which new key ids raise an alarm. */
  readonly thresholds: AdmissionPressure;
}

/** All of this folder at work: pins, documents from the network, revocation, the gauge for new key ids. */
export function createDiscovery({ transport, dns, thresholds, ...options }: DiscoveryOptions): KeyResolver {
  const resolver = createKeyResolver({
    ...options,
    transport: transport ?? defaultTransport(options.allowLoopback, dns),
  });
  return withPressureGauge(resolver, { thresholds, now: options.now, raiseAlarm: options.raiseAlarm });
}
