// Random programs for property tests: raw numbers (so that a failing program shrinks) are decoded into operations
// on a few data, executed one after the other on plain arrays (the reference), and inserted into a runtime.
// All arithmetic is exact, so results must be equal, not close.
import fc from 'fast-check';
import {
  type Datum,
  type Graph,
  list,
  type Runtime,
  read,
  readWrite,
  type TaskHandle,
  task,
  write,
} from '../../index.js';

/** One operation as drawn. Numbers are taken modulo what there is. */
interface RawOperation {
  readonly kind: number;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly n: number;
  readonly priority: number;
  readonly device: number;
  readonly after: readonly number[];
}

/** A program as drawn. */
export interface RawProgram {
  /** Size of each datum in units of 64 elements; an absent one exists nowhere at first. */
  readonly data: readonly { readonly units: number; readonly absent: boolean }[];
  readonly operations: readonly RawOperation[];
}

const small = fc.nat({ max: 1000 });

export function rawPrograms(maxOperations: number): fc.Arbitrary<RawProgram> {
  return fc.record({
    data: fc.array(fc.record({ units: fc.integer({ min: 1, max: 6 }), absent: fc.boolean() }), {
      minLength: 1,
      maxLength: 9,
    }),
    operations: fc.array(
      fc.record({
        kind: small,
        a: small,
        b: small,
        c: small,
        n: fc.integer({ min: 1, max: 500 }),
        priority: fc.integer({ min: -2, max: 2 }),
        device: fc.nat({ max: 20 }),
        after: fc.oneof(
          { weight: 3, arbitrary: fc.constant([]) },
          fc.array(small, { maxLength: 3 }),
        ),
      }),
      { maxLength: maxOperations },
    ),
  });
}

export type Operation = {
  readonly kind:
    | 'fill'
    | 'add'
    | 'copy'
    | 'mix'
    | 'slowMix'
    | 'scale'
    | 'scaleBy'
    | 'fillWith'
    | 'touch'
    | 'read'
    | 'set'
    | 'fail'
    | 'throw';
  /** Data by number: first the one written (if any), then those read. */
  readonly data: readonly number[];
  readonly n: number;
  readonly priority: number;
  readonly device: number;
  /** Earlier tasks by number. */
  readonly after: readonly number[];
};

const KINDS: readonly Operation['kind'][] = [
  'fill',
  'add',
  'add',
  'add',
  'copy',
  'mix',
  'mix',
  'slowMix',
  'scale',
  'scale',
  'scaleBy',
  'fillWith',
  'touch',
  'read',
  'set',
];

/** Operations that make sense: nothing is read before it was written, no datum twice in one task. */
export function decode(program: RawProgram): Operation[] {
  const sizes = program.data.map((d) => d.units * 64);
  const written = program.data.map((d) => !d.absent);
  const operations: Operation[] = [];
  for (const raw of program.operations) {
    const kind = KINDS[raw.kind % KINDS.length];
    const target = raw.a % sizes.length;
    const others = [raw.b % sizes.length, raw.c % sizes.length].filter(
      (d, i, all) => d !== target && all.indexOf(d) === i && written[d],
    );
    const { n, priority, device } = raw;
    const after = operations.length === 0 ? [] : raw.after.map((i) => i % operations.length);
    const base = { n, priority, device, after };
    if (kind === 'fill' || kind === 'set') {
      operations.push({ ...base, kind, data: [target] });
      written[target] = true;
    } else if (kind === 'add') {
      const from = others.find((d) => sizes[d] >= sizes[target]);
      if (from !== undefined && written[target])
        operations.push({ ...base, kind, data: [target, from] });
    } else if (kind === 'copy' || kind === 'fillWith') {
      const from = others.find((d) => kind === 'fillWith' || sizes[d] >= sizes[target]);
      if (from === undefined) continue;
      operations.push({ ...base, kind, data: [target, from] });
      written[target] = true;
    } else if (!written[target]) continue;
    else if (kind === 'scaleBy') {
      if (others[0] !== undefined) operations.push({ ...base, kind, data: [target, others[0]] });
    } else if (kind === 'read' || kind === 'scale')
      operations.push({ ...base, kind, data: [target] });
    else operations.push({ ...base, kind, data: [target, ...others] });
  }
  return operations;
}

