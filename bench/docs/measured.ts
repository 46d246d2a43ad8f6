import type { Results, SectionResult } from '../lib/results.ts';
import type { Figure } from '../lib/measure.ts';

/** A figure that the docs need and that bench/results.json lacks. */
export class NotMeasured extends Error {
  override readonly name = 'NotMeasured';
  readonly section: string;

  constructor(section: string) {
    super(`${section} was not measured`);
    this.section = section;
  }
}

export function sectionOf(results: Results, section: string): SectionResult {
  const found = results[section];
  if (!found) throw new NotMeasured(section);
  return found;
}

/** JSON has no NaN: what was not measured is null there. */
function figureOf(results: Results, section: string, name: string): Figure {
  const found = sectionOf(results, section).figures[name];
  if (!Number.isFinite(found?.median)) throw new NotMeasured(section);
  return found as Figure;
}

export const medianOf = (results: Results, section: string, name: string): number =>
  figureOf(results, section, name).median;

/** When and on what, and whether it means anything. */
export function measuredOn(results: Results, sections: readonly string[]): string {
  const said = sections.map((section) => {
    const { measured, commit, machine, quick, cpu } = sectionOf(results, section);
    const { processor, node } = machine;
    const clock = cpu ? ', with --cpu' : '';
    return `${measured} with commit ${commit} on ${processor}, Node ${node}${clock}${quick ? ', **quick: means nothing**' : ''}`;
  });
  const names = sections.map((section) => `\`${section}\``).join(', ');
  return `_Measured ${[...new Set(said)].join('; ')} (${names})._`;
}
