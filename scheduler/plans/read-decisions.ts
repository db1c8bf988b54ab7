// The decisions of a plan from the numbers of a file (save-plan.ts has the tables).
//
// The file may hold anything. Every number is checked before it is used as an index, an offset or a count, so that what is played
// stays within its memory and comes to an end:
// - a task uses the memory of its device, a copy that of the two ends of its queue, in places of the sizes of the program's data. The
//   regions, which get the addresses, are derived from these places;
// - every task has one command, on a queue that has its kernel, behind the tasks that it was declared to follow;
// - after an iteration each datum that is written lies where a command has written it, and where the next iteration needs it.
// Whether the tasks are those that the program means, the file alone says.
import type { QueueInfo } from '../../devices/backend.js';
import { executesKernels } from '../../devices/backend.js';
import { guards } from '../../devices/guards.js';
import {
  type Column,
  type DatumId,
  HOST,
  type QueueId,
  type SpaceId,
} from '../../devices/handles.js';
import type { Directory } from '../../devices/memory/directory.js';
import { ALIGNMENT } from '../../devices/memory/zone.js';
import { NO_INSERTION, PlannedCommands } from '../../devices/planning/commands.js';
import { ANY_DEVICE, type TaskClassRow } from '../../stages/task-table.js';
import { AccessMode } from '../../trace/format.js';
import type { Datum } from '../program/datum.js';
import { badFile, type FileContent } from './file-format.js';
import type { PlanHeader } from './file-header.js';
import { mismatch } from './given-parts.js';
import { Insertions } from './insertions.js';
import { type CopyPlace, iterationOf, repeats } from './iteration.js';
import type { MessageFacts } from './messages.js';
import type { Decisions } from './planned-program.js';
import type { RankColumns } from './rank-columns.js';
import { neededBy, SEND_PARAMETERS, type ShareBuilder } from './rank-share.js';
import { staysWithin } from './saved-parts.js';

/** The file, and the objects that it is about. */
interface FileParts {
  readonly file: string;
  readonly header: PlanHeader;
  readonly column: FileContent['column'];
  readonly data: readonly Datum[];
  readonly classes: readonly TaskClassRow[];
  /** Types of the parameters of each class. */
  readonly types: readonly (readonly string[])[];
  readonly queues: readonly QueueInfo[];
  readonly directory: Pick<Directory, 'bytes'>;
  readonly spaceName: (s: SpaceId) => string;
  /** If the file is that of one of several ranks. */
  readonly share: SavedShare | undefined;
}

/** What the part of a rank is read with. */
export interface SavedShare {
  readonly rank: number;
  readonly columns: RankColumns;
  readonly facts: MessageFacts;
  readonly builder: ShareBuilder;
  readonly isInline: (bytes: number) => boolean;
}

type Numbers = ArrayLike<number>;
const NONE_BEFORE: readonly number[] = [];

class DecisionReader {
  private readonly parts: FileParts;
  private readonly insertions: Insertions;
  private readonly commands: PlannedCommands = new PlannedCommands();
  private readonly placeDatum: Numbers;
  private readonly placeSpace: Numbers;
  private readonly placeOffset: Numbers;
  private readonly flows: Numbers;
  private readonly copies: Numbers;
  /** First of the flows of each task. */
  private readonly firstFlow: number[] = [];
  /** The classes that no program gives. */
  private readonly library: ReadonlySet<TaskClassRow>;
  private readonly isWritten: Uint8Array;
  private readonly issued: Uint8Array;
  /** The arguments of a command. */
  private readonly values: Float64Array;