const MODULUS = 1_000_003;

function mix(to: Float64Array, from: readonly Float64Array[], n: number): void {
  for (let i = 0; i < to.length; i++) {
    let value = (to[i] % MODULUS) * 3 + n;
    for (const array of from) value += (array[i % array.length] % MODULUS) * 7;
    to[i] = value % MODULUS;
  }
}

function initial(d: number, length: number): Float64Array {
  return Float64Array.from({ length }, (_, i) => (d + 1) * 1000 + i);
}

/** What the serial execution leaves and what each `read` saw. */
export interface Expected {
  readonly values: readonly (Float64Array | undefined)[];
  /** By operation number. */
  readonly reads: ReadonlyMap<number, Float64Array>;
  /** Every value a datum ever had, by datum. */
  readonly history: readonly Float64Array[][];
}

/** Executes a program one operation after the other. */
export function serial(program: RawProgram, operations: readonly Operation[]): Expected {
  const values = program.data.map((d, i) => (d.absent ? undefined : initial(i, d.units * 64)));
  const history = values.map((v) => (v === undefined ? [] : [v.slice()]));
  const reads = new Map<number, Float64Array>();
  operations.forEach((op, number) => {
    const [target, ...from] = op.data;
    const length = program.data[target].units * 64;
    if (op.kind === 'read') {
      reads.set(number, (values[target] as Float64Array).slice());
      return;
    }
    if (op.kind === 'touch') return;
    const inputs = from.map((d) => values[d] as Float64Array);
    if (op.kind === 'fill' || op.kind === 'set')
      values[target] = new Float64Array(length).fill(op.n);
    else if (op.kind === 'fillWith') values[target] = new Float64Array(length).fill(inputs[0][0]);
    else if (op.kind === 'copy') values[target] = inputs[0].slice(0, length);
    else {
      const to = values[target] as Float64Array;
      if (op.kind === 'add') for (let i = 0; i < length; i++) to[i] += inputs[0][i];
      else if (op.kind === 'scale' || op.kind === 'scaleBy') {
        const n = op.kind === 'scale' ? op.n : inputs[0][0];
        for (let i = 0; i < length; i++) to[i] = (to[i] * 2 + n) % MODULUS;
      } else if (op.kind === 'mix' || op.kind === 'slowMix') mix(to, inputs, op.n);
    }
    history[target].push((values[target] as Float64Array).slice());
  });
  return { values, reads, history };
}

