import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { FORM } from '../reliability/form.ts';
import { longestFirst, readDurations, testPath } from './durations.ts';

/**
 * The order in which vitest begins files: project by project, as `vitest.config.ts` has them, and longest first in each.
 * A process that several files share is ended as soon as the next one in the row is of another project.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { short, rows } = readDurations();
    const compare = longestFirst(FORM === 'rows' ? rows : short);
    const place = ({ project }: TestSpecification): number => this.ctx.projects.indexOf(project);
    return files.toSorted(
      (a, b) => place(a) - place(b) || compare(testPath(a.moduleId), testPath(b.moduleId)),
    );
  }
}