  constructor(parts: FileParts) {
    this.parts = parts;
    const { header, classes } = parts;
    this.library = new Set(classes.filter((_, i) => header.classes[i].library === true));
    this.insertions = parts.share?.builder.insertions ?? new Insertions();
    const { column } = parts;
    this.placeDatum = column('placeDatum');
    this.placeSpace = column('placeSpace');
    this.placeOffset = column('placeOffset');
    this.flows = column('flows');
    this.copies = column('copies');
    this.isWritten = new Uint8Array(this.placeDatum.length);
    this.issued = new Uint8Array(column('class').length);
    const most = parts.classes.map(({ modes, paramNames }) => 2 * modes.length + paramNames.length);
    this.values = new Float64Array(Math.max(1 + SEND_PARAMETERS.length, ...most));
  }

  read(): Decisions {
    const { parts, insertions, commands } = this;
    const { name, evictions, makespan, criticalPath } = parts.header;
    this.places();
    this.tasks();
    this.open();
    this.issue();
    const iteration = iterationOf({ ...parts, insertions, commands, exits: this.exits() });
    this.check(repeats(iteration), 'an iteration does not end where the next one begins');
    const { rank, facts, builder } = parts.share ?? {};
    const share = builder?.share(neededBy(rank as number, facts as MessageFacts));
    return { name, evictions, makespan, criticalPath, insertions, share, iteration };
  }

  private check(holds: boolean, text: string): void {
    if (!holds) throw badFile(this.parts.file, text);
  }

  private places(): void {
    const { data } = this.parts;
    const { placeDatum, placeSpace, placeOffset } = this;
    const n = placeDatum.length;
    this.check(
      placeSpace.length === n && placeOffset.length === n,
      'its tables of memory differ in length',
    );
    for (let p = 0; p < n; p++) {
      const offset = placeOffset[p];
      this.check(placeDatum[p] < data.length, 'its memory has an unknown datum');
      const isOffset = offset >= 0 && offset % ALIGNMENT === 0;
      const end = offset + data[placeDatum[p]].bytes;
      this.check(isOffset && Number.isSafeInteger(end), 'a datum lies at a wrong offset');
    }
  }

  /** The row of the datum in a place. */
  private datum(p: number): DatumId {
    return this.parts.data[this.placeDatum[p]].row;
  }

  private tasks(): void {
    const { parts, insertions, flows } = this;
    const { classes, types, column, share } = parts;
    const classOf: Numbers = column('class');
    const params: Numbers = column('params');
    const after = this.after(classOf.length);
    const most = (least: number, of: readonly { readonly length: number }[]): number =>
      Math.max(least, ...of.map(({ length }) => length));
    const modes = classes.map((cls) => cls.modes);
    const task = {
      cls: classes[0],
      flows: new Int32Array(most(1, modes)) as Column<Int32Array, DatumId>,
      params: new Float64Array(most(SEND_PARAMETERS.length, types)),
      priority: 0,
      device: ANY_DEVICE,
    };
    let flow = 0;
    let param = 0;
    let message = 0;
    for (let n = 0; n < classOf.length; n++) {
      if (classOf[n] === classes.length && share !== undefined) {
        const place = flows[flow];
        this.check(place < this.placeDatum.length, 'a message has no datum');
        const datum = this.datum(place);
        const isInline = share.isInline(parts.directory.bytes[datum]);
        share.builder.message(share.columns.message(message++, datum, isInline), task);
        this.firstFlow.push(flow++);
        continue;
      }
      this.check(classOf[n] < classes.length, 'a task has an unknown class');
      task.cls = classes[classOf[n]];
      const kinds = types[classOf[n]];
      const used = task.cls.modes.length;
      const ends = flow + used <= flows.length && param + kinds.length <= params.length;
      this.check(ends, 'a task has no data');
      this.firstFlow.push(flow);
      for (let i = 0; i < used; i++, flow++) {
        this.check(flows[flow] < this.placeDatum.length, 'a task uses unknown memory');
        task.flows[i] = this.datum(flows[flow]);
      }
      for (let i = 0; i < kinds.length; i++, param++) {
        task.params[i] = params[param];
        this.check(fits(params[param], kinds[i]), 'a parameter of a task has a wrong value');
      }
      if (this.library.has(task.cls)) this.staysWithin(task.params, flow - used);
      insertions.add(task, after.get(n) ?? NONE_BEFORE);
    }
  }

