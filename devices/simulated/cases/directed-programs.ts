// Programs of several runs made by hand, each for one way in which order, values or memory were lost when a task was
// dropped, a value was restored, or bodies inserted more than the window holds. They fail at some moments only: play them
// under several adversaries (`underAdversary`).
import type { SimulatedCase } from './case.js';
import type { CaseDatum, CaseFlow, CaseStep, CaseTask } from './program.js';

const SLOW = 500;

/** One GPU, one worker, room for everything. */
const plain: Omit<SimulatedCase, 'data' | 'tasks' | 'steps'> = {
  seed: 0,
  gpus: 1,
  gpuUnits: 64,
  hostUnits: 256,
  shortOfHost: false,
  workers: 1,
  streams: 1,
  peers: true,
  window: 64,
  runAhead: 1,
  smallRings: false,
  tooLarge: false,
  checked: false,
  reads: [],
  faults: [],
  adversary: { seed: 1, spread: 0, holdBack: 0, stall: 0, stallNs: 0, spurious: 0 },
};

const datum = (initial: boolean): CaseDatum => ({ units: 2, initial });

const body = (kind: CaseTask['body'], micros: number, ...flows: CaseFlow[]): CaseTask => ({
  flows,
  body: kind,
  micros,
});

function program(
  data: readonly CaseDatum[],
  tasks: readonly CaseTask[],
  steps: readonly CaseStep[],
): SimulatedCase {
  return { ...plain, data, tasks, steps };
}

const [X, Y, NEW] = [0, 1, 2];
const [FIRST, CANCELLED, LAST] = [0, 1, 2];
const threeRuns: readonly CaseStep[] = [
  ['open', FIRST],
  ['open', CANCELLED],
  ['open', LAST],
];

/** Kernels that keep all queues busy, so that a task behind them is not issued yet. */
const BUSY = 4;
const busy: readonly CaseTask[] = Array.from({ length: BUSY }, () => body('kernel', SLOW, [Y, 3]));
const keepBusy: readonly CaseStep[] = busy.map((_, i) => ['insert', FIRST, i]);

/** A writer that has not ended, a dropped one behind it, and a third that must not be overtaken by the first. */
function lostWrite(kind: CaseTask['body']): SimulatedCase {
  const tasks = [
    ...busy,
    body(kind, SLOW, [X, 3]),
    body(kind, 1, [X, 3]),
    body('script', 1, [X, 2]),
  ];
  return program([datum(true), datum(true)], tasks, [
    ...threeRuns,
    ...(kind === 'kernel' ? keepBusy : []),
    ['insert', FIRST, BUSY],
    ['pass', 10],
    ['insert', CANCELLED, BUSY + 1],
    ['cancel', CANCELLED, 0],
    ['insert', LAST, BUSY + 2],
    ['read', X],
  ]);
}

/** The same with `set` before and behind. */
function lostSet(): SimulatedCase {
  const tasks = [...busy, body('kernel', 1, [X, 3]), body('kernel', 1, [X, 3])];
  return program([datum(true), datum(true)], tasks, [
    ...threeRuns,
    ...keepBusy,
    ['set', X],
    ['insert', FIRST, BUSY],
    ['insert', CANCELLED, BUSY + 1],
    ['cancel', CANCELLED, 0],
    ['set', X],
    ['read', X],
    ['pass', 2 * SLOW],
    ['read', X],
  ]);
}

/** `set` must not write, and `read` must not read, while an asynchronous body uses the datum. */
function halfWritten(): SimulatedCase {
  const tasks = [body('async', SLOW, [X, 2]), body('kernel', 1, [X, 3])];
  return program([datum(false)], tasks, [
    ...threeRuns,
    ['insert', FIRST, 0],
    ['pass', 10],
    ['insert', CANCELLED, 1],
    ['cancel', CANCELLED, 0],
    ['read', X],
    ['set', X],
    ['read', X],
  ]);
}

