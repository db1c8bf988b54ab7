// Random small traces with times of a few hundred nanoseconds, so that a reference can look at every nanosecond.
import fc from 'fast-check';
import { EventKind, loadTrace, NONE, type Trace } from '../../trace/index.js';
import { record, testHeader } from './support.js';

interface RandomTask {
  readonly lane: number;
  readonly gap: number;
  readonly duration: number;
  /** How far before the start each earlier stage was passed. */
  readonly before: readonly number[];
  readonly predecessors: readonly number[];
  readonly accesses: readonly { readonly datum: number; readonly mode: number }[];
}

interface RandomTransfer {
  readonly task: number;
  readonly datum: number;
  readonly kind: number;
  readonly reason: number;
  readonly lane: number;
  readonly source: number;
  readonly destination: number;
  readonly version: number;
  readonly issued: number;
  readonly wait: number;
  readonly duration: number;
}

const DATA = 5;
/** The lane of sends and receives. */
const NETWORK = 6;

const randomTask = fc.record({
  lane: fc.constantFrom(0, 1, 2, NETWORK),
  gap: fc.integer({ min: 0, max: 40 }),
  duration: fc.integer({ min: 0, max: 30 }),
  before: fc.array(fc.integer({ min: 0, max: 25 }), { minLength: 6, maxLength: 6 }),
  predecessors: fc.array(fc.nat(30), { maxLength: 3 }),
  accesses: fc.uniqueArray(
    fc.record({ datum: fc.nat(DATA - 1), mode: fc.integer({ min: 1, max: 3 }) }),
    { maxLength: 3, selector: (access) => access.datum },
  ),
});

const randomTransfer = fc.record({
  task: fc.integer({ min: -1, max: 20 }),
  datum: fc.nat(DATA - 1),
  kind: fc.integer({ min: 0, max: 6 }),
  reason: fc.integer({ min: 0, max: 7 }).filter((reason) => reason !== 6),
  lane: fc.integer({ min: 3, max: 6 }),
  source: fc.integer({ min: 0, max: 2 }),
  destination: fc.integer({ min: 0, max: 2 }),
  version: fc.nat(3),
  issued: fc.nat(150),
  wait: fc.nat(20),
  duration: fc.nat(40),
});

/** A random trace of up to twenty tasks and transfers on the lanes of `testHeader`. */
export const randomTrace: fc.Arbitrary<Trace> = fc
  .record({
    tasks: fc.array(randomTask, { minLength: 1, maxLength: 20 }),
    transfers: fc.array(randomTransfer, { maxLength: 20 }),
    throttles: fc.array(fc.record({ gap: fc.nat(60), length: fc.integer({ min: 1, max: 30 }) }), {
      maxLength: 3,
    }),
  })
  .map(({ tasks, transfers, throttles }) => build(tasks, transfers, throttles));

function build(
  tasks: readonly RandomTask[],
  transfers: readonly RandomTransfer[],
  throttles: readonly { gap: number; length: number }[],
): Trace {
  const spaceOf = (lane: number): number => (lane === 2 ? 1 : 0);
  const bytes = record((recorder) => {
    for (const name of ['a', 'b', 'c']) recorder.taskClass(name.charCodeAt(0) - 97, name);
    for (let datum = 0; datum < DATA; datum++)
      recorder.datum(datum, 2 ** datum * 8, 0, 'd', [datum]);
    let throttle = 1000;
    for (const { gap, length } of throttles) {
      recorder.event(EventKind.throttleBegin, (throttle += gap));
      recorder.event(EventKind.throttleEnd, (throttle += length));
    }
    const free = new Array<number>(NETWORK + 1).fill(1000);
    const rows = tasks.map((task) => {
      const start = free[task.lane] + task.gap;
      // A send or receive is a moment: its transfers have the time.
      const end = task.lane === NETWORK ? start : start + task.duration;
      free[task.lane] = end;
      return { start, end };
    });
    tasks.forEach((task, id) => {
      const { start, end } = rows[id];
      let stage = start - task.before.reduce((sum, part) => sum + part, 0);
      const stages = task.before.map((part) => {
        const at = Math.max(1000, stage);
        stage += part;
        return at;
      });
      // A graph has no cycles: predecessors have smaller ids.
      const predecessors = [...new Set(task.predecessors.filter((other) => other < id))];
      for (const predecessor of predecessors) recorder.dependency(id, predecessor);
      for (const { datum, mode } of task.accesses) recorder.access(id, datum, mode);
      recorder.task({
        id,
        taskClass: id % 3,
        device: spaceOf(task.lane),
        lane: task.lane,
        flags: 6,
        releasedBy: predecessors[0] ?? NONE,
        inserted: stages[0],
        ready: stages[1],
        alloc: stages[2],
        stageIn: stages[3],
        commIn: stages[4],
        issued: stages[5],
        execStart: start,
        execEnd: end,
        stageOut: end,
        finalized: end + (id % 4),
      });
    });
    for (const t of transfers) {
      const issued = 1000 + t.issued;
      const start = issued + t.wait;
      recorder.transfer({
        kind: t.kind,
        reason: t.reason,
        lane: t.lane,
        source: t.source,
        destination: t.destination,
        task: t.task < 0 ? NONE : t.task,
        datum: t.datum,
        version: t.version,
        peer: -1,
        message: NONE,
        bytes: 2 ** t.datum * 8,
        issued,
        start,
        end: start + t.duration,
      });
    }
  }, testHeader());
  return loadTrace(bytes);
}
