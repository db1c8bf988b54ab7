// One program on several simulated ranks. They insert in turn, a few tasks each: the state of an engine stays in the caches
// of the processor meanwhile.
// Invariant: each rank sees the tasks in program order, and no rank is more than `TURN` of its own tasks ahead of another
// one. So a rank that waits for room finds all others near: its window is larger than a turn, the tasks before the turn are
// inserted on all ranks, and the world can go on.
import {
  Datum,
  type Graph,
  type RunReport,
  type Runtime,
  type TaskClass,
  TiledMatrix,
  task,
  write,
} from '../../scheduler/index.js';
import type { Program, ProgramLayout } from './programs.js';

/** Tiles begin in host memory; making them costs no time. */
const init = task({ name: 'init', flows: { a: write('f64') }, kernel: 'init', gpuKernel: false });

/** Tasks that a rank inserts at a time. With their movements they take a small part of the smallest window. */
const TURN = 32;

type Arguments = Readonly<Record<string, unknown>>;

/** An insertion on one rank. */
interface Insertion {
  readonly cls: TaskClass;
  readonly args: Arguments;
  readonly options: object | undefined;
}

/** Gets a call for every task of the program, once. */
type Observer = (cls: TaskClass, args: Arguments) => void;

export class Together {
  private readonly runtimes: readonly Runtime[];
  private readonly observer: Observer | undefined;
  /** For each datum of rank 0, the same datum on any rank. */
  private readonly everywhere: Map<unknown, (rank: number) => Datum> = new Map();
  private graphs: Graph[] = [];
  /** Insertions of the present turn, by rank. */
  private readonly turns: readonly Insertion[][];

  constructor(runtimes: readonly Runtime[], observer?: Observer) {
    this.runtimes = runtimes;
    this.observer = observer;
    this.turns = runtimes.map(() => []);
  }

  /** `on(rank)` is a datum of rank 0 on that rank. It is called only for ranks that get a task on it. */
  private share(datum: Datum, on: (rank: number) => Datum): void {
    this.everywhere.set(datum, on);
  }

  /**
   * Makes the matrices of a program on all ranks, and their values on the owners. Returns those of rank 0, for programs
   * that `run` gets.
   */
  async make(program: Program, layout: ProgramLayout): Promise<TiledMatrix<'f64'>[]> {
    const { lower } = program;
    const matrices = this.runtimes.map((runtime) =>
      program.matrices.map((name) => new TiledMatrix(runtime, 'f64', { ...layout, lower, name })),
    );
    const tiles: Datum<'f64'>[] = [];
    matrices[0].forEach((matrix, m) => {
      for (let j = 0; j < matrix.tileColumns; j++) {
        for (let i = lower ? j : 0; i < matrix.tileRows; i++) {
          const tile = matrix.at(i, j);
          tiles.push(tile);
          this.share(tile, (rank) => matrices[rank][m].at(i, j));
        }
      }
    });
    await this.run((graph) => {
      for (const a of tiles) graph.insert(init, { a });
    });
    return matrices[0];
  }

  /** Runs a program that names data by their handles on rank 0; tasks go to the ranks that own one of their data. */
  async run(program: (graph: Graph) => void): Promise<RunReport[]> {
    let release: () => void = () => {};
    const inserted = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.graphs = [];
    const runs = this.runtimes.map((runtime) =>
      runtime.run(
        (graph) => {
          this.graphs.push(graph);
          return inserted;
        },
        { pruned: true },
      ),
    );
    // Programs use nothing else of a graph. They skip no task: each task goes to its ranks.
    program({ insert: this.insert, skips: () => false, check: () => {} } as unknown as Graph);
    this.endTurn();
    release();
    return Promise.all(runs);
  }

  private readonly insert = (cls: TaskClass, args: Arguments, options?: object): void => {
    this.observer?.(cls, args);
    if (this.graphs.length === 1) {
      this.graphs[0].insert(cls, args as never, options);
      return;
    }
    const concerned: number[] = [];
    for (const name in args) {
      const value = args[name];
      if (value instanceof Datum && !concerned.includes(value.rank)) concerned.push(value.rank);
    }
    concerned.sort((a, b) => a - b);
    let isOver = false;
    for (const rank of concerned) {
      const here: Record<string, unknown> = {};
      for (const name in args) {
        const value = args[name];
        here[name] =
          value instanceof Datum
            ? (this.everywhere.get(value) as (rank: number) => Datum)(rank)
            : value;
      }
      if (this.turns[rank].push({ cls, args: here, options }) === TURN) isOver = true;
    }
    if (isOver) this.endTurn();
  };

  private endTurn(): void {
    this.turns.forEach((turn, rank) => {
      for (const { cls, args, options } of turn.splice(0))
        this.graphs[rank].insert(cls, args as never, options);
    });
  }
}
