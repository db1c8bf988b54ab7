// What it costs to watch programs that do not repeat: their runs with `plans: 'auto'` divided by those without.
//
// Each round makes three runtimes: one that watches, and two that do not. They run the same programs in turn, in an order that goes
// round, so that the load of the machine meets all of them. The ratio of the two that do not watch shows how far such a figure
// strays by chance. Every run counts from the first one on, in new runtimes whose code is compiled.
import { type Datum, type Graph, Runtime, read, readWrite, task } from '../index.js';
import { type BenchEntry, log, median } from './harness.js';

const ROUNDS = 6;
const RUNS = 45;
const TASKS = 2000;
const SHORT_RUNS = 600;
const DATA = 64;

const step = task({
  name: 'step',
  flows: { y: readWrite('f64'), a: read('f64'), b: read('f64'), c: read('f64') },
  params: { a0: 'f64' },
  kernel: 'empty',
});

type Data = readonly Datum<'f64'>[];
type Program = (graph: Graph, data: Data, run: number) => void;

/** Numbers below DATA, the same for the same seed. */
function numbers(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 8) % DATA;
  };
}

/** Inserts random tasks on data that are turned by `turn`. */
function insertRandom(graph: Graph, data: Data, seed: number, tasks: number, turn = 0): void {
  const next = numbers(seed);
  for (let i = 0; i < tasks; i++) {
    const at = next() + turn;
    const [y, a, b, c] = [
      at,
      at + 1 + (next() % 20),
      at + 21 + (next() % 20),
      at + 41 + (next() % 20),
    ];
    graph.insert(step, {
      y: data[y % DATA],
      a: data[a % DATA],
      b: data[b % DATA],
      c: data[c % DATA],
      a0: i,
    });
  }
}

/** None of them inserts the same tasks twice, or repeats a stretch. */
const PROGRAMS: Readonly<Record<string, { readonly runs: number; readonly program: Program }>> = {
  'random-graphs': {
    runs: RUNS,
    program: (graph, data, run) => insertRandom(graph, data, run, TASKS),
  },
  'growing-loop': {
    runs: RUNS,
    program: (graph, data, run) => insertRandom(graph, data, 7, TASKS + run),
  },
  'other-data': {
    runs: RUNS,
    program: (graph, data, run) => insertRandom(graph, data, 7, TASKS, 1 + run),
  },
  'another-end': {
    runs: RUNS,
    program: (graph, data, run) => {
      insertRandom(graph, data, 7, TASKS - 20);
      insertRandom(graph, data, 100 + run, 20);
    },
  },
  'one-task': {
    runs: SHORT_RUNS,
    program: (graph, data, run) => insertRandom(graph, data, run, 1),
  },
};

interface Watched {
  readonly rt: Runtime;
  readonly data: Data;
  readonly seconds: number[];
}

async function opened(plans: 'auto' | 'off'): Promise<Watched> {
  const rt = await Runtime.create({ workers: 1, plans });
  const data = Array.from({ length: DATA }, () => rt.data(new Float64Array(2)));
  return { rt, data, seconds: [] };
}

/** Ratios of neighbouring runs: watched to unwatched, and unwatched to unwatched. */
async function round(
  program: Program,
  runs: number,
  number: number,
): Promise<[number[], number[]]> {
  const turned = <T>(all: readonly T[], by: number): T[] => [
    ...all.slice(by % all.length),
    ...all.slice(0, by % all.length),
  ];
  const kinds = turned([0, 1, 2], number);
  const made: Watched[] = [];
  for (const kind of kinds) made[kind] = await opened(kind === 0 ? 'auto' : 'off');
  for (let k = 0; k < runs; k++)
    for (const kind of turned([0, 1, 2], k)) {
      const { rt, data, seconds } = made[kind];
      const start = performance.now();
      await rt.run((graph) => program(graph, data, k));
      seconds.push(performance.now() - start);
    }
  for (const { rt } of made) await rt.close();
  const [auto, off, control] = made.map(({ seconds }) => seconds);
  return [
    auto.map((time, i) => (2 * time) / (off[i] + control[i])),
    control.map((time, i) => time / off[i]),
  ];
}

export async function watchingBenchmarks(): Promise<BenchEntry[]> {
  const entries: BenchEntry[] = [];
  const worst: number[] = [];
  for (const [name, { runs, program }] of Object.entries(PROGRAMS)) {
    // Compiles the code of the program and of the runtime.
    await round(program, runs, 0);
    const ratios: number[] = [];
    const controls: number[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      const [watched, control] = await round(program, runs, i);
      ratios.push(...watched);
      controls.push(...control);
    }
    const [ratio, control] = [median(ratios), median(controls)];
    worst.push(ratio);
    log(`plan/watching/${name}: ${ratio.toFixed(3)} times as long (control ${control.toFixed(3)})`);
    const params = { runs: runs * ROUNDS, control };
    entries.push({ name: `plan/watching/${name}`, value: ratio, unit: 'ratio', params });
  }
  const value = Math.max(...worst);
  const params = { programs: worst.length, of: 'the largest' };
  return [...entries, { name: 'plan/watching/ratio', value, unit: 'ratio', params }];
}
