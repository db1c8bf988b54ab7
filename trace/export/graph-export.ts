// The executed graph for people: Graphviz DOT, and the JSON of @dagrejs/graphlib (`json.read` accepts it).
// People can only read small graphs, so both refuse large ones unless a limit is given.
import { taskGraph } from '../analysis/graph.js';
import { formatTime } from '../analysis/text.js';
import { TraceError } from '../errors.js';
import { TaskTime } from '../format.js';
import { laneName, type Trace, taskName } from '../trace.js';
import { type DotEdge, type DotNode, writeDot } from './dot.js';
import type { Output } from './output.js';

/** The tasks to write. */
export interface GraphOptions {
  /** Only the first `limit` tasks in the order they ran. Without it, more than 5000 tasks are refused. */
  readonly limit?: number;
  /** Task rows to emphasise, such as the critical path. */
  readonly emphasised?: ReadonlySet<number>;
}

const MOST = 5000;

/** Writes Graphviz DOT: one box per task, coloured by class; `dot -Tsvg` draws it. */
export function exportDot(trace: Trace, output: Output, options: GraphOptions = {}): void {
  const rows = chosen(trace, options);
  const { tasks } = trace;
  const isEmphasised = (row: number): boolean => options.emphasised?.has(row) === true;
  function* nodes(): Generator<DotNode> {
    for (const row of rows) {
      const time = tasks.times[TaskTime.execEnd][row] - tasks.times[TaskTime.execStart][row];
      const lines = [taskName(trace, row), formatTime(time), laneName(trace, tasks.lane[row])];
      yield {
        ...{ id: node(trace, row), lines, colour: tasks.taskClass[row] },
        isEmphasised: isEmphasised(row),
      };
    }
  }
  function* edges(): Generator<DotEdge> {
    for (const [from, to] of edgesOf(trace, rows))
      yield {
        ...{ from: node(trace, from), to: node(trace, to) },
        isEmphasised: isEmphasised(from) && isEmphasised(to),
      };
  }
  writeDot(output, nodes(), edges());
}

/** Writes graphlib's JSON: nodes `r0t17` with name, class, lane and times in nanoseconds; edges are dependencies. */
export function exportGraphlib(trace: Trace, output: Output, options: GraphOptions = {}): void {
  const rows = chosen(trace, options);
  const { tasks } = trace;
  output.text('{"options":{"directed":true,"multigraph":false,"compound":false},"nodes":[\n');
  rows.forEach((row, i) => {
    const value = {
      name: taskName(trace, row),
      class: trace.classes[tasks.taskClass[row]]?.name ?? '',
      rank: tasks.rank[row],
      lane: laneName(trace, tasks.lane[row]),
      start: tasks.times[TaskTime.execStart][row] - trace.start,
      end: tasks.times[TaskTime.execEnd][row] - trace.start,
    };
    output.text(`${i === 0 ? '' : ',\n'}${JSON.stringify({ v: node(trace, row), value })}`);
  });
  output.text('\n],"edges":[\n');
  let first = true;
  for (const [from, to] of edgesOf(trace, rows)) {
    output.text(`${first ? '' : ',\n'}{"v":"${node(trace, from)}","w":"${node(trace, to)}"}`);
    first = false;
  }
  output.text(`\n],"value":${JSON.stringify({ program: trace.ranks[0].header.program })}}\n`);
}

function chosen(trace: Trace, options: GraphOptions): number[] {
  const { count, times } = trace.tasks;
  if (options.limit === undefined && count > MOST) {
    throw new TraceError(
      'ERR_TRACE_USAGE',
      `the trace has ${count} tasks, too many for a readable graph. Use --limit N for the first N.`,
    );
  }
  const starts = times[TaskTime.execStart];
  const rows = Array.from({ length: count }, (_, row) => row).sort(
    (a, b) => starts[a] - starts[b] || a - b,
  );
  return options.limit === undefined ? rows : rows.slice(0, options.limit);
}

/** Pairs of rows: a task and one of its successors. */
function* edgesOf(trace: Trace, rows: readonly number[]): Generator<readonly [number, number]> {
  const { start, items } = taskGraph(trace).predecessors;
  const included = new Set(rows);
  for (const row of rows) {
    for (let i = start[row]; i < start[row + 1]; i++)
      if (included.has(items[i])) yield [items[i], row];
  }
}

function node(trace: Trace, row: number): string {
  return `r${trace.tasks.rank[row]}t${trace.tasks.id[row]}`;
}
