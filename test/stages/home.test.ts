// The home space of a task's data: the first written datum decides, by the user's advice, otherwise by its owner.

import { describe, expect, it } from 'vitest';
import { type DatumId, HOST } from '../../devices/handles.js';
import { homeOfWritten } from '../../stages/home.js';
import { AccessMode } from '../../stages/task-table.js';
import { dataColumn, spaceId } from '../support/handles.js';
import { Bench, GPU } from '../support/stage-bench.js';

const { read, write, readWrite } = AccessMode;
const OTHER = spaceId(2);

function home(bench: Bench, modes: readonly number[], ...data: readonly DatumId[]): number {
  // The flows lie behind those of another task.
  return homeOfWritten(bench.dir, modes, dataColumn([-1, -1, ...data]), 2);
}

describe('the space where the data of a task belong', () => {
  it('is the space that owns the first written datum', () => {
    const bench = new Bench(10, 100, { gpus: 2 });
    const here = bench.dirty(1, GPU);
    const there = bench.dirty(1, OTHER);
    expect(home(bench, [write], here)).toBe(GPU);
    expect(home(bench, [read, readWrite], here, there)).toBe(OTHER);
    expect(home(bench, [write, write], there, here)).toBe(OTHER);
  });

  it('is the space that the program advised, before the owner', () => {
    const bench = new Bench(10, 100, { gpus: 2 });
    const d = bench.dirty(1, GPU);
    bench.dir.home[d] = OTHER;
    expect(home(bench, [readWrite], d)).toBe(OTHER);
    bench.dir.home[d] = HOST;
    expect(home(bench, [readWrite], d)).toBe(0);
  });

  it('is open for a task that writes nothing, and for a datum without a value', () => {
    const bench = new Bench(10, 100, { gpus: 2 });
    expect(home(bench, [])).toBe(-1);
    expect(home(bench, [read, read], bench.dirty(1, GPU), bench.dirty(1, OTHER))).toBe(-1);
    expect(home(bench, [write, write], bench.datum(1), bench.dirty(1, GPU))).toBe(-1);
  });
});