/** Row and block of a datum that is closed are free only when the task before the dropped one has ended. */
function closedInUse(kind: CaseTask['body']): SimulatedCase {
  const tasks = [...busy, body(kind, SLOW, [X, 3]), body('kernel', 1, [X, 3])];
  return program([datum(true), datum(true), { ...datum(true), later: true }], tasks, [
    ...threeRuns,
    ...(kind === 'kernel' ? keepBusy : []),
    ['insert', FIRST, BUSY],
    ['pass', 10],
    ['insert', CANCELLED, BUSY + 1],
    ['cancel', CANCELLED, 0],
    ['close', X],
    ['pass', 20],
    ['make', NEW],
    ['set', NEW],
    ['read', NEW],
    ['pass', 2 * SLOW],
    ['read', NEW],
  ]);
}

/** A value that was set after its writer was cancelled is there, also while the end of the writer is unknown. */
function cured(): SimulatedCase {
  const tasks = [body('kernel', 50, [Y, 2]), body('kernel', 1, [X, 2]), body('kernel', 1, [X, 1])];
  const issued = program([datum(true), datum(false)], tasks, [
    ...threeRuns,
    ['insert', FIRST, 0],
    ['insert', CANCELLED, 1],
    ['pass', 5],
    ['cancel', CANCELLED, 0],
    ['set', X],
    ['read', X],
    ['insert', LAST, 2],
    ['pass', SLOW],
    ['read', X],
  ]);
  return { ...issued, runAhead: 16 };
}

/** The task in `after` of an insertion is dropped: the order behind it continues to the task before it. */
function controlHandedOn(): SimulatedCase {
  const tasks: CaseTask[] = [
    body('async', SLOW, [X, 2]),
    { ...body('kernel', 1), after: [0] },
    { ...body('script', 1), after: [1] },
  ];
  return program([datum(false)], tasks, [
    ...threeRuns,
    ['insert', FIRST, 0],
    ['insert', CANCELLED, 1],
    ['cancel', CANCELLED, 0],
    ['insert', LAST, 2],
  ]);
}

/** A run's reader of the output of a cancelled run fails, and no other task does. */
function poisoned(): SimulatedCase {
  const tasks = [body('kernel', 50, [Y, 2]), body('kernel', 1, [X, 3]), body('kernel', 1, [X, 1])];
  return program([datum(true), datum(false)], tasks, [
    ...threeRuns,
    ['insert', FIRST, 0],
    ['insert', CANCELLED, 1],
    ['cancel', CANCELLED, 0],
    ['insert', LAST, 2],
    ['read', X],
    ['read', Y],
  ]);
}

/** A tree of bodies that insert two each, deeper than the window is wide. */
function growing(kind: 'script' | 'async', grows: number, window: number): SimulatedCase {
  const tasks: CaseTask[] = [{ ...body(kind, 1), grows }];
  return {
    ...program([], tasks, [
      ['open', FIRST],
      ['insert', FIRST, 0],
    ]),
    window,
  };
}

type Order =
  | 'lostWriteOfKernel'
  | 'lostWriteOfBody'
  | 'lostSet'
  | 'halfWritten'
  | 'closedInUseByKernel'
  | 'closedInUseByBody'
  | 'cured'
  | 'controlHandedOn'
  | 'poisoned';
type Growth = 'shallow' | 'deep' | 'deepAndAsynchronous' | 'narrow';

export const directedPrograms: Readonly<Record<Order, SimulatedCase>> = {
  lostWriteOfKernel: lostWrite('kernel'),
  lostWriteOfBody: lostWrite('async'),
  lostSet: lostSet(),
  halfWritten: halfWritten(),
  closedInUseByKernel: closedInUse('kernel'),
  closedInUseByBody: closedInUse('async'),
  cured: cured(),
  controlHandedOn: controlHandedOn(),
  poisoned: poisoned(),
};

/** Of bodies that insert. */
export const growingPrograms: Readonly<Record<Growth, SimulatedCase>> = {
  shallow: growing('script', 3, 64),
  deep: growing('script', 14, 64),
  deepAndAsynchronous: growing('async', 10, 16),
  narrow: growing('script', 8, 4),
};

/** The case under an adversary of that seed; the first one does nothing. */
export function underAdversary(c: SimulatedCase, seed: number): SimulatedCase {
  if (seed === 1) return c;
  const adversary = { seed, spread: 4, holdBack: 0.5, stall: 0.1, stallNs: 1e4, spurious: 0.1 };
  return { ...c, seed, adversary, streams: 1 + (seed % 2), workers: 1 + (seed % 3) };
}
