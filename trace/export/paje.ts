// The Paje format (https://paje.sourceforge.net/download/publication/lang-paje.pdf), as read by ViTE and pajeng:
// containers rank > device > lane, a state per task and transfer with idle reasons between them, memory variables,
// links for dependencies and messages. Events must be in time order, so they are sorted by an index array.
import { forEachIdle } from '../analysis/lanes.js';
import { idleReasons, Waits } from '../analysis/waits.js';
import { CounterKind, TaskTime, transferKindNames } from '../format.js';
import { isExecutionLane, NO_ROW, type Trace, taskName } from '../trace.js';
import type { Output } from './output.js';
import { laneWalk } from './rows.js';

/** Options that leave parts out. */
export interface PajeOptions {
  /** Links of dependencies and messages (default true). */
  readonly flows?: boolean;
}

const definitions = `%EventDef PajeDefineContainerType 0
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineStateType 1
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineVariableType 2
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeDefineLinkType 3
% Alias string
% Type string
% StartContainerType string
% EndContainerType string
% Name string
%EndEventDef
%EventDef PajeDefineEntityValue 4
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeCreateContainer 5
% Time date
% Alias string
% Type string
% Container string
% Name string
%EndEventDef
%EventDef PajeDestroyContainer 6
% Time date
% Type string
% Name string
%EndEventDef
%EventDef PajeSetState 7
% Time date
% Type string
% Container string
% Value string
% Task string
%EndEventDef
%EventDef PajeSetVariable 8
% Time date
% Type string
% Container string
% Value double
%EndEventDef
%EventDef PajeStartLink 9
% Time date
% Type string
% Container string
% Value string
% StartContainer string
% Key string
%EndEventDef
%EventDef PajeEndLink 10
% Time date
% Type string
% Container string
% Value string
% EndContainer string
% Key string
%EndEventDef
`;

// Okabe and Ito's palette, as red green blue.
const palette = [
  '0.00 0.45 0.70',
  '0.90 0.62 0.00',
  '0.00 0.62 0.45',
  '0.84 0.37 0.00',
  '0.80 0.47 0.65',
  '0.94 0.89 0.26',
  '0.34 0.71 0.91',
  '0.50 0.50 0.50',
];

/** Writes a whole trace. Memory: 21 bytes per line. */
export function exportPaje(trace: Trace, output: Output, options: PajeOptions = {}): void {
  output.text(definitions);
  output.text('0 R 0 Rank\n0 D R Device\n0 L D Lane\n1 S L State\n3 K 0 L L Link\n');
  output.text(`2 MU D "memory used" "${palette[0]}"\n2 MD D "memory dirty" "${palette[3]}"\n`);
  output.text(`2 RT R "ready tasks" "${palette[2]}"\n`);
  trace.classes.forEach((taskClass, i) => {
    output.text(`4 c${i} S ${name(taskClass.name)} "${palette[i % palette.length]}"\n`);
  });
  transferKindNames.forEach((kind, i) => {
    output.text(`4 t${i} S ${name(kind)} "${palette[(i + 4) % palette.length]}"\n`);
  });
  idleReasons.forEach((reason, i) => {
    const grey = (0.95 - 0.05 * i).toFixed(2);
    output.text(`4 i${i} S ${name(`idle: ${reason}`)} "${grey} ${grey} ${grey}"\n`);
  });
  output.text(
    `4 idle S idle "1.00 1.00 1.00"\n4 dep K dependency "0.50 0.50 0.50"\n4 msg K message "0.80 0.47 0.65"\n`,
  );
  for (const { rank } of trace.ranks) output.text(`5 0 r${rank} R 0 ${name(`rank ${rank}`)}\n`);
  trace.spaces.forEach((space, i) => {
    output.text(`5 0 d${i} D r${space.rank} ${name(space.name)}\n`);
  });
  const timeline = new Timeline(trace);
  timeline.lanes(output);
  timeline.counters();
  if (options.flows !== false) timeline.links();
  timeline.write(output);
  output.text(`6 ${seconds(trace.end - trace.start)} R r${trace.ranks[0].rank}\n`);
}

// Kinds of lines; the order settles equal times: a state ends (idle) before the next begins, links end first.
const Line = { endLink: 0, idle: 1, state: 2, variable: 3, startLink: 4 } as const;

class Timeline {
  readonly #trace: Trace;
  // One entry per line to write; they grow together.
  #time: Float64Array = new Float64Array(1024);
  #kind: Uint8Array = new Uint8Array(1024);
  #a: Int32Array = new Int32Array(1024);
  #b: Int32Array = new Int32Array(1024);
  #count = 0;
  // Container of each task and transfer: lane * 1000 + sub-row.
  readonly #taskAt: Uint32Array;
  readonly #transferAt: Uint32Array;

  constructor(trace: Trace) {
    this.#trace = trace;
    this.#taskAt = new Uint32Array(trace.tasks.count);
    this.#transferAt = new Uint32Array(trace.transfers.count);
  }

