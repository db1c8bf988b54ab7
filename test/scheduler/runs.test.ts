// Open runs: their slots, and their ends, each reported once.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Remote } from '../../scheduler/engine/remote.js';
import { INTERNAL_RUN, RUN_SLOTS, type RunState } from '../../scheduler/engine/run-state.js';
import { Runs } from '../../scheduler/engine/runs.js';
import { PartsState } from '../support/parts-state.js';

let state: PartsState;
let runs: Runs;
beforeEach(() => {
  state = new PartsState();
  runs = new Runs(state);
});

describe('slots', () => {
  it('are as many as runs may be open, and one more is refused', () => {
    const open = Array.from({ length: RUN_SLOTS - 1 }, () => runs.open());
    expect(open.map(({ slot }) => slot)).toEqual(open.map((_, i) => i + 1));
    expect(() => runs.open()).toThrow(expect.objectContaining({ code: 'ERR_TOO_MANY_RUNS' }));
  });

  it('are used again, without any state of the earlier run', () => {
    const open = [runs.open(), runs.open(), runs.open()];
    open[1].inserted = 3;
    state.manual.calls.length = 0;
    runs.close(open[1]);
    expect(state.runs[2]).toBeUndefined();
    const next = runs.open();
    expect(next.slot).toBe(2);
    expect(next.live).toBe(0);
    expect(state.manual.calls).toEqual(['revive 2', 'revive 2']);
    expect(runs.open().slot).toBe(4);
  });
});

describe('a run is over once', () => {
  let run: RunState;
  const over = vi.fn();
  beforeEach(() => {
    over.mockClear();
    run = runs.open();
    run.onOver = over;
  });

  it('when it is sealed and its last task is over, and not before', () => {
    run.inserted = 3;
    runs.taskIsOver(run);
    runs.seal(run);
    runs.taskIsOver(run);
    runs.reportOver();
    expect(over).not.toHaveBeenCalled();
    runs.taskIsOver(run);
    expect(over).not.toHaveBeenCalled();
    runs.reportOver();
    runs.seal(run);
    runs.reportOver();
    expect(over).toHaveBeenCalledTimes(1);
  });

  it('at once when it is sealed without live tasks', () => {
    run.inserted = 1;
    runs.taskIsOver(run);
    runs.reportOver();
    expect(over).not.toHaveBeenCalled();
    runs.seal(run);
    expect(over).toHaveBeenCalledTimes(1);
  });

  it('on several ranks when all of them agree', () => {
    const ended: RunState[] = [];
    state.remote = { runEnded: (each) => void ended.push(each) } as Partial<Remote> as Remote;
    const woken = vi.fn();
    state.wake = woken;
    runs.seal(run);
    runs.seal(run);
    expect(ended).toEqual([run]);
    expect(over).not.toHaveBeenCalled();
    runs.isSettled(run);
    expect(woken).toHaveBeenCalledTimes(1);
    runs.reportOver();
    runs.reportOver();
    expect(over).toHaveBeenCalledTimes(1);
  });

  it('but never the run of the runtime itself', () => {
    const own = state.runs[INTERNAL_RUN] as RunState;
    own.onOver = over;
    runs.seal(own);
    expect(over).not.toHaveBeenCalled();
  });

  it('and a run that ends because of it is notified too', () => {
    const other = runs.open();
    const otherOver = vi.fn();
    other.onOver = otherOver;
    run.onOver = () => runs.seal(other);
    runs.seal(run);
    expect(otherOver).toHaveBeenCalledTimes(1);
  });
});

it('all open runs are notified of progress, and no closed one', () => {
  const told: number[] = [];
  const open = (): RunState => {
    const run = runs.open();
    run.onProgress = () => void told.push(run.slot);
    return run;
  };
  const progress = (): number[] => {
    told.length = 0;
    runs.reportProgress();
    return told;
  };
  const [first, second, , fourth] = [open(), open(), open(), open()];
  runs.close(fourth);
  expect(progress()).toEqual([1, 2, 3]);
  runs.close(first);
  runs.close(second);
  expect(progress()).toEqual([3]);
  open();
  expect(progress()).toEqual([1, 3]);
});
