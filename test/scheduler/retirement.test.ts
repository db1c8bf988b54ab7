// The end of tasks and of runs: each task ends exactly once, in every way; the reason of a failure is recorded before
// the end of the run; a run is over once.
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { Status } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { NodePool } from '../../devices/node-pool.js';
import { EngineObserver } from '../../scheduler/engine/observer.js';
import type { Remote } from '../../scheduler/engine/remote.js';
import { Retirement } from '../../scheduler/engine/retirement.js';
import { INTERNAL_RUN, type RunState } from '../../scheduler/engine/run-state.js';
import { Runs } from '../../scheduler/engine/runs.js';
import { DroppedTasks } from '../../scheduler/failure/dropped-tasks.js';
import { FailureEffects } from '../../scheduler/failure/effects.js';
import { Execution, TaskStage } from '../../stages/task-table.js';
import { PartsState } from '../support/parts-state.js';

let state: PartsState;
let runs: Runs;
let failures: FailureEffects;
let retirement: Retirement;
let edges: NodePool;
let load: Int32Array;
/** Rows whose predecessors released them, rows that left their lane, and observed ends. */
let released: number[];
let left: number[];
let ends: string[];

function set(): void {
  state = new PartsState();
  runs = new Runs(state);
  edges = new NodePool();
  load = new Int32Array(1);
  [released, left, ends] = [[], [], []];
  state.observe(
    Object.assign(new EngineObserver(), {
      retired: (row: number, status: number) => void ends.push(`retired ${row} ${status}`),
      dropped: (row: number) => void ends.push(`dropped ${row}`),
      runFailed: (run: RunState) => void ends.push(`run ${run.slot} failed`),
    }),
  );
  const dispatcher = {
    releaseOne: (row: number) => {
      released.push(row);
      if (--state.tasks.pending[row] === 0 && state.tasks.stage[row] === TaskStage.dropped)
        dropped.released(row);
    },
    leaveLane: (row: number) => void left.push(row),
    gate: undefined,
  };
  const deviceChoice = { load };
  const dropped = new DroppedTasks(state, { edges }, dispatcher);
  const joins = {
    isWaiting: false,
    hasSpawned: false,
    bodyEnded: () => false,
    failed: () => {},
    lost: () => {},
  };
  failures = new FailureEffects(state, {
    dependencies: { hasGroups: false },
    deviceChoice,
    dispatcher,
    dropped,
    runs,
    joinsOf: () => joins,
  });
  retirement = new Retirement(state, {
    dependencies: { edges },
    dispatcher,
    deviceChoice,
    dropped,
    failures,
    joins,
    runs,
  });
}
beforeEach(set);

const STAGED = { stage: TaskStage.exec, hasBody: true };
/** A task that was started and has not begun to execute. */
function task(run: RunState, more: object = {}): number {
  load[0]++;
  return state.task({ ...STAGED, run, ...more });
}
/** A task whose command, or (`isBody`) whose body is under way. */
function underWay(run: RunState, isBody = false): number {
  const row = task(run);
  if (isBody) state.tasks.execution[row] = Execution.body;
  else state.issue(row, 0);
  return row;
}
const follow = (from: number, to: number): void => {
  state.tasks.pending[to]++;
  state.tasks.successors[from] = edges.push(state.tasks.successors[from], to * 2, 0);
};
const failure = (): HeadraceError => new HeadraceError('ERR_TASK_FAILED', 'the reason', {});

