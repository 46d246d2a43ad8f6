import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { longestFirst, readDurations, testPath } from './durations.ts';

/** The order in which vitest begins files. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const compare = longestFirst(readDurations());
    return files.toSorted((a, b) => compare(testPath(a.moduleId), testPath(b.moduleId)));
  }
}
