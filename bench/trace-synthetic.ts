// Synthetic traces of any size: a program (tasks with their data) scheduled in insertion order over the lanes of a
// machine, with caches of limited size, transfers, spills, messages between ranks and clocks that disagree.
// Used by the trace tests, the trace benchmarks and the screenshots of the documentation. Deterministic by seed.
import {
  AccessMode,
  EventKind,
  type LaneKind,
  MemorySink,
  NO_INDEX,
  NONE,
  type TraceHeader,
  type TraceLane,
  TraceRecorder,
  type TraceSink,
  TransferKind,
  TransferReason,
} from '../trace/index.js';
import {
  random,
  type SyntheticMachine,
  type SyntheticProgram,
  type SyntheticTask,
} from './trace-programs.js';

export * from './trace-programs.js';

/** Header of rank `rank` of a machine. Lanes: workers, then per GPU compute, in, out and one per peer; then network. */
function syntheticHeader(machine: SyntheticMachine, program: string, rank = 0): TraceHeader {
  const spaces = [{ kind: 'host', name: 'host', bytes: 2 ** 33 }];
  const lanes: TraceLane[] = [];
  const lane = (kind: LaneKind, name: string, space: number, peer = -1): void => {
    lanes.push({ kind, name, space, peer });
  };
  for (let w = 0; w < machine.workers; w++) lane('worker', `worker ${w}`, 0);
  for (let g = 1; g <= machine.gpus; g++) {
    spaces.push({ kind: 'emulated', name: `gpu ${g - 1}`, bytes: machine.gpuBytes });
    lane('compute', `gpu ${g - 1} compute`, g);
    lane('h2d', `gpu ${g - 1} in`, g);
    lane('d2h', `gpu ${g - 1} out`, g);
    for (let p = 1; p <= machine.gpus; p++) {
      if (p !== g) lane('peer', `gpu ${g - 1} from gpu ${p - 1}`, g, p);
    }
  }
  if (machine.ranks > 1) lane('network', 'network', 0);
  return {
    program,
    hostname: `node${rank}`,
    rank,
    ranks: machine.ranks,
    run: 'synthetic',
    started: '2026-11-21T00:00:00.000Z',
    clockOrigin: 1_000_000_000_000 + rank * 5_000_000_000,
    clockOffset: 0,
    simulated: true,
    spaces,
    lanes,
    options: { gpus: machine.gpus, ranks: machine.ranks },
  };
}

interface Resident {
  dirty: boolean;
  used: number;
  bytes: number;
  /** Version it holds, or -1 while nothing has arrived. */
  valid: number;
}

// The knowledge of one rank while its part of the program is laid out in time.
class RankState {
  readonly recorder: TraceRecorder;
  readonly header: TraceHeader;
  readonly laneFree: Float64Array;
  readonly resident: Map<number, Resident>[] = [];
  readonly used: number[] = [];
  readonly hostValid: Set<number> = new Set();
  readonly retire: Float64Array;
  readonly named: Set<number> = new Set();
  nextInsert = 0;
  inserted = 0;
  running = 0;
  constructor(recorder: TraceRecorder, header: TraceHeader, window: number) {
    this.recorder = recorder;
    this.header = header;
    this.laneFree = new Float64Array(header.lanes.length);
    this.retire = new Float64Array(window);
    for (const _ of header.spaces) {
      this.resident.push(new Map());
      this.used.push(0);
    }
  }
}

/**
 * Lays a program out in time on a machine and records it, one sink per rank. `clockError` adds a wrong offset of
 * up to so many nanoseconds to each rank's clock measurements (tests of clock repair).
 */