describe('a task ends once', () => {
  const ways: readonly [string, (run: RunState) => number, (row: number) => void][] = [
    ['retired', (run) => underWay(run), (row) => retirement.retired(row, Status.ok)],
    ['failed by its kernel', (run) => underWay(run), (row) => retirement.retired(row, 7)],
    ['cancelled', (run) => underWay(run), (row) => retirement.retired(row, Status.cancelled)],
    ['failed by its body', (run) => underWay(run, true), (row) => retirement.fail(row, failure())],
    ['failed before it ran', (run) => task(run), (row) => retirement.fail(row, failure())],
    ['skipped', (run) => task(run), (row) => retirement.skip(row)],
    ['dropped', (run) => task(run), (row) => failures.dropTask(row, state.runOf(row))],
  ];
  it.each(ways)('%s: it is counted, and its successors go', (way, make, end) => {
    const run = runs.open();
    const row = make(run);
    const successor = state.task({ stage: TaskStage.pending });
    follow(row, successor);
    end(row);
    expect(run.retired).toBe(1);
    expect(run.live).toBe(0);
    expect(load[0]).toBe(0);
    expect(left).toEqual([row]);
    expect(released).toEqual([successor]);
    expect(state.tasks.successors[row]).toBe(-1);
    expect(state.tasks.stage[row]).toBe(TaskStage.done);
    expect(ends.filter((each) => each.startsWith('retired')).length).toBe(
      way === 'dropped' ? 0 : 1,
    );
    state.tasks.retireHead();
    expect(state.tasks.head).toBe(state.tasks.next - 1);
  });

  it('in any order of ends, and for any failure of its run', () => {
    const plan = fc.array(
      fc.record({
        run: fc.integer({ min: 0, max: 1 }),
        kind: fc.constantFrom('pending', 'started', 'command', 'body'),
        after: fc.option(fc.nat()),
      }),
      { minLength: 1, maxLength: 20 },
    );
    const order = fc.array(fc.tuple(fc.nat(), fc.constantFrom('well', 'failing', 'skip')));
    fc.assert(
      fc.property(plan, order, (tasks, steps) => {
        set();
        const open = [runs.open(), runs.open()];
        const over: RunState[] = [];
        for (const run of open) run.onOver = () => void over.push(run);
        const rows = tasks.map(({ run, kind, after }, i) => {
          const row =
            kind === 'command' || kind === 'body'
              ? underWay(open[run], kind === 'body')
              : task(open[run], kind === 'pending' ? { stage: TaskStage.pending } : {});
          if (kind === 'pending') load[0]--;
          if (kind === 'pending' && after !== null && i > 0) follow(row - 1 - (after % i), row);
          return row;
        });
        for (const run of open) runs.seal(run);
        const live = (row: number): boolean => state.tasks.stage[row] <= TaskStage.finalize;
        const end = (row: number, how: string): void => {
          const { tasks } = state;
          // What was not released is started by whoever has released it.
          if (tasks.stage[row] === TaskStage.pending) {
            if (tasks.pending[row] > 0) return;
            tasks.stage[row] = TaskStage.exec;
            load[0]++;
          }
          if (tasks.execution[row] === Execution.command)
            retirement.retired(row, how === 'failing' ? 7 : Status.ok);
          else if (how === 'failing') retirement.fail(row, failure());
          else if (tasks.execution[row] === Execution.body) retirement.retired(row, Status.ok);
          else retirement.skip(row);
        };
        for (const [at, how] of steps) {
          const row = rows[at % rows.length];
          if (live(row)) end(row, how);
        }
        for (let n = rows.length; n > 0; n--)
          for (const row of rows) if (live(row)) end(row, 'well');
        runs.reportOver();
        expect([...over].sort((a, b) => a.slot - b.slot)).toEqual(open);
        for (const run of open) {
          const own = tasks.filter((each) => open[each.run] === run).length;
          expect([run.inserted, run.retired, run.live]).toEqual([own, own, 0]);
        }
        expect(load[0]).toBe(0);
      }),
    );
  });
});

describe('the reason comes before the end', () => {
  it.each([
    ['its kernel', (row: number) => retirement.retired(row, 7), false],
    ['its body', (row: number) => retirement.fail(row, failure()), true],
  ])('of a run whose last task failed by %s', (_way, end, isBody) => {
    const seen: unknown[] = [];
    state.remote = {
      runFailed: (_run, error) => void seen.push(error),
      runEnded: (run) => void seen.push(run.error),
    } as Partial<Remote> as Remote;
    const run = runs.open();
    const row = underWay(run, isBody);
    runs.seal(run);
    end(row);
    expect(seen.length).toBe(2);
    expect(seen[0]).toBeInstanceOf(HeadraceError);
    expect(seen[1]).toBe(seen[0]);
    expect(ends).toEqual([`run 1 failed`, expect.stringMatching(`^retired ${row} `)]);
  });

  it('of a task that failed before it ran: it is not dropped with its own run', () => {
    const run = runs.open();
    const [row, other] = [task(run), task(run)];
    runs.seal(run);
    retirement.fail(row, failure());
    expect(ends).toEqual([
      'run 1 failed',
      `dropped ${other}`,
      `retired ${row} ${Status.cancelled}`,
      `dropped ${row}`,
    ]);
    expect([run.retired, run.cancelledTasks]).toEqual([2, 1]);
  });

  it('but a cancelled command fails no run', () => {
    const run = runs.open();
    retirement.retired(underWay(run), Status.cancelled);
    expect([run.error, run.cancelledTasks]).toEqual([undefined, 1]);
  });

  it('of a run with a task that read a datum that another run failed to write', () => {
    const run = runs.open();
    const row = underWay(run);
    failures.tainted.add(state.tasks.idOf(row));
    retirement.retired(row, Status.ok);
    expect(run.error?.code).toBe('ERR_DATUM_POISONED');
    expect(failures.tainted.size).toBe(0);
  });

  it('and of the failures of one pass the first in program order counts', () => {
    const run = runs.open();
    const rows = [1, 2, 3].map(() => underWay(run));
    const name = (row: number): string => `#${state.tasks.idOf(row)} failed`;
    state.x.now = 5;
    retirement.retired(rows[1], 7);
    retirement.retired(rows[2], 7);
    expect(run.error?.message).toContain(name(rows[1]));
    retirement.retired(rows[0], 7);
    expect(run.error?.message).toContain(name(rows[0]));
    expect(run.failedTask).toBe(state.tasks.idOf(rows[0]));
  });

  it('of a task of the runtime itself: its caller gets the error, and no run fails', () => {
    const told: unknown[] = [];
    retirement.onInternalFailure = (row, error) => void told.push(row, error.code);
    const row = task(state.runs[INTERNAL_RUN] as RunState);
    retirement.fail(row, failure());
    expect(told).toEqual([row, 'ERR_TASK_FAILED']);
    expect(ends).not.toContain('run 0 failed');
  });
});
