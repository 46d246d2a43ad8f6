import { ConfigError } from '../errors.ts';
import type { AdmissionPressure } from '../keys/admission-pressure.ts';
import { onlyKnown } from './validate.ts';

const NAMES: Readonly<Record<keyof AdmissionPressure, true>> = {
  shortRatio: true,
  mediumRatio: true,
  longRatio: true,
  ceiling: true,
};
const RATIOS = ['shortRatio', 'mediumRatio', 'longRatio'] as const;
const CEILING = { absolute: true, proportional: true } as const;

function checkNumber(name: string, value: unknown, least: number): void {
  if (typeof value === 'number' && Number.isFinite(value) && value >= least) return;
  throw new ConfigError(`admissionPressure.${name}: must be a number of at least ${least}.`);
}

/** @throws ConfigError where a threshold is unknown or no number that could be one. */
export function pressureThresholds(given: AdmissionPressure | undefined): AdmissionPressure {
  if (given === undefined) return {};
  if (typeof given !== 'object' || given === null) {
    throw new ConfigError('admissionPressure: must be an object like { shortRatio: 5 }.');
  }
  onlyKnown('admissionPressure', given, NAMES);
  for (const name of RATIOS) {
    // Below one, every key would be an alarm.
    if (given[name] !== undefined) checkNumber(name, given[name], 1);
  }
  const { ceiling } = given;
  if (ceiling === undefined) return { ...given };
  if (typeof ceiling !== 'object' || ceiling === null) {
    throw new ConfigError(
      'admissionPressure.ceiling: must be an object like { absolute: 20, proportional: 0.1 }.',
    );
  }
  onlyKnown('admissionPressure.ceiling', ceiling, CEILING);
  checkNumber('ceiling.absolute', ceiling.absolute, 0);
  checkNumber('ceiling.proportional', ceiling.proportional, 0);
  return { ...given, ceiling: { ...ceiling } };
}