export function simulate(
  program: SyntheticProgram,
  machine: SyntheticMachine,
  sinks: readonly TraceSink[],
  options: { readonly clockError?: number; readonly seed?: number } = {},
): void {
  const next = random(options.seed ?? 1);
  const ranks: RankState[] = [];
  for (let rank = 0; rank < machine.ranks; rank++) {
    const header = syntheticHeader(machine, program.name, rank);
    ranks.push(new RankState(new TraceRecorder(sinks[rank], header), header, machine.window));
  }
  const layout = new Layout(program, machine, ranks, next);
  const classes = new Map<string, number>();
  for (const task of program.tasks) {
    if (classes.has(task.taskClass)) continue;
    for (const state of ranks) state.recorder.taskClass(classes.size, task.taskClass);
    classes.set(task.taskClass, classes.size);
  }
  const skews = ranks.map((_, rank) =>
    rank === 0 ? 0 : (options.clockError ?? 0) * (next() - 0.5),
  );
  const clocks = (time: number): void => {
    for (let rank = 1; rank < ranks.length; rank++) {
      const offset = ranks[0].header.clockOrigin - ranks[rank].header.clockOrigin + skews[rank];
      ranks[rank].recorder.clock(0, ranks[rank].header.clockOrigin + time, offset, 500);
    }
  };
  clocks(0);
  program.tasks.forEach((task, id) => {
    layout.place(id, task, classes.get(task.taskClass)!);
  });
  clocks(layout.end);
  for (const state of ranks) {
    state.recorder.event(EventKind.insertEnd, state.header.clockOrigin + state.nextInsert);
    state.recorder.event(EventKind.runEnd, state.header.clockOrigin + layout.end);
    state.recorder.finish();
  }
}

/** The traces of all ranks, in memory. */
export function simulateInMemory(
  program: SyntheticProgram,
  machine: SyntheticMachine,
  options: { readonly clockError?: number; readonly seed?: number } = {},
): Uint8Array[] {
  const sinks = Array.from({ length: machine.ranks }, () => new MemorySink());
  simulate(program, machine, sinks, options);
  return sinks.map((sink) => sink.bytes());
}

class Layout {
  end = 0;
  readonly #program: SyntheticProgram;
  readonly #machine: SyntheticMachine;
  readonly #ranks: readonly RankState[];
  readonly #random: () => number;
  readonly #execEnd: Float64Array;
  readonly #writer: Int32Array;
  readonly #version: Uint32Array;
  // Rank that holds the newest version, and its readers since it was written.
  readonly #owner: Int32Array;
  readonly #readers: number[][];
  #message = 0;

  constructor(
    program: SyntheticProgram,
    machine: SyntheticMachine,
    ranks: readonly RankState[],
    next: () => number,
  ) {
    this.#program = program;
    this.#machine = machine;
    this.#ranks = ranks;
    this.#random = next;
    this.#execEnd = new Float64Array(program.tasks.length);
    this.#writer = new Int32Array(program.data.length).fill(-1);
    this.#version = new Uint32Array(program.data.length);
    this.#owner = new Int32Array(program.data.length);
    this.#readers = program.data.map(() => []);
    for (let datum = 0; datum < program.data.length; datum++) ranks[0].hostValid.add(datum);
  }