  /** A task of the library uses no memory behind its data. `first`: the first of its flows. */
  private staysWithin(params: Float64Array, first: number): void {
    const { data } = this.parts;
    const of = [0, 1].map((i) => data[this.placeDatum[this.flows[first + i]]]);
    this.check(staysWithin(params, of), 'a copy of a part leaves its data');
  }

  private after(tasks: number): ReadonlyMap<number, readonly number[]> {
    const pairs: Numbers = this.parts.column('after');
    const found = new Map<number, number[]>();
    for (let i = 0; i + 1 < pairs.length; i += 2) {
      this.check(pairs[i] < tasks && pairs[i + 1] < tasks, 'an unknown task follows another');
      const list = found.get(pairs[i]);
      if (list === undefined) found.set(pairs[i], [pairs[i + 1]]);
      else list.push(pairs[i + 1]);
    }
    return found;
  }

  private open(): void {
    const { slots } = this.parts.header;
    const { insertions } = this;
    const open: Numbers = this.parts.column('open');
    for (let i = 0; i + 2 < open.length; i += 3) {
      const [insertion, parameter, slot] = [open[i], open[i + 1], slots[open[i + 2]]];
      const isKnown =
        insertion < insertions.count &&
        this.parts.share?.builder.messages.has(insertion) !== true &&
        parameter < insertions.classOf(insertion).paramNames.length &&
        !this.library.has(insertions.classOf(insertion));
      this.check(isKnown && slot !== undefined, 'an unknown parameter is open');
      insertions.leaveOpen({ insertion, parameter, slot });
    }
  }

  /** The commands, in the order of issue. */
  private issue(): void {
    const { parts, issued } = this;
    const queue: Numbers = parts.column('queue');
    const task: Numbers = parts.column('task');
    this.check(task.length === queue.length, 'a command has no queue');
    let copies = 0;
    for (let c = 0; c < queue.length; c++) {
      const q = queue[c] as QueueId;
      this.check(q < parts.queues.length, 'a command has an unknown queue');
      if (task[c] === 0) this.copy(q, copies++);
      else this.exec(q, task[c] - 1);
    }
    this.check(!issued.includes(0), 'a task has no command');
  }

  private exec(q: QueueId, n: number): void {
    const { parts, insertions, issued } = this;
    this.check(n < insertions.count && issued[n] === 0, 'a task has several commands');
    this.check(
      insertions.after.get(n)?.every((before) => issued[before] === 1) !== false,
      'a task runs before one that it follows',
    );
    issued[n] = 1;
    const lane = parts.share?.builder.commands.get(n);
    if (lane !== undefined) {
      const c = this.task(lane.queue, 0, n, HOST);
      this.commands.message[c] = lane.opcode;
      return;
    }
    const cls = insertions.classOf(n);
    const info = parts.queues[q];
    const kernel = cls.kernels[info.space];
    // The number of a body is no number of a kernel.
    const isBody = info.space === HOST && cls.onScriptWorkers === true;
    const isIts = (info.kind === 'script') === isBody || !guards.planFileBodies;
    if (!executesKernels(info) || kernel < 0 || !isIts) {
      const device = info.kind === 'script' ? 'script workers' : parts.spaceName(info.space);
      throw mismatch(
        parts.header.name,
        `task class '${cls.name}' has nothing that runs on ${device}, where its tasks were planned`,
        { task: cls.name },
      );
    }
    this.task(q, kernel, n, info.space);
  }

