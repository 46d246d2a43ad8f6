import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { FORM } from '../reliability/form.ts';
import { longestFirst, readDurations, testPath } from './durations.ts';

/** The order in which vitest begins files. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { short, rows } = readDurations();
    const compare = longestFirst(FORM === 'rows' ? rows : short);
    return files.toSorted((a, b) => compare(testPath(a.moduleId), testPath(b.moduleId)));
  }
}
