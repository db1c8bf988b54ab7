// The records as a reader delivers them, and the visitor that receives them.

/** A retired task. Times are nanoseconds from the trace's `clockOrigin`. */
export interface TaskRecord {
  id: number;
  taskClass: number;
  device: number;
  lane: number;
  flags: number;
  releasedBy: number;
  /** Ten times, see `TaskTime`. */
  readonly times: Float64Array;
}

/** A transfer. Times are nanoseconds from `clockOrigin`. */
export interface TransferRecord {
  kind: number;
  reason: number;
  lane: number;
  source: number;
  destination: number;
  task: number;
  datum: number;
  version: number;
  peer: number;
  message: number;
  bytes: number;
  issued: number;
  start: number;
  end: number;
}

/** Predecessors of a task, data of a task, or its parameters: `values[0 .. count)`. */
export interface ListRecord {
  task: number;
  count: number;
  readonly values: Int32Array | Uint32Array;
  /** Two bits per datum of an accesses record, see `AccessMode`. */
  modes: number;
}

/** A datum. Missing coordinates are `NO_COORDINATE`. */
export interface DatumRecord {
  id: number;
  home: number;
  bytes: number;
  name: string;
  i: number;
  j: number;
  k: number;
}

/** A counter sample; `values` as in `CounterKind`. */
export interface CounterRecord {
  kind: number;
  space: number;
  time: number;
  readonly values: Float64Array;
}

/** An event, see `EventKind`. */
export interface EventRecord {
  kind: number;
  space: number;
  task: number;
  datum: number;
  time: number;
  bytes: number;
  text: string;
}

/** Iterations of a plan that were played, see `PlayedIterations`. */
export interface PlayRecord {
  plan: string;
  first: number;
  iterations: number;
  tasks: number;
  iteration: number;
  before: number;
}

/** A span in which a thread wanted to run and had no core. Times are nanoseconds from `clockOrigin`. */
export interface StolenRecord {
  /** The lane it serves, any lane of a GPU for the GPU's thread; `NO_INDEX`: the engine's thread. */
  lane: number;
  from: number;
  to: number;
}

/** A clock measurement: add `offset` to this rank's clock (raw, not relative) to get the peer's. */
export interface ClockRecord {
  peer: number;
  /** Relative to `clockOrigin`. */
  time: number;
  offset: number;
  error: number;
}

/** The callbacks of a reader; every one is optional. */
export interface TraceVisitor {
  /** A task class got its name. `namedByParameters`: its parameters tell its tasks apart. */
  taskClass?(
    id: number,
    name: string,
    parameterNames: readonly string[],
    namedByParameters: boolean,
  ): void;
  /** A datum got its name. */
  datum?(datum: DatumRecord): void;
  /** A task retired. */
  task?(task: TaskRecord): void;
  /** A transfer finished. */
  transfer?(transfer: TransferRecord): void;
  /** Up to six predecessors of a task. */
  dependencies?(list: ListRecord): void;
  /** Up to six data of a task. */
  accesses?(list: ListRecord): void;
  /** Up to six parameters of a task. */
  parameters?(list: ListRecord): void;
  /** A sample of memory or progress. */
  counter?(counter: CounterRecord): void;
  /** An event. */
  event?(event: EventRecord): void;
  /** Iterations of a plan were played. Their tasks follow. */
  play?(play: PlayRecord): void;
  /** A thread had no core for a while. */
  stolen?(stolen: StolenRecord): void;
  /** This rank's clock was compared with another's. */
  clock?(clock: ClockRecord): void;
}

/** The outcome of reading. */
export interface TraceOutcome {
  /** The end record was there and agrees with the records that were read. */
  readonly complete: boolean;
  readonly tasks: number;
  readonly transfers: number;
  /** Units after the header that were read. */
  readonly units: number;
  /** Records of kinds this version does not know. */
  readonly skipped: number;
  /** The missing parts, in words; empty for a complete trace. */
  readonly problems: readonly string[];
}