  // biome-ignore lint/complexity/noExcessiveLinesPerFunction: the stages of one task in order.
  place(id: number, task: SyntheticTask, taskClass: number): void {
    const machine = this.#machine;
    const state = this.#ranks[task.rank];
    const { recorder, header } = state;
    const origin = header.clockOrigin;

    // Insertion: held back while the task `window` places earlier has not retired.
    const slot = state.inserted % machine.window;
    const allowed = state.retire[slot];
    if (allowed > state.nextInsert) {
      recorder.event(EventKind.throttleBegin, origin + state.nextInsert);
      recorder.event(EventKind.throttleEnd, origin + allowed);
      state.nextInsert = allowed;
    }
    const inserted = state.nextInsert;
    state.nextInsert += machine.insertEvery;
    state.inserted++;

    // Dependencies: last writers of its inputs, last readers and writer of its output.
    let ready = inserted;
    let releasedBy = NONE;
    const seen = new Set<number>();
    const depend = (predecessor: number): void => {
      if (predecessor < 0 || seen.has(predecessor)) return;
      seen.add(predecessor);
      if (this.#program.tasks[predecessor].rank !== task.rank) return;
      recorder.dependency(id, predecessor);
      const release = this.#execEnd[predecessor] + 200;
      if (release >= ready) {
        ready = release;
        releasedBy = predecessor;
      }
    };
    for (const datum of task.reads) depend(this.#writer[datum]);
    for (const reader of this.#readers[task.writes]) depend(reader);
    depend(this.#writer[task.writes]);
    for (const datum of [...task.reads, task.writes]) {
      if (state.named.has(datum)) continue;
      state.named.add(datum);
      const { name, i, j, bytes } = this.#program.data[datum];
      recorder.datum(datum, bytes, 0, name, [i, j]);
    }
    for (const datum of task.reads) recorder.access(id, datum, AccessMode.read);
    const fresh = this.#writer[task.writes] < 0 && task.reads.length > 0;
    recorder.access(id, task.writes, fresh ? AccessMode.write : AccessMode.readWrite);
    recorder.parameters(id, task.parameters);

    const wanted = fresh ? task.reads : [...task.reads, task.writes];
    const alloc = this.#reserve(state, task, [...task.reads, task.writes], ready);
    let arrived = alloc;
    const received = wanted.map((datum) => this.#receive(state, task, id, datum, alloc));
    const commIn = Math.max(alloc, ...received);
    wanted.forEach((datum, n) => {
      if (task.device > 0) {
        arrived = Math.max(
          arrived,
          this.#stageIn(state, task, id, datum, Math.max(alloc, received[n])),
        );
      }
    });
    // The host reads the newest version back first when only a GPU has it.
    if (task.device === 0) {
      for (const datum of wanted) {
        arrived = Math.max(arrived, this.#toHost(state, id, datum, commIn, TransferReason.stageIn));
      }
    }
    const stageIn = Math.max(alloc, arrived);
    const lane = this.#lane(state, task);
    const issued = Math.max(stageIn, commIn) + 150 + Math.round(100 * this.#random());
    const execStart = Math.max(issued, state.laneFree[lane]);
    const execEnd = execStart + task.nanoseconds;
    state.laneFree[lane] = execEnd;
    this.#execEnd[id] = execEnd;
    const finalized = execEnd + 300;
    state.retire[slot] = finalized;
    this.end = Math.max(this.end, finalized);
    this.#write(state, task, execEnd);
    for (const datum of task.reads) this.#readers[datum].push(id);
    this.#writer[task.writes] = id;
    this.#readers[task.writes] = [];
    this.#version[task.writes]++;

    recorder.task({
      id,
      taskClass,
      device: task.device,
      lane,
      flags: 6,
      releasedBy,
      inserted: origin + inserted,
      ready: origin + ready,
      alloc: origin + alloc,
      stageIn: origin + stageIn,
      commIn: origin + Math.max(stageIn, commIn),
      issued: origin + issued,
      execStart: origin + execStart,
      execEnd: origin + execEnd,
      stageOut: origin + execEnd + 100,
      finalized: origin + finalized,
    });
    this.#sample(state, execEnd);
  }

  #lane(state: RankState, task: SyntheticTask): number {
    const { lanes } = state.header;
    let best = -1;
    for (let lane = 0; lane < lanes.length; lane++) {
      const kind = task.device === 0 ? 'worker' : 'compute';
      if (lanes[lane].kind !== kind || lanes[lane].space !== task.device) continue;
      if (best < 0 || state.laneFree[lane] < state.laneFree[best]) best = lane;
    }
    return best;
  }

  #findLane(state: RankState, kind: LaneKind, space: number, peer = -1): number {
    return state.header.lanes.findIndex(
      (lane) => lane.kind === kind && lane.space === space && lane.peer === peer,
    );
  }

  // Makes room on the task's GPU; returns when its memory is granted.
  #reserve(state: RankState, task: SyntheticTask, data: readonly number[], ready: number): number {
    if (task.device === 0) return ready;
    const space = task.device;
    const resident = state.resident[space];
    let granted = ready;
    for (const datum of data) {
      const copy = resident.get(datum);
      if (copy) copy.used = ready;
    }
    for (const datum of data) {
      if (resident.has(datum)) continue;
      const { bytes } = this.#program.data[datum];
      while (state.used[space] + bytes > this.#machine.gpuBytes) {
        const victim = this.#victim(resident, data);
        if (victim < 0) break;
        granted = Math.max(granted, this.#evict(state, space, victim, granted));
      }
      resident.set(datum, { dirty: false, used: ready, bytes, valid: -1 });
      state.used[space] += bytes;
    }
    return granted;
  }

  #victim(resident: Map<number, Resident>, keep: readonly number[]): number {
    let victim = -1;
    let oldest = Number.POSITIVE_INFINITY;
    for (const [datum, copy] of resident) {
      if (copy.used < oldest && !keep.includes(datum)) {
        oldest = copy.used;
        victim = datum;
      }
    }
    return victim;
  }

  #evict(state: RankState, space: number, datum: number, time: number): number {
    const copy = state.resident[space].get(datum)!;
    let freed = time;
    if (copy.dirty) {
      freed = this.#copyOut(state, space, NONE, datum, time, TransferReason.spill);
      state.recorder.event(EventKind.spill, state.header.clockOrigin + freed, {
        space,
        task: NONE,
        datum,
        bytes: copy.bytes,
      });
    } else {
      state.recorder.event(EventKind.evict, state.header.clockOrigin + time, {
        space,
        task: NONE,
        datum,
        bytes: copy.bytes,
      });
    }
    state.resident[space].delete(datum);
    state.used[space] -= copy.bytes;
    return freed;
  }

  #copyOut(
    state: RankState,
    space: number,
    task: number,
    datum: number,
    time: number,
    reason: number,
  ): number {
    const lane = this.#findLane(state, 'd2h', space);
    const writer = this.#writer[datum];
    if (writer >= 0) time = Math.max(time, this.#execEnd[writer]);
    const end = this.#move(
      state,
      lane,
      TransferKind.d2h,
      reason,
      space,
      0,
      task,
      datum,
      time,
      this.#machine.hostBandwidth,
    );
    state.hostValid.add(datum);
    const copy = state.resident[space].get(datum);
    if (copy) copy.dirty = false;
    return end;
  }

  #toHost(state: RankState, task: number, datum: number, time: number, reason: number): number {
    if (state.hostValid.has(datum)) return time;
    const space = state.resident.findIndex((resident) => resident.get(datum)?.dirty === true);
    if (space < 0) return time;
    return this.#copyOut(state, space, task, datum, time, reason);
  }

  // Brings a datum onto the task's GPU if its newest version is not there.
  #stageIn(state: RankState, task: SyntheticTask, id: number, datum: number, time: number): number {
    const copy = state.resident[task.device].get(datum)!;
    if (copy.dirty || copy.valid === this.#version[datum]) return time;
    copy.valid = this.#version[datum];
    const owner = state.resident.findIndex(
      (resident, space) => space !== task.device && resident.get(datum)?.dirty === true,
    );
    if (owner > 0) {
      const lane = this.#findLane(state, 'peer', task.device, owner);
      return this.#move(
        state,
        lane,
        TransferKind.d2d,
        TransferReason.stageIn,
        owner,
        task.device,
        id,
        datum,
        time,
        this.#machine.peerBandwidth,
      );
    }
    const lane = this.#findLane(state, 'h2d', task.device);
    return this.#move(
      state,
      lane,
      TransferKind.h2d,
      TransferReason.stageIn,
      0,
      task.device,
      id,
      datum,
      time,
      this.#machine.hostBandwidth,
    );
  }

  // Gets the newest version from the rank that has it into host memory.
  #receive(state: RankState, task: SyntheticTask, id: number, datum: number, time: number): number {
    const from = this.#owner[datum];
    if (from === task.rank || state.hostValid.has(datum)) return time;
    const sender = this.#ranks[from];
    const { bytes } = this.#program.data[datum];
    const writer = this.#writer[datum];
    const produced = writer < 0 ? 0 : this.#execEnd[writer];
    const left = this.#toHost(sender, NONE, datum, produced, TransferReason.send);
    const sendLane = this.#findLane(sender, 'network', 0);
    const lane = this.#findLane(state, 'network', 0);
    const start = Math.max(left, time, sender.laneFree[sendLane], state.laneFree[lane]);
    const duration = Math.ceil(bytes / this.#machine.networkBandwidth);
    const message = this.#message++;
    const record = (
      side: RankState,
      on: number,
      reason: number,
      peer: number,
      shift: number,
    ): void => {
      const { clockOrigin } = side.header;
      side.laneFree[on] = start + shift + duration;
      const space = reason === TransferReason.send ? 0 : NO_INDEX;
      const destination = reason === TransferReason.send ? NO_INDEX : 0;
      const forTask = reason === TransferReason.send ? (writer < 0 ? NONE : writer) : id;
      side.recorder.transfer({
        kind: TransferKind.staged,
        reason,
        lane: on,
        source: space,
        destination,
        task: forTask,
        datum,
        version: this.#version[datum],
        peer,
        message,
        bytes,
        issued: clockOrigin + Math.min(start, time),
        start: clockOrigin + start + shift,
        end: clockOrigin + start + shift + duration,
      });
    };
    if (!sender.named.has(datum)) {
      sender.named.add(datum);
      const { name, i, j } = this.#program.data[datum];
      sender.recorder.datum(datum, bytes, 0, name, [i, j]);
    }
    record(sender, sendLane, TransferReason.send, task.rank, 0);
    record(state, lane, TransferReason.receive, from, 2000);
    state.hostValid.add(datum);
    return start + 2000 + duration;
  }

  // biome-ignore lint/complexity/useMaxParams: private to this file.
  #move(
    state: RankState,
    lane: number,
    kind: number,
    reason: number,
    source: number,
    destination: number,
    task: number,
    datum: number,
    time: number,
    bandwidth: number,
  ): number {
    const { bytes } = this.#program.data[datum];
    const { clockOrigin } = state.header;
    const start = Math.max(time + 80, state.laneFree[lane]);
    const end = start + Math.ceil(bytes / bandwidth) + 400;
    state.laneFree[lane] = end;
    this.end = Math.max(this.end, end);
    state.recorder.transfer({
      kind,
      reason,
      lane,
      source,
      destination,
      task,
      datum,
      version: this.#version[datum],
      peer: -1,
      message: NONE,
      bytes,
      issued: clockOrigin + time,
      start: clockOrigin + start,
      end: clockOrigin + end,
    });
    return end;
  }

  #write(state: RankState, task: SyntheticTask, time: number): void {
    const datum = task.writes;
    for (const other of this.#ranks) {
      if (other !== state) other.hostValid.delete(datum);
      other.resident.forEach((resident, space) => {
        const copy = resident.get(datum);
        if (!copy || (other === state && space === task.device)) return;
        resident.delete(datum);
        other.used[space] -= copy.bytes;
      });
    }
    this.#owner[datum] = task.rank;
    if (task.device === 0) {
      state.hostValid.add(datum);
      return;
    }
    state.hostValid.delete(datum);
    const copy = state.resident[task.device].get(datum)!;
    copy.dirty = true;
    copy.used = time;
  }

  #sample(state: RankState, time: number): void {
    const { recorder, header } = state;
    const now = header.clockOrigin + time;
    if (!recorder.counterDue(now)) return;
    for (let space = 1; space < header.spaces.length; space++) {
      let dirty = 0;
      for (const copy of state.resident[space].values()) if (copy.dirty) dirty += copy.bytes;
      const pinned = Math.min(state.used[space] - dirty, 2 ** 20);
      recorder.memory({
        space,
        time: now,
        used: state.used[space],
        pinned,
        dirty,
        clean: state.used[space] - dirty - pinned,
        arriving: 0,
      });
    }
    const backlog = Math.max(0, Math.round((time - state.nextInsert) / 1000));
    recorder.progress({
      time: now,
      ready: backlog % 97,
      window: backlog % 4096,
      bytesInFlight: 0,
      messagesInFlight: 0,
      inserted: state.inserted,
      retired: recorder.tasks,
    });
  }
}
