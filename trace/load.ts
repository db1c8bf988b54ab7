// Loads trace files into columns: one file, or one per rank of a run. Ids become rows, ranks get one time axis
// (merge.ts), dependencies become lists. Two passes: one counts rows, one fills columns.
import { Builder } from './builder.js';
import { Counts } from './counts.js';
import { TraceError } from './errors.js';
import { TraceReader } from './reader.js';
import type { Trace } from './trace.js';

/**
 * Loads one trace, or the traces of several ranks of one run (in any order), from paths or from memory.
 * Cut or damaged tails and missing ranks give a partial trace whose `problems` name the missing parts. `onProgress` is told
 * the bytes read so far, of `total`; its error ends the loading.
 *
 * Throws `TraceError`: the errors of `TraceReader.open`, and ERR_TRACE_MERGE for files that are not of one run.
 */
export function loadTrace(
  sources: string | Uint8Array | readonly (string | Uint8Array)[],
  onProgress?: (done: number, total: number) => void,
): Trace {
  const list = Array.isArray(sources) ? sources : [sources as string | Uint8Array];
  const readers: TraceReader[] = [];
  try {
    for (const source of list) {
      readers.push(
        typeof source === 'string' ? TraceReader.open(source) : TraceReader.from(source),
      );
    }
    readers.sort((a, b) => a.header.rank - b.header.rank);
    const problems = checkRun(readers);
    // Every file is read twice: its rows are counted, then filled in.
    const total = 2 * readers.reduce((sum, { size }) => sum + size, 0);
    let done = 0;
    const onBytes = (bytes: number): void => {
      done += bytes;
      onProgress?.(done, total);
    };
    const counts = new Counts();
    for (const reader of readers) counts.add(reader, onBytes);
    const builder = new Builder(counts);
    const ranks = readers.map((reader) => builder.addRank(reader, onBytes));
    return builder.finish(ranks, problems);
  } finally {
    for (const reader of readers) reader.close();
  }
}

function checkRun(readers: readonly TraceReader[]): string[] {
  const first = readers[0];
  if (!first) throw new TraceError('ERR_TRACE_USAGE', 'no trace file was given.');
  const seen = new Map<number, TraceReader>();
  for (const reader of readers) {
    const { rank, ranks, run } = reader.header;
    const other = seen.get(rank);
    if (other) {
      throw new TraceError(
        'ERR_TRACE_MERGE',
        `${other.name} and ${reader.name} are both of rank ${rank}; give one file per rank of one run.`,
        reader.name,
      );
    }
    if (ranks !== first.header.ranks || (run ?? '') !== (first.header.run ?? '')) {
      throw new TraceError(
        'ERR_TRACE_MERGE',
        `${reader.name} (rank ${rank} of ${ranks}) is not of the same run as ${first.name} ` +
          `(rank ${first.header.rank} of ${first.header.ranks}).`,
        reader.name,
      );
    }
    seen.set(rank, reader);
  }
  const missing: number[] = [];
  for (let rank = 0; rank < first.header.ranks; rank++) if (!seen.has(rank)) missing.push(rank);
  if (missing.length === 0) return [];
  return [
    `${missing.length === 1 ? 'rank' : 'ranks'} ${missing.join(', ')} of ${first.header.ranks} missing: ` +
      'work, messages and releases there are not shown',
  ];
}
