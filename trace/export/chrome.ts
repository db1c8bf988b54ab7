// Chrome's trace event JSON (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): read by
// chrome://tracing, Perfetto, Speedscope. Process = rank, thread = lane; lanes with overlap get further threads.
// Times in microseconds with three decimals. A flow cannot fork, so every dependency has its own id.
import { taskGraph } from '../analysis/graph.js';
import { CounterKind, NONE, TaskTime, transferKindNames, transferReasonNames } from '../format.js';
import { datumName, NO_ROW, playedAs, type Trace, taskName } from '../trace.js';
import type { Output } from './output.js';
import { laneWalk } from './rows.js';

/** Options that leave parts out. */
export interface ChromeOptions {
  /** Arrows of dependencies and messages (default true). */
  readonly flows?: boolean;
}

const SUB_ROWS = 1000;

/** Writes a whole trace, event by event. */
export function exportChrome(trace: Trace, output: Output, options: ChromeOptions = {}): void {
  output.text('{"displayTimeUnit":"ns","traceEvents":[\n');
  let first = true;
  const event = (text: string): void => {
    output.text(first ? text : `,\n${text}`);
    first = false;
  };
  const at = (time: number): string => ((time - trace.start) / 1000).toFixed(3);
  for (const { rank, header } of trace.ranks) {
    const name = JSON.stringify(`rank ${rank} (${header.hostname})`);
    event(`{"ph":"M","pid":${rank},"name":"process_name","args":{"name":${name}}}`);
    event(`{"ph":"M","pid":${rank},"name":"process_sort_index","args":{"sort_index":${rank}}}`);
  }
  const threadOfTask = new Uint32Array(trace.tasks.count);
  const threadOfTransfer = new Uint32Array(trace.transfers.count);
  const walk = laneWalk(trace);
  trace.lanes.forEach((lane, index) => {
    const rows = walk(index, (slice) => {
      const thread = index * SUB_ROWS + slice.row + 1;
      if (slice.isTask) threadOfTask[slice.item] = thread;
      else threadOfTransfer[slice.item] = thread;
      event(
        slice.isTask
          ? taskEvent(trace, slice.item, lane.rank, thread, at)
          : transferEvent(trace, slice.item, lane.rank, thread, at),
      );
    });
    for (let row = 0; row < rows; row++) {
      const thread = index * SUB_ROWS + row + 1;
      const name = JSON.stringify(`${trace.spaces[lane.space]?.name ?? ''}: ${lane.name}`);
      event(
        `{"ph":"M","pid":${lane.rank},"tid":${thread},"name":"thread_name","args":{"name":${name}}}`,
      );
      event(
        `{"ph":"M","pid":${lane.rank},"tid":${thread},"name":"thread_sort_index","args":{"sort_index":${thread}}}`,
      );
    }
  });
  if (options.flows !== false) {
    dependencyFlows(trace, threadOfTask, event, at);
    messageFlows(trace, threadOfTransfer, event, at);
  }
  counterEvents(trace, event, at);
  output.text('\n]}\n');
}

type At = (time: number) => string;

function taskEvent(trace: Trace, row: number, rank: number, thread: number, at: At): string {
  const { tasks } = trace;
  const start = tasks.times[TaskTime.execStart][row];
  const duration = ((tasks.times[TaskTime.execEnd][row] - start) / 1000).toFixed(3);
  const name = JSON.stringify(trace.classes[tasks.taskClass[row]]?.name ?? 'task');
  const wait = start - tasks.times[TaskTime.ready][row];
  const played = playedAs(trace, row);
  const play =
    played === undefined
      ? ''
      : `,"plan":${JSON.stringify(played.plan)},"iteration":${played.iteration}`;
  return (
    `{"ph":"X","pid":${rank},"tid":${thread},"ts":${at(start)},"dur":${duration},"name":${name},"cat":"task",` +
    `"args":{"task":${tasks.id[row]},"name":${JSON.stringify(taskName(trace, row))},"ready to running ns":${wait}${play}}}`
  );
}