const fill = task({
  name: 'fill',
  flows: { to: write('f64') },
  params: { count: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});
const add = task({
  name: 'add',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'i32' },
  kernel: 'add_f64',
});
const copy = task({
  name: 'copy',
  flows: { to: write('f64'), from: read('f64') },
  params: { bytes: 'i32' },
  kernel: 'copy_bytes',
});
const scale = task({
  name: 'scale',
  flows: { to: readWrite('f64') },
  params: { n: 'f64' },
  body: ({ to, n }) => {
    for (let i = 0; i < to.length; i++) to[i] = (to[i] * 2 + n) % MODULUS;
  },
});
const mixing = task({
  name: 'mix',
  flows: { to: readWrite('f64'), from: list(read('f64')) },
  params: { n: 'f64' },
  body: ({ to, from, n }) => mix(to, from as readonly Float64Array[], n),
});
const slowMixing = task({
  ...mixing.definition,
  name: 'slow-mix',
  body: async ({ to, from, n }) => {
    await new Promise((resolve) => setImmediate(resolve));
    mix(to, from as readonly Float64Array[], n);
  },
});
const touching = task({
  name: 'touch',
  flows: { data: list(read('f64')) },
  params: { us: 'f64' },
  kernel: 'spin',
});
const failing = task({
  name: 'failing',
  flows: { to: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail',
});
const throwing = task({
  name: 'throwing',
  flows: { to: readWrite('f64') },
  params: { n: 'f64' },
  body: ({ n }) => {
    throw new Error(`told to, ${n}`);
  },
});

/** Makes the data of a program. */
export function makeData(runtime: Runtime, program: RawProgram): Datum<'f64'>[] {
  return program.data.map(({ units, absent }, d) =>
    absent
      ? runtime.data('f64', units * 64, { name: `d${d}` })
      : runtime.data(initial(d, units * 64), { name: `d${d}` }),
  );
}

/** Largest number of bytes one operation touches. */
export function largestTask(program: RawProgram, operations: readonly Operation[]): number {
  return Math.max(
    512,
    ...operations.map((op) => op.data.reduce((sum, d) => sum + program.data[d].units * 512, 0)),
  );
}

/**
 * Inserts a program. `atEach` is awaited before every operation when given, so that the program can be spread over
 * turns of the event loop. Returns the values its `read`s saw, by operation number.
 */
export async function insertProgram(
  graph: Graph,
  data: readonly Datum<'f64'>[],
  operations: readonly Operation[],
  gpus: number,
  reads: Map<number, Promise<Float64Array>>,
  atEach?: (number: number) => Promise<void> | undefined,
): Promise<void> {
  const handles = new Map<number, TaskHandle>();
  for (let number = 0; number < operations.length; number++) {
    const op = operations[number];
    const pause = atEach?.(number);
    if (pause !== undefined) await pause;
    const [target, ...from] = op.data.map((d) => data[d]);
    const after = op.after.flatMap((i) => handles.get(i) ?? []);
    const script = ['mix', 'slowMix', 'scale', 'scaleBy', 'throw'].includes(op.kind);
    // Some tasks have a wish: the host, or one of the GPUs.
    const wish = op.device - 10;
    const device =
      wish === 0
        ? ('host' as const)
        : wish > 0 && gpus > 0 && !script
          ? (wish - 1) % gpus
          : undefined;
    const options = { priority: op.priority, after, ...(device === undefined ? {} : { device }) };
    const { n } = op;
    if (op.kind === 'read') {
      const value = target.read();
      value.catch(() => {});
      reads.set(number, value);
      continue;
    }
    if (op.kind === 'set') {
      target.set(new Float64Array(target.length).fill(n)).catch(() => {});
      continue;
    }
    let handle: TaskHandle;
    if (op.kind === 'fill') {
      handle = graph.insert(fill, { to: target, count: target.length, value: n }, options);
    } else if (op.kind === 'add') {
      handle = graph.insert(add, { to: target, from: from[0], count: target.length }, options);
    } else if (op.kind === 'copy') {
      handle = graph.insert(copy, { to: target, from: from[0], bytes: target.bytes }, options);
    } else if (op.kind === 'fillWith') {
      const args = { to: target, count: target.length, value: from[0] };
      handle = graph.insert(fill, args, options);
    } else if (op.kind === 'scaleBy') {
      handle = graph.insert(scale, { to: target, n: from[0] }, options);
    } else if (op.kind === 'scale') handle = graph.insert(scale, { to: target, n }, options);
    else if (op.kind === 'fail') handle = graph.insert(failing, { to: target, code: n }, options);
    else if (op.kind === 'throw') handle = graph.insert(throwing, { to: target, n }, options);
    else if (op.kind === 'touch') {
      handle = graph.insert(touching, { data: [target, ...from], us: n % 50 }, options);
    } else {
      const cls = op.kind === 'mix' ? mixing : slowMixing;
      handle = graph.insert(cls, { to: target, from, n }, options);
    }
    handles.set(number, handle);
  }
}
