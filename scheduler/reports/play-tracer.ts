// Records the tasks and copies of plays: the same records as those of a run, made when iterations are over from the times
// that the queues have kept (scheduler/plans/play-times.ts).
//
// The engine does not see the stages of a played task. It counts as inserted when its iterations began, as ready and issued
// when the last task that it follows had ended, and as finalized when it ended.
// Invariant: within a trace, tasks of plays have ids of their own, in program order from `FIRST_PLAYED` on.
import { RecordTimes, Status } from '../../devices/backend.js';
import type { DatumId } from '../../devices/handles.js';
import type { TaskClassRow } from '../../stages/task-table.js';
import { AccessMode, FIRST_PLAYED, NO_PEER, NONE, TaskFlag, TaskTime } from '../../trace/format.js';
import type { TraceRecorder } from '../../trace/recorder.js';
import type { FinishedTransfer, Scratch, TaskHead } from '../../trace/recorder-input.js';
import type { EngineState } from '../engine/state.js';
import type { PlannedProgram } from '../plans/planned-program.js';
import type { PlayedPart } from '../plans/played-part.js';
import { PlayTemplate } from './play-template.js';
import { ALL_STAGES } from './task-tracer.js';

/** Ids of classes in the trace count down from here: those of the engine count up from 0. */
const LAST_CLASS = 0xffff;

/** A part while it is recorded. */
interface Recording {
  readonly part: PlayedPart;
  readonly template: PlayTemplate;
  /** End and id of the last writer of each datum, and of the reader since then that ended last. */
  readonly written: Float64Array;
  readonly writer: Float64Array;
  readonly read: Float64Array;
  readonly reader: Float64Array;
  /** End of each task in the last iteration in which it ran. */
  readonly ends: Float64Array;
}

export class PlayTracer {
  private readonly state: EngineState;
  private readonly recorder: TraceRecorder;
  /** Names a datum in the trace before its first use there. */
  private readonly name: (d: DatumId) => void;
  private readonly templates: WeakMap<PlannedProgram, PlayTemplate> = new WeakMap();
  /** Ids of classes. Those of plans are not numbered with those of the engine. */
  private readonly classIds: Map<string, number> = new Map();
  private next = FIRST_PLAYED;
  // Filled anew for every record.
  private readonly head: Scratch<TaskHead> = {
    id: 0,
    taskClass: 0,
    device: 0,
    lane: 0,
    flags: 0,
    releasedBy: NONE,
  };
  private readonly times: Float64Array = new Float64Array(TaskTime.count);

  constructor(state: EngineState, recorder: TraceRecorder, name: (d: DatumId) => void) {
    this.state = state;
    this.recorder = recorder;
    this.name = name;
  }

  record(part: PlayedPart): void {
    const template = this.templateOf(part.program);
    const iterations = iterationsIn(part, template);
    if (iterations === 0) return;
    const { recorder } = this;
    for (const d of template.distinct) this.name(d);
    const { tasks } = template;
    // Ids are used again after 2^31 tasks, as those of inserted tasks are after 2^32.
    const first = this.next + iterations * tasks > 2 ** 32 ? FIRST_PLAYED : this.next;
    this.next = first + iterations * tasks;
    const { name: plan } = part.program.report;
    const before = part.before >>> 0;
    recorder.play({ plan, first, iterations, tasks, iteration: part.iteration, before });
    const column = (value: number): Float64Array =>
      new Float64Array(template.distinct.length).fill(value);
    const recording: Recording = {
      part,
      template,
      written: column(part.began),
      writer: column(NONE),
      read: column(part.began),
      reader: column(NONE),
      ends: new Float64Array(tasks),
    };
    for (let i = 0; i < iterations; i++) {
      for (let n = 0; n < tasks; n++) this.task(recording, n, i, first + i * tasks);
      this.copies(part, template, i);
    }
  }

  private templateOf(program: PlannedProgram): PlayTemplate {
    let template = this.templates.get(program);
    if (template === undefined) {
      template = new PlayTemplate(program, this.state.backend, (cls) => this.classId(cls));
      this.templates.set(program, template);
    }
    return template;
  }

  private classId({ name, paramNames, modes }: TaskClassRow): number {
    const key = [name, modes.length === 0, ...paramNames].join();
    let id = this.classIds.get(key);
    if (id === undefined) {
      id = LAST_CLASS - this.classIds.size;
      this.classIds.set(key, id);
      this.recorder.taskClass(id, name, paramNames, modes.length === 0);
    }
    return id;
  }

