// Programs of random calls on 2 to 4 simulated ranks. If all ranks make the same calls, no error is reported. If one
// rank leaves a call out, adds one or swaps two, every rank gets an error with the first different call.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { World } from '../../devices/simulated/machine/world.js';
import {
  type Datum,
  type HeadraceError,
  type Runtime,
  read,
  readWrite,
  task,
} from '../../scheduler/index.js';
import { joined, rankMachine } from '../support/simulated-ranks.js';

type Step =
  | { readonly kind: 'data'; readonly length: number; readonly owner: number }
  | { readonly kind: 'read' | 'set' | 'close'; readonly d: number; readonly awaited: boolean }
  | { readonly kind: 'run'; readonly from: number; readonly to: number; readonly inside: boolean };

const add = task({
  name: 'add',
  flows: { from: read('f64'), to: readWrite('f64') },
  body: () => {},
});

function open(ranks: number): Runtime[] {
  const world = new World();
  const backends = Array.from(
    { length: ranks },
    () => new SimulatedBackend({ machine: rankMachine, world }),
  );
  return joined(world, backends, { workers: 1, inlineBytes: 256 });
}

/** What a rank came across, by code. */
async function play(runtime: Runtime, steps: readonly Step[]): Promise<HeadraceError[]> {
  const data: (Datum<'f64'> | undefined)[] = [];
  const errors: HeadraceError[] = [];
  const open_: Promise<unknown>[] = [];
  const noted = (promise: Promise<unknown>): Promise<unknown> =>
    promise.catch((error: HeadraceError) => errors.push(error));
  for (const step of steps) {
    if (errors.length > 0) break;
    if (step.kind === 'data') {
      const { length, owner } = step;
      data.push(runtime.data(new Float64Array(length), { rank: owner, name: `d${data.length}` }));
    } else if (step.kind === 'run') {
      const { from, to, inside } = step;
      const a = data[from];
      const b = data[to];
      if (a === undefined || b === undefined || a.closed || b.closed || a === b) continue;
      const run = runtime.run(
        async (graph) => {
          graph.insert(add, { from: a, to: b });
          if (inside) await b.read();
        },
        { name: `${from}-${to}` },
      );
      await noted(run.done);
    } else {
      const datum = data[step.d];
      if (datum === undefined || datum.closed) continue;
      if (step.kind === 'close') datum.close();
      else {
        const promise =
          step.kind === 'read' ? datum.read() : datum.set(new Float64Array(datum.length));
        if (step.awaited) await noted(promise);
        else open_.push(noted(promise));
      }
    }
  }
  await Promise.all(open_);
  await noted(runtime.close());
  return errors;
}

const DATA = 3;
const steps = (ranks: number): fc.Arbitrary<Step[]> => {
  const d = fc.nat(DATA - 1);
  const datum = fc.record({
    kind: fc.constant('data' as const),
    length: fc.constantFrom(8, 4096),
    owner: fc.nat(ranks - 1),
  });
  const onDatum = fc.record({
    kind: fc.constantFrom('read' as const, 'read' as const, 'set' as const),
    d,
    awaited: fc.boolean(),
  });
  const run = fc.record({
    kind: fc.constant('run' as const),
    from: d,
    to: d,
    inside: fc.boolean(),
  });
  const rest = fc.array(fc.oneof(onDatum, onDatum, run, datum), { maxLength: 12 });
  return fc
    .tuple(fc.array(datum, { minLength: DATA, maxLength: DATA }), rest)
    .map(([first, more]) => [...first, ...more.filter((s) => s.kind !== 'run' || s.from !== s.to)]);
};

/** The same program with one mistake behind the creations. */
function mistaken(program: readonly Step[], how: number, at: number): Step[] {
  const i = DATA + (at % Math.max(1, program.length - DATA));
  const all = [...program];
  if (how === 0) all.splice(i, 1);
  else if (how === 1) all.splice(i, 0, { kind: 'read', d: at % DATA, awaited: true });
  else if (how === 2) all.splice(i, 0, { kind: 'data', length: 8, owner: 0 });
  else if (i + 1 < all.length) all.splice(i, 2, all[i + 1], all[i]);
  return all;
}

/** What makes two calls the same one. */
function identity(step: Step | undefined): string {
  if (step === undefined) return 'end';
  if (step.kind === 'data') return `data ${step.length} ${step.owner}`;
  return step.kind === 'run' ? 'run' : `${step.kind} ${step.d}`;
}

const caseOf = fc.integer({ min: 2, max: 4 }).chain((ranks) =>
  fc.record({
    ranks: fc.constant(ranks),
    program: steps(ranks),
    how: fc.nat(3),
    at: fc.nat(20),
    odd: fc.nat(ranks - 1),
  }),
);

describe('calls of simulated ranks', () => {
  test('that are the same everywhere are never found to differ', async () => {
    await fc.assert(
      fc.asyncProperty(caseOf, async ({ ranks, program }) => {
        const ends = await Promise.all(open(ranks).map((runtime) => play(runtime, program)));
        expect(ends.flat().map(({ message }) => message)).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  test('of which one differs are named on every rank', async () => {
    await fc.assert(
      fc.asyncProperty(caseOf, async ({ ranks, program, how, at, odd }) => {
        const other = mistaken(program, how, at);
        let first = 0;
        const end = Math.max(program.length, other.length);
        while (first < end && identity(program[first]) === identity(other[first])) first++;
        // Two equal calls were swapped, or runs of which only the tasks differ.
        fc.pre(first < end);
        const isRun = program[first]?.kind === 'run' && other[first]?.kind === 'run';
        fc.pre(!isRun && !program.slice(0, first).some((step, i) => !isSameRun(step, other[i])));
        const runtimes = open(ranks);
        const ends = await Promise.all(
          runtimes.map((runtime, rank) => play(runtime, rank === odd ? other : program)),
        );
        for (const errors of ends) {
          expect(errors.map(({ code }) => code)).toContain('ERR_PROGRAM_MISMATCH');
          const { message } = errors.find(({ code }) => code === 'ERR_PROGRAM_MISMATCH') as Error;
          expect(message).toContain(`(call ${first + 1})`);
          expect(message).toMatch(/rank 0 is at .* rank \d is at /);
        }
      }),
      { numRuns: 150 },
    );
  });
});

function isSameRun(a: Step, b: Step): boolean {
  return a.kind !== 'run' || JSON.stringify(a) === JSON.stringify(b);
}
