// Chains of planned commands that follow each other.
import type { CommandColumns } from '../../devices/planning/commands.js';
import type { Accesses, Ranges } from './ranges.js';
import type { ControlEdges } from './waits.js';

/** The commands of a plan in the order of issue, and the bytes that they use. */
export interface PlannedParts {
  readonly commands: CommandColumns;
  readonly accesses: Accesses;
  readonly ranges: Ranges;
}

const NONE: readonly number[] = [];

/** The tasks of the longest chain of tasks that follow each other. */
export function criticalPath(parts: PlannedParts, control: ControlEdges): number {
  const weightOf = (c: number): number => (parts.commands.isCopy[c] === 1 ? 0 : 1);
  const before = chainsBefore(parts, control, weightOf);
  return before.reduce((longest, length, c) => Math.max(longest, length + weightOf(c)), 0);
}

/**
 * The length of the longest chain of commands before each command, in sums of their weights. A command follows those before it
 * that use the same bytes, if one of the two writes, and those that `control` names.
 */
export function chainsBefore(
  { commands, accesses, ranges }: PlannedParts,
  control: ControlEdges,
  weightOf: (command: number) => number,
): Int32Array {
  const lengths = new Int32Array(commands.count);
  // Per segment: the longest chain that ends with its writer, and with a reader.
  const afterWriter = new Int32Array(ranges.segments);
  const afterReaders = new Int32Array(ranges.segments);
  const { firstSegment, lastSegment } = ranges;
  const afterInsertion = new Map<number, number>();
  for (let c = 0; c < commands.count; c++) {
    const [begin, end] = [accesses.first[c], accesses.first[c + 1]];
    let length = 0;
    for (let i = begin; i < end; i++) {
      const r = accesses.of[i] >> 1;
      const writes = (accesses.of[i] & 1) === 1;
      for (let s = firstSegment[r]; s <= lastSegment[r]; s++) {
        length = Math.max(length, afterWriter[s]);
        if (writes) length = Math.max(length, afterReaders[s]);
      }
    }
    for (const before of control.get(commands.insertion[c]) ?? NONE)
      length = Math.max(length, afterInsertion.get(before) as number);
    lengths[c] = length;
    const withIt = length + weightOf(c);
    for (let i = begin; i < end; i++) {
      const r = accesses.of[i] >> 1;
      const after = (accesses.of[i] & 1) === 1 ? afterWriter : afterReaders;
      for (let s = firstSegment[r]; s <= lastSegment[r]; s++) after[s] = Math.max(after[s], withIt);
    }
    if (control.size > 0) afterInsertion.set(commands.insertion[c], withIt);
  }
  return lengths;
}
