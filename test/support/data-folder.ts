import { statfsSync } from 'node:fs';
import { availableMemory } from 'node:process';
import { tmpdir } from 'node:os';

/** Linux's folder of files that are in memory, and so synced at once. */
const IN_MEMORY = '/dev/shm';
/** What servers that run at once may come to, with room for the rest. Bytes. */
const ROOM = 3 * 2 ** 30;

/**
 * The folder for the data of the tests' own database servers: in memory where the system has room, else that of temporary files.
 * A server is asked to sync as it is on a disk, and a killed one loses as little; what a sync costs is saved. No test cuts the power.
 * SQLite's files are not here: the store sees that memory is not durable.
 */
export const DATA_FOLDER: string = hasRoom() ? IN_MEMORY : tmpdir();

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    return Math.min(bavail * bsize, availableMemory()) > ROOM;
  } catch {
    return false;
  }
}