function transferEvent(trace: Trace, row: number, rank: number, thread: number, at: At): string {
  const { transfers } = trace;
  const duration = ((transfers.end[row] - transfers.start[row]) / 1000).toFixed(3);
  const kind = transferKindNames[transfers.kind[row]] ?? 'transfer';
  const datum = transfers.datum[row] >= 0 ? datumName(trace, transfers.datum[row]) : '';
  return (
    `{"ph":"X","pid":${rank},"tid":${thread},"ts":${at(transfers.start[row])},"dur":${duration},"name":"${kind}",` +
    `"cat":"transfer","args":{"bytes":${transfers.bytes[row]},"datum":${JSON.stringify(datum)},` +
    `"reason":"${transferReasonNames[transfers.reason[row]] ?? ''}"}}`
  );
}

// The start must lie inside the producer and the end inside the consumer; both must have a length.
function dependencyFlows(
  trace: Trace,
  threads: Uint32Array,
  event: (text: string) => void,
  at: At,
): void {
  const { tasks } = trace;
  const starts = tasks.times[TaskTime.execStart];
  const ends = tasks.times[TaskTime.execEnd];
  const { predecessors } = taskGraph(trace);
  for (let row = 0; row < tasks.count; row++) {
    for (let i = predecessors.start[row]; i < predecessors.start[row + 1]; i++) {
      const from = predecessors.items[i];
      if (threads[from] === 0 || threads[row] === 0) continue;
      if (ends[from] <= starts[from] || ends[row] <= starts[row]) continue;
      const common = `"cat":"dependency","name":"dependency","id":${i + 1}`;
      event(
        `{"ph":"s","pid":${tasks.rank[from]},"tid":${threads[from]},"ts":${at(ends[from] - 1)},${common}}`,
      );
      event(
        `{"ph":"f","bp":"e","pid":${tasks.rank[row]},"tid":${threads[row]},"ts":${at(starts[row] + 1)},${common}}`,
      );
    }
  }
}

function messageFlows(
  trace: Trace,
  threads: Uint32Array,
  event: (text: string) => void,
  at: At,
): void {
  const { transfers } = trace;
  for (let row = 0; row < transfers.count; row++) {
    const partner = transfers.partner[row];
    // Each pair once, seen from the receive.
    if (partner < 0 || transfers.source[row] !== NO_ROW || transfers.message[row] === NONE)
      continue;
    if (transfers.end[partner] <= transfers.start[partner]) continue;
    if (transfers.end[row] <= transfers.start[row]) continue;
    const common = `"cat":"message","name":"message","id":${row + 1}`;
    const left = transfers.start[partner] + 1;
    const arrived = Math.max(transfers.end[row] - 1, left);
    event(
      `{"ph":"s","pid":${transfers.rank[partner]},"tid":${threads[partner]},"ts":${at(left)},${common}}`,
    );
    event(
      `{"ph":"f","bp":"e","pid":${transfers.rank[row]},"tid":${threads[row]},"ts":${at(arrived)},${common}}`,
    );
  }
}

function counterEvents(trace: Trace, event: (text: string) => void, at: At): void {
  const { counters } = trace;
  for (let row = 0; row < counters.count; row++) {
    const value = (i: number): number => counters.values[6 * row + i];
    const head = `{"ph":"C","pid":${counters.rank[row]},"ts":${at(counters.time[row])}`;
    if (counters.kind[row] === CounterKind.memory) {
      const space = trace.spaces[counters.space[row]];
      if (!space) continue;
      event(
        `${head},"name":${JSON.stringify(`memory ${space.name}`)},"args":{"pinned":${value(1)},"dirty":${value(2)},` +
          `"clean":${value(3)},"arriving":${value(4)}}}`,
      );
    } else {
      event(`${head},"name":"tasks","args":{"ready":${value(0)},"window":${value(1)}}}`);
      event(`${head},"name":"in flight","args":{"bytes":${value(2)},"messages":${value(3)}}}`);
    }
  }
}
