// The data of a play that were computed from the outputs of a failed task. A GPU executes what was submitted before it
// failed, so later tasks may have run on such data and count as successful.
//
// The tasks are looked at in program order from the first failure on, iteration after iteration, until an iteration changes
// nothing: then no later one does.
import type { DatumId } from '../../devices/handles.js';
import { AccessMode } from '../../trace/format.js';
import type { PlannedProgram } from './planned-program.js';

/** A task that has failed. */
export interface Failure {
  readonly iteration: number;
  readonly insertion: number;
}

/** The data without a value after `times` iterations, because of tasks that have failed. */
export function taintedData(
  program: PlannedProgram,
  failures: readonly Failure[],
  times: number,
): ReadonlySet<DatumId> {
  const tainted = new Set<DatumId>();
  if (failures.length === 0) return tainted;
  const first = Math.min(...failures.map((f) => f.iteration));
  const last = Math.max(...failures.map((f) => f.iteration));
  let before = '';
  for (let i = first; i < times; i++) {
    const failing = new Set(failures.flatMap((f) => (f.iteration === i ? [f.insertion] : [])));
    for (let n = 0; n < program.insertions; n++) taint(program, n, failing.has(n), tainted);
    const now = [...tainted].sort((a, b) => a - b).join();
    if (i > last && now === before) break;
    before = now;
  }
  return tainted;
}

function taint(program: PlannedProgram, n: number, fails: boolean, tainted: Set<DatumId>): void {
  if (!fails && tainted.size === 0) return;
  const { cls, data } = program.task(n);
  const { modes } = cls;
  const isTainted = fails || data.some((d, i) => modes[i] !== AccessMode.write && tainted.has(d));
  for (let i = 0; i < modes.length; i++) {
    if (modes[i] === AccessMode.read) continue;
    if (isTainted) tainted.add(data[i]);
    else tainted.delete(data[i]);
  }
}
