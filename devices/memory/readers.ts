// The readers of a copy since it was written: a command that overwrites the copy follows them.
import type { Submission } from '../submission.js';
import type { Directory } from './directory.js';

/** The command that is being issued follows the readers of copy `c`. */
export function afterReaders(sub: Submission, dir: Directory, c: number): void {
  sub.after(dir.readerQueue[c], dir.readerSeq[c]);
  for (let n = dir.readersHead[c]; n >= 0; n = dir.readers.next[n]) {
    sub.after(dir.readers.value[n], dir.readers.extra[n]);
  }
}