  /** Records task `n` of an iteration, whose first task has the id `first`, if it has run. */
  private task(recording: Recording, n: number, iteration: number, first: number): void {
    const { recorder, head, times } = this;
    const { part, template } = recording;
    const list = template.list[n];
    const at = iteration * template.lengths[list] + template.record[n];
    const status = statusOf(part, list, at);
    if (status === Status.cancelled) return;
    const id = first + n;
    head.id = id;
    head.taskClass = template.classIds[n];
    head.device = template.device[n];
    head.lane = template.lane[n];
    head.flags = ALL_STAGES | TaskFlag.played | (status === Status.ok ? 0 : TaskFlag.failed);
    this.release(recording, n, first);
    // A command that failed with its device has no times.
    const start = part.times[list][at * RecordTimes.doubles + RecordTimes.start];
    const end = part.times[list][at * RecordTimes.doubles + RecordTimes.end];
    times[TaskTime.inserted] = part.began;
    times[TaskTime.execStart] = Number.isNaN(start) ? part.ended : start;
    times[TaskTime.execEnd] = Number.isNaN(end) ? part.ended : end;
    recorder.taskRow(head, times, 0);
    recorder.accesses(id, template.data, template.firstFlow[n], template.modes[n]);
    const after = part.after.get(n);
    if (after !== undefined) for (const m of after) recorder.dependency(id, first + m);
    this.parameters(part, template, id, n, iteration);
    accessed(recording, n, id, times[TaskTime.execEnd]);
  }

  /** When task `n` was ready, and which task released it last. */
  private release(recording: Recording, n: number, first: number): void {
    const { part, template, written, writer, read, reader, ends } = recording;
    let ready = part.began;
    let by = NONE;
    const modes = template.modes[n];
    const flow = template.firstFlow[n];
    for (let i = 0; i < modes.length; i++) {
      const d = template.local[flow + i];
      if (written[d] > ready) {
        ready = written[d];
        by = writer[d];
      }
      if (modes[i] !== AccessMode.read && read[d] > ready) {
        ready = read[d];
        by = reader[d];
      }
    }
    const after = part.after.get(n);
    if (after !== undefined)
      for (const m of after) {
        if (ends[m] <= ready) continue;
        ready = ends[m];
        by = first + m;
      }
    this.head.releasedBy = by;
    this.times[TaskTime.ready] = ready;
  }

  private parameters(
    part: PlayedPart,
    template: PlayTemplate,
    id: number,
    n: number,
    iteration: number,
  ): void {
    const { parameters, slots } = template;
    const from = template.firstParameter[n];
    const count = template.firstParameter[n + 1] - from;
    if (count === 0) return;
    const open = iteration * part.program.slots.length;
    for (let i = from; i < from + count; i++)
      if (slots[i] >= 0) parameters[i] = part.parameters[open + slots[i]];
    this.recorder.parameters(id, parameters, from, count);
  }

  /** Records the copies of an iteration that have been made. */
  private copies(part: PlayedPart, template: PlayTemplate, iteration: number): void {
    const { recorder, state } = this;
    for (const copy of template.copies) {
      const { list, record } = copy;
      const at = iteration * template.lengths[list] + record;
      const start = part.times[list][at * RecordTimes.doubles + RecordTimes.start];
      if (Number.isNaN(start) || statusOf(part, list, at) === Status.cancelled) continue;
      const transfer: FinishedTransfer = {
        ...copy,
        task: NONE,
        version: state.directory.version[copy.datum],
        peer: NO_PEER,
        message: NONE,
        issued: start,
        start,
        end: part.times[list][at * RecordTimes.doubles + RecordTimes.end],
      };
      recorder.transfer(transfer);
    }
  }
}

/** Task `n` has used its data until `end`. */
function accessed(recording: Recording, n: number, id: number, end: number): void {
  const { part, template, written, writer, read, reader, ends } = recording;
  ends[n] = end;
  const modes = template.modes[n];
  const flow = template.firstFlow[n];
  for (let i = 0; i < modes.length; i++) {
    const d = template.local[flow + i];
    if (modes[i] !== AccessMode.read) {
      written[d] = end;
      writer[d] = id;
      read[d] = part.began;
      reader[d] = NONE;
    } else if (end > read[d]) {
      read[d] = end;
      reader[d] = id;
    }
  }
}

/** Status of a record; `cancelled` also for one that has not run. */
function statusOf(
  { succeeded, failed, times, status }: PlayedPart,
  list: number,
  at: number,
): number {
  if (at < succeeded[list]) return Status.ok;
  if (at === succeeded[list]) return failed[list] === Status.ok ? Status.cancelled : failed[list];
  const hasTimes = !Number.isNaN(times[list][at * RecordTimes.doubles]);
  return hasTimes ? status(list, at) : Status.cancelled;
}

/** Iterations of which any record has run. */
function iterationsIn(part: PlayedPart, { lengths }: PlayTemplate): number {
  const begun = part.times.map((list, i) => {
    let at = list.length / RecordTimes.doubles - 1;
    while (at >= 0 && statusOf(part, i, at) === Status.cancelled) at--;
    return Math.ceil((at + 1) / lengths[i]);
  });
  return Math.max(0, ...begun);
}