  /** Adds the command of a task that uses memory of that space; returns its number. */
  private task(q: QueueId, what: number, n: number, space: SpaceId): number {
    const { parts, insertions, flows } = this;
    const cls = insertions.classOf(n);
    const nFlows = cls.modes.length;
    const nParams = cls.paramNames.length;
    const { lengths } = cls;
    const elementBytes = lengths?.on[space] === 1 ? lengths.elementBytes : undefined;
    const { values, commands } = this;
    const first = this.firstFlow[n];
    for (let i = 0; i < nFlows; i++) values[i] = this.use(flows[first + i], space);
    for (let i = 0; i < nParams; i++) values[nFlows + i] = insertions.parameter(n, i);
    const at = nFlows + nParams;
    const { bytes } = parts.directory;
    for (let i = 0; elementBytes !== undefined && i < nFlows; i++)
      values[at + i] = bytes[insertions.datum(n, i)] / elementBytes[i];
    const count = elementBytes === undefined ? at : at + nFlows;
    const c = commands.add(q, what, n, nFlows, values, count);
    for (let i = 0; i < nFlows; i++) {
      commands.data[commands.first[c] + i] = insertions.datum(n, i);
      if (cls.modes[i] !== AccessMode.read) this.isWritten[flows[first + i]] = 1;
    }
    return c;
  }

  private copy(q: QueueId, n: number): void {
    const { parts, commands, copies, placeDatum } = this;
    const { kind, space, peer } = parts.queues[q];
    const isCopy = kind === 'h2d' || kind === 'd2h' || kind === 'peer';
    const [from, to] = [copies[2 * n], copies[2 * n + 1]];
    this.check(
      isCopy && Math.max(from, to) < placeDatum.length && placeDatum[from] === placeDatum[to],
      'a copy has wrong memory',
    );
    const source = kind === 'd2h' ? space : kind === 'h2d' ? HOST : peer;
    const destination = kind === 'd2h' ? HOST : space;
    const d = this.datum(to);
    const values = [this.use(to, destination), this.use(from, source), parts.directory.bytes[d], d];
    const c = commands.add(q, destination + 256 * source, NO_INSERTION, 0, values, values.length);
    commands.isCopy[c] = 1;
    commands.data[commands.first[c]] = d;
    this.isWritten[to] = 1;
  }

  /** The offset of a place that must be in that space. */
  private use(p: number, space: SpaceId): number {
    this.check(this.placeSpace[p] === space, 'a command uses the memory of another device');
    return this.placeOffset[p];
  }

  private exits(): ReadonlyMap<DatumId, readonly CopyPlace[]> {
    const exits: Numbers = this.parts.column('exits');
    const found = new Map<DatumId, CopyPlace[]>();
    for (let i = 0; i < exits.length; i++) {
      this.check(this.isWritten[exits[i]] === 1, 'a value is where no command has written it');
      const d = this.datum(exits[i]);
      const space = this.placeSpace[exits[i]] as SpaceId;
      const list = found.get(d) ?? [];
      this.check(!list.some((copy) => copy.space === space), 'a device has two copies of a datum');
      list.push({ space, offset: this.placeOffset[exits[i]] });
      found.set(d, list);
    }
    const { insertions } = this;
    const written = new Set<DatumId>();
    for (let n = 0; n < insertions.count; n++)
      insertions.classOf(n).modes.forEach((mode, i) => {
        if (mode !== AccessMode.read) written.add(insertions.datum(n, i));
      });
    const isWhole = written.size === found.size && [...found.keys()].every((d) => written.has(d));
    this.check(isWhole, 'a datum that is written has no place');
    return found;
  }
}

function fits(value: number, type: string): boolean {
  if (type === 'i32') return (value | 0) === value;
  return type !== 'bool' || value === 0 || value === 1;
}

/**
 * @throws HeadraceError `ERR_PLAN_FILE` for numbers that make no plan, `ERR_PLAN_MISMATCH` for a class without a kernel where its
 *   tasks were planned
 */
export function readDecisions(parts: FileParts): Decisions {
  return new DecisionReader(parts).read();
}