  lanes(output: Output): void {
    const trace = this.#trace;
    const { tasks, transfers } = trace;
    const walk = laneWalk(trace);
    trace.lanes.forEach((lane, index) => {
      const rows = walk(index, ({ item, isTask, row }) => {
        const container = index * 1000 + row;
        (isTask ? this.#taskAt : this.#transferAt)[item] = container;
        const start = isTask ? tasks.times[TaskTime.execStart][item] : transfers.start[item];
        const end = isTask ? tasks.times[TaskTime.execEnd][item] : transfers.end[item];
        // A state of no length would be ended before it begins.
        if (end <= start) return;
        this.#add(start, Line.state, isTask ? item : -1 - item, container);
        this.#add(end, Line.idle, -1, container);
      });
      for (let row = 0; row < rows; row++) {
        const label = row === 0 ? lane.name : `${lane.name} +${row}`;
        output.text(`5 0 l${index * 1000 + row} L d${lane.space} ${name(label)}\n`);
      }
    });
    forEachIdle(trace, new Waits(trace), (lane, from, _to, reason) => {
      if (isExecutionLane(trace.lanes[lane])) this.#add(from, Line.idle, reason, lane * 1000);
    });
  }

  counters(): void {
    const { counters } = this.#trace;
    for (let row = 0; row < counters.count; row++) {
      if (counters.kind[row] === CounterKind.memory && counters.space[row] === NO_ROW) continue;
      this.#add(counters.time[row], Line.variable, row, 0);
    }
  }

  links(): void {
    const { tasks, transfers } = this.#trace;
    const { start, items } = tasks.predecessors;
    for (let row = 0; row < tasks.count; row++) {
      for (let i = start[row]; i < start[row + 1]; i++) {
        this.#add(tasks.times[TaskTime.execEnd][items[i]], Line.startLink, i, items[i]);
        this.#add(tasks.times[TaskTime.execStart][row], Line.endLink, i, row);
      }
    }
    for (let row = 0; row < transfers.count; row++) {
      const partner = transfers.partner[row];
      if (partner < 0 || transfers.source[row] !== NO_ROW) continue;
      this.#add(transfers.start[partner], Line.startLink, -1 - row, partner);
      this.#add(transfers.end[row], Line.endLink, -1 - row, row);
    }
  }

  write(output: Output): void {
    const time = this.#time;
    const kind = this.#kind;
    const order = Uint32Array.from({ length: this.#count }, (_, i) => i).sort(
      (x, y) => time[x] - time[y] || kind[x] - kind[y] || x - y,
    );
    for (const i of order) this.#line(output, seconds(time[i] - this.#trace.start), i);
  }

  #line(output: Output, time: string, i: number): void {
    const trace = this.#trace;
    const a = this.#a[i];
    const b = this.#b[i];
    switch (this.#kind[i]) {
      case Line.state: {
        const value = a >= 0 ? `c${trace.tasks.taskClass[a]}` : `t${trace.transfers.kind[-1 - a]}`;
        const label = a >= 0 ? name(taskName(trace, a)) : '""';
        output.text(`7 ${time} S l${b} ${value} ${label}\n`);
        return;
      }
      case Line.idle:
        output.text(`7 ${time} S l${b} ${a < 0 ? 'idle' : `i${a}`} ""\n`);
        return;
      case Line.variable: {
        const { counters } = trace;
        if (counters.kind[a] === CounterKind.memory) {
          const container = `d${counters.space[a]}`;
          output.text(`8 ${time} MU ${container} ${counters.values[6 * a]}\n`);
          output.text(`8 ${time} MD ${container} ${counters.values[6 * a + 2]}\n`);
        } else {
          output.text(`8 ${time} RT r${counters.rank[a]} ${counters.values[6 * a]}\n`);
        }
        return;
      }
      default: {
        const isStart = this.#kind[i] === Line.startLink;
        const container = a >= 0 ? this.#taskAt[b] : this.#transferAt[b];
        const key = a >= 0 ? `e${a}` : `m${-1 - a}`;
        output.text(
          `${isStart ? 9 : 10} ${time} K 0 ${a >= 0 ? 'dep' : 'msg'} l${container} ${key}\n`,
        );
      }
    }
  }

  #add(time: number, kind: number, a: number, b: number): void {
    if (this.#count === this.#time.length) this.#grow();
    const i = this.#count++;
    this.#time[i] = time;
    this.#kind[i] = kind;
    this.#a[i] = a;
    this.#b[i] = b;
  }

  #grow(): void {
    const larger = 2 * this.#count;
    const [time, kind, a, b] = [this.#time, this.#kind, this.#a, this.#b];
    this.#time = new Float64Array(larger);
    this.#kind = new Uint8Array(larger);
    this.#a = new Int32Array(larger);
    this.#b = new Int32Array(larger);
    this.#time.set(time);
    this.#kind.set(kind);
    this.#a.set(a);
    this.#b.set(b);
  }
}

function seconds(nanoseconds: number): string {
  return (nanoseconds / 1e9).toFixed(9);
}

function name(text: string): string {
  return `"${text.replaceAll('"', "'")}"`;
}
