// The choice of a device, on recorded states: first the device that the program names, then the home or the owner of the
// first written datum, then the most bytes of inputs, then the least load. A device that cannot run the task is no
// candidate.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AccessMode, ANY_DEVICE } from '../../stages/task-table.js';
import { datumId, spaceId } from '../support/handles.js';
import { type PlacedFlow, PlacementState, placedClass } from '../support/placement-state.js';

const { read, write, readWrite } = AccessMode;
const EVERYWHERE = [true, true, true, true];
const GPUS = 3;

/** The device that a state with three GPUs chooses. */
function choose(
  state: PlacementState,
  flows: readonly PlacedFlow[],
  { kernels = EVERYWHERE, body = false, hint = ANY_DEVICE, bytes = 1 } = {},
): number {
  const cls = placedClass(
    flows.map(({ mode }) => mode),
    kernels,
    body,
  );
  return state.deviceChoice.device(state.task(flows, hint), cls, bytes);
}

describe('the device of a task is', () => {
  it('the one that the program names, before all other rules', () => {
    const state = new PlacementState({ gpus: GPUS });
    const d = state.datum(100, 1);
    state.directory.home[d] = spaceId(2);
    state.deviceChoice.load.set([0, 5, 5, 50]);
    for (const hint of [0, 1, 2, 3])
      expect(choose(state, [{ datum: d, mode: readWrite }], { hint: spaceId(hint) })).toBe(hint);
  });

  it('the home of the first datum it writes, before the owner', () => {
    const state = new PlacementState({ gpus: GPUS });
    const [first, second, input] = [state.datum(10, 1), state.datum(10, 3), state.datum(99, 3)];
    state.directory.home[first] = spaceId(2);
    state.directory.home[second] = spaceId(3);
    const flows = [
      { datum: input, mode: read },
      { datum: first, mode: readWrite },
      { datum: second, mode: readWrite },
    ];
    expect(choose(state, flows)).toBe(2);
  });

  it('the owner of the first datum it writes, before the bytes of the others', () => {
    const state = new PlacementState({ gpus: GPUS });
    const [to, input] = [state.datum(1, 3, 1), state.datum(1000, 1)];
    const flows = [
      { datum: input, mode: read },
      { datum: to, mode: write },
    ];
    expect(choose(state, flows)).toBe(3);
  });

  it('the one with most bytes of its inputs; the host does not count', () => {
    const state = new PlacementState({ gpus: GPUS });
    const [a, b, c] = [state.datum(300, 1), state.datum(200, 1), state.datum(600, 0, 2)];
    const big = state.datum(9999, 0);
    const out = state.datum(5000);
    state.deviceChoice.load.set([0, 0, 7, 0]);
    const flows = [a, b, c, big].map((datum) => ({ datum, mode: read as number }));
    expect(choose(state, [...flows, { datum: out, mode: write }])).toBe(2);
  });

  it('the least loaded one if bytes are equal, and the first among equals', () => {
    const state = new PlacementState({ gpus: GPUS });
    const d = state.datum(100, 0);
    state.deviceChoice.load.set([0, 4, 3, 3]);
    expect(choose(state, [{ datum: d, mode: read }])).toBe(2);
    state.deviceChoice.load.set([0, 0, 0, 0]);
    expect(choose(state, [])).toBe(1);
  });

  it('none whose memory can never hold its data, nor one without a kernel', () => {
    const state = new PlacementState({ gpus: GPUS, capacity: [1e9, 100, 1000, 1000] });
    const d = state.datum(500, 1);
    state.deviceChoice.load.set([0, 0, 9, 0]);
    expect(choose(state, [{ datum: d, mode: readWrite }], { bytes: 101 })).toBe(3);
    expect(
      choose(state, [{ datum: d, mode: readWrite }], {
        bytes: 101,
        kernels: [true, true, true, false],
      }),
    ).toBe(2);
    expect(choose(state, [{ datum: d, mode: readWrite }], { bytes: 1001 })).toBe(0);
  });

  it('the host if no GPU can run the class', () => {
    const state = new PlacementState({ gpus: GPUS });
    const d = state.datum(100, 2);
    const onHost = { kernels: [true, false, false, false] };
    expect(choose(state, [{ datum: d, mode: readWrite }], onHost)).toBe(0);
    const script = { kernels: [false, false, false, false], body: true };
    expect(choose(state, [{ datum: d, mode: readWrite }], script)).toBe(0);
  });

  it('the host if there is no GPU', () => {
    const state = new PlacementState({ gpus: 0 });
    expect(choose(state, [{ datum: state.datum(8, 0), mode: read }], { kernels: [true] })).toBe(0);
  });
});

interface RandomDatum {
  readonly bytes: number;
  readonly spaces: number[];
  readonly home: number;
}
const datum: fc.Arbitrary<RandomDatum> = fc.record({
  bytes: fc.constantFrom(100, 200, 1000),
  spaces: fc.uniqueArray(fc.nat({ max: GPUS }), { maxLength: 3 }),
  home: fc.constantFrom(-1, -1, 0, 1, 2, 3),
});
const world = fc.record({
  data: fc.array(datum, { minLength: 4, maxLength: 4 }),
  flows: fc.array(
    fc.record({
      datum: fc.nat({ max: 3 }).map(datumId),
      mode: fc.constantFrom(read, read, read, read, write, readWrite),
    }),
    { maxLength: 5, size: 'max' },
  ),
  kernels: fc.array(fc.constantFrom(true, true, true, false), { minLength: 4, maxLength: 4 }),
  capacity: fc.array(fc.constantFrom(400, 1000), { minLength: 4, maxLength: 4 }),
  bytes: fc.constantFrom(300, 500, 1500),
  load: fc.array(fc.nat({ max: 2 }), { minLength: 4, maxLength: 4 }),
});

describe('the device of a task on random states', () => {
  it('is the first of the candidates in the order of the rule', () => {
    fc.assert(
      fc.property(world, ({ data, flows, kernels, capacity, bytes, load }) => {
        const state = new PlacementState({ gpus: GPUS, capacity });
        for (const { bytes: size, spaces, home } of data)
          state.directory.home[state.datum(size, ...spaces)] = spaceId(home);
        state.deviceChoice.load.set(load);
        const candidates = [1, 2, 3].filter((s) => kernels[s] && bytes <= capacity[s]);
        const changed = flows.find(({ mode }) => mode !== read);
        const place =
          changed === undefined
            ? -1
            : data[changed.datum].home >= 0
              ? data[changed.datum].home
              : (data[changed.datum].spaces[0] ?? -1);
        const inputs = (s: number): number =>
          flows
            .filter(({ datum, mode }) => mode !== write && data[datum].spaces.includes(s))
            .reduce((sum, { datum }) => sum + data[datum].bytes, 0);
        const ranked = [...candidates].sort(
          (a, b) =>
            Number(b === place) - Number(a === place) ||
            inputs(b) - inputs(a) ||
            load[a] - load[b] ||
            a - b,
        );
        expect(choose(state, flows, { kernels, bytes })).toBe(ranked[0] ?? 0);
      }),
      { numRuns: 400 },
    );
  });
});
