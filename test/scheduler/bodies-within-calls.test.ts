// Calls of the program within which a body runs that uses the same data: all of the call comes before the body's, or after it.
import { describe, expect, it } from 'vitest';
import {
  type Datum,
  type Graph,
  HeadraceError,
  type Runtime,
  read,
  readWrite,
  task,
} from '../../index.js';
import { copyOf, paint, raise } from '../support/body-tasks.js';
import { onMachine, soon } from '../support/machines.js';
import { script } from '../support/tasks.js';
import {
  digits,
  everywhere,
  HOST,
  idle,
  one,
  type Place,
  play,
  possible,
  SMALL,
  WINDOWS,
} from '../support/within-calls.js';

describe.each(WINDOWS)('in a window of %i, beside a body that writes the whole', (window) => {
  it('a task that reads the whole sees one order of it and the parts', async () => {
    await everywhere(window, async (runtime, ahead, of) => {
      const whole = runtime.data(new Float64Array(4));
      const seen = runtime.data(new Float64Array(4));
      const parts = [whole.part(0, 2), whole.part(2, 2)];
      const { place } = await play(runtime, {
        first: (graph) => {
          for (const [i, to] of parts.entries()) graph.insert(paint, { to, value: i + 1 });
        },
        bodies: [[0, (graph) => void graph.insert(paint, { to: whole, value: 9 })]],
        ahead,
        call: async (graph) => void graph.insert(copyOf, { to: seen, from: whole }),
      });
      expect(possible(place, '9999', '1122'), of).toContain(digits(await seen.read()));
      expect(digits(await whole.read()), of).toBe('9999');
      for (const part of parts) expect(digits(await part.read()), of).toBe('99');
      return place;
    });
  });
});

describe.each(WINDOWS)('in a window of %i, beside a body that reads the whole', (window) => {
  it('a part that is set has its values, and the whole has them, too', async () => {
    await everywhere(window, async (runtime, ahead, of) => {
      const whole = runtime.data(new Float64Array(4));
      const seen = runtime.data(new Float64Array(4));
      const part = whole.part(0, 2);
      const { place } = await play(runtime, {
        first: (graph) => void graph.insert(paint, { to: part, value: 1 }),
        bodies: [[0, (graph) => void graph.insert(copyOf, { to: seen, from: whole })]],
        ahead,
        call: () => part.set(new Float64Array(2).fill(7)),
      });
      expect(possible(place, '1100', '7700'), of).toContain(digits(await seen.read()));
      expect(digits(await whole.read()), of).toBe('7700');
      expect(digits(await part.read()), of).toBe('77');
      return place;
    });
  });
});

describe.each(WINDOWS)('in a window of %i, beside a body that opens a reduction', (window) => {
  const reduces = (runtime: Runtime) => {
    const datum = runtime.data(Float64Array.of(10));
    const body = (graph: Graph): void => {
      for (let i = 0; i < 4; i++) graph.insert(one, { to: datum });
    };
    return { datum, bodies: [[0, body]] as const };
  };

  it.each(['read()', 'graph.value()'])(
    '%s gives the value without or with all of it',
    async (kind) => {
      await everywhere(window, async (runtime, ahead, of) => {
        const { datum, bodies } = reduces(runtime);
        const { place, result } = await play(runtime, {
          bodies,
          ahead,
          call: async (graph) => (kind === 'read()' ? (await datum.read())[0] : graph.value(datum)),
        });
        expect(possible(place, 14, 10), of).toContain(result);
        expect(await datum.read(), of).toEqual(Float64Array.of(14));
        return place;
      });
    },
  );

  it('set() replaces all of it, or gives what all of it is added to', async () => {
    await everywhere(window, async (runtime, ahead, of) => {
      const { datum, bodies } = reduces(runtime);
      const { place } = await play(runtime, {
        bodies,
        ahead,
        call: () => datum.set(Float64Array.of(20)),
      });
      expect(possible(place, 20, 24), of).toContain((await datum.read())[0]);
      return place;
    });
  });
});

describe.each(WINDOWS)('in a window of %i, beside a body that sets the datum', (window) => {
  it('read() ends a reduction into it before, or has nothing to end', async () => {
    await everywhere(window, async (runtime, ahead, of) => {
      const datum = runtime.data(Float64Array.of(10));
      const { place, result } = await play(runtime, {
        first: (graph) => {
          for (let i = 0; i < 8; i++) graph.insert(one, { to: datum });
        },
        bodies: [[0, () => void datum.set(Float64Array.of(20))]],
        ahead,
        call: async () => (await datum.read())[0],
      });
      expect(possible(place, 20, 18), of).toContain(result);
      expect(await datum.read(), of).toEqual(Float64Array.of(20));
      return place;
    });
  });
});

describe.each(WINDOWS)('in a window of %i, beside a body that makes the first part', (window) => {
  const raiseAndRead = task({
    name: 'raiseAndRead',
    flows: { x: readWrite('f64'), total: read('f64') },
    body: ({ x }) => {
      for (let i = 0; i < x.length; i++) x[i] += 1;
    },
  });
  const raised = (whole: Datum<'f64'>) =>
    [[0, (graph: Graph) => void graph.insert(raise, { x: whole.part(0, 1) })]] as const;

  it('a task that changes the whole, and ends a reduction, changes what the part has', async () => {
    await everywhere(window, async (runtime, ahead, of) => {
      const whole = runtime.data(new Float64Array(2));
      const total = runtime.data(new Float64Array(1));
      const { place } = await play(runtime, {
        first: (graph) => {
          for (let i = 0; i < 8; i++) graph.insert(one, { to: total });
        },
        bodies: raised(whole),
        ahead,
        call: async (graph) => void graph.insert(raiseAndRead, { x: whole, total }),
      });
      expect(digits(await whole.part(0, 1).read()), of).toBe('2');
      expect(digits(await whole.read()), of).toBe('21');
      return place;
    });
  });

  it('tasks that reduce into the whole add to what the part has', async () => {
    await everywhere(window, async (runtime, ahead, of) => {
      const whole = runtime.data(new Float64Array(2));
      const { place } = await play(runtime, {
        bodies: raised(whole),
        ahead,
        call: async (graph) => {
          for (let i = 0; i < 8; i++) graph.insert(one, { to: whole });
        },
      });
      expect(digits(await whole.part(0, 1).read()), of).toBe('9');
      expect(digits(await whole.read()), of).toBe('90');
      return place;
    });
  });
});

describe('beside a body that closes a datum of it, a call that waits for room', () => {
  /** A call on a datum, and what comes before the tasks ahead of it. */
  interface Case {
    readonly first?: (graph: Graph) => void;
    readonly call: (graph: Graph) => Promise<unknown>;
  }
  interface Shape {
    /** Elements of the datum. */
    readonly length: number;
    /** The body that closes it is that of one of so many tasks, and so many more tasks are ahead of the call than in a window, at most. */
    readonly at: number;
    readonly more: number;
  }

  const SHORT: Shape = { length: 2, at: 4, more: 4 };
  /** What comes first takes many tasks. */
  const LONG: Shape = { length: 8, at: 10, more: 2 };

  /**
   * The body that closes is in every place near the end of the wait; one behind it makes data, which may get the row of the datum. `done`:
   * what the call gives when it comes before; `refused`: when it comes after.
   */
  async function closed(
    { length, at: most, more }: Shape,
    make: (runtime: Runtime, datum: Datum<'f64'>) => Case,
    done: unknown = undefined,
    refused: unknown = 'ERR_DATUM_CLOSED',
  ): Promise<void> {
    const places = new Set<Place>();
    const test = async (
      runtime: Runtime,
      ahead: number,
      at: number,
      gap: number,
    ): Promise<void> => {
      const of = `${ahead} tasks ahead, closed in task ${at}, others made in task ${at + gap}`;
      const datum = runtime.data(new Float64Array(length).fill(5));
      const others: Datum<'f64'>[] = [];
      const makeOthers = (): void => {
        for (let i = 1; i < 4; i++) others.push(runtime.data(new Float64Array(length).fill(i)));
      };
      const { first, call } = make(runtime, datum);
      const bodies = [
        [at, () => datum.close()],
        [at + gap, makeOthers],
      ] as const;
      const { place, result } = await play(runtime, { first, bodies, ahead, call });
      const values = await Promise.all(others.map((other) => other.read()));
      expect(values.map(digits), of).toEqual(['1', '2', '3'].map((digit) => digit.repeat(length)));
      expect(result, of).toEqual(place === 'after' ? done : refused);
      places.add(place);
    };
    for (let ahead = SMALL; ahead < SMALL + more; ahead++)
      for (let at = 0; at < most; at++)
        for (let gap = 1; gap < 4; gap++)
          await onMachine({ ...HOST, window: SMALL }, (runtime) => test(runtime, ahead, at, gap));
    expect([...places]).toContain('within');
  }

  /** Paints parts of a datum. */
  const parted = (datum: Datum<'f64'>): ((graph: Graph) => void) => {
    const parts = Array.from({ length: 8 }, (_, i) => datum.part(i, 1));
    return (graph) => {
      for (const to of parts) graph.insert(paint, { to, value: 9 });
    };
  };
  const closeIt = (datum: Datum): string => {
    datum.close();
    return 'closed';
  };
  const painted = new Float64Array(8).fill(9);

  it('read() rejects', () =>
    closed(SHORT, (_, datum) => ({ call: () => datum.read() }), Float64Array.of(5, 5)));

  it('set() rejects, and sets no other datum', () =>
    closed(SHORT, (_, datum) => ({ call: () => datum.set(Float64Array.of(9, 9)) })));

  it('a task that ends a reduction into another one is refused', () =>
    closed(LONG, (runtime, to) => {
      const from = runtime.data(Float64Array.of(9));
      return {
        first: (graph) => {
          for (let i = 0; i < 8; i++) graph.insert(one, { to: from });
        },
        call: async (graph) => void graph.insert(copyOf, { to, from }),
      };
    }));

  it('a task that reduces into it is refused', () =>
    closed(LONG, (_, to) => ({
      call: async (graph) => {
        for (let i = 0; i < 8; i++) graph.insert(one, { to });
      },
    })));

  it('a task that reads another one with parts is refused', () =>
    closed(LONG, (runtime, to) => {
      const from = runtime.data(new Float64Array(8));
      return {
        first: parted(from),
        call: async (graph) => void graph.insert(copyOf, { to, from }),
      };
    }));

  it('a task that reads all of its parts is refused', () =>
    closed(LONG, (runtime, from) => {
      const to = runtime.data(new Float64Array(8));
      return {
        first: parted(from),
        call: async (graph) => void graph.insert(copyOf, { to, from }),
      };
    }));

  it('read() of all of its parts rejects', () =>
    closed(LONG, (_, datum) => ({ first: parted(datum), call: () => datum.read() }), painted));

  it('close() of it and of its parts closes them once', () =>
    closed(
      LONG,
      (_, datum) => ({ first: parted(datum), call: async () => closeIt(datum) }),
      'closed',
      'closed',
    ));

  it('close() of a part of it closes it once', () =>
    closed(
      LONG,
      (_, datum) => {
        const some = datum.part(0, 6);
        const copies = Array.from({ length: 3 }, (_, i) => datum.part(2 * i + 1, 1));
        return {
          first: (graph) => {
            graph.insert(paint, { to: some, value: 9 });
            for (const to of copies) graph.insert(paint, { to, value: 9 });
          },
          call: async () => closeIt(some),
        };
      },
      'closed',
      'closed',
    ));
});

describe('beside a body that closes a datum of it, a task that an asynchronous body spawns', () => {
  it('is refused while the parts of the body are copied', async () => {
    const COUNT = 160;
    const results = new Set<string>();
    /** The bodies run one after the other, each in a pass within an insertion of the asynchronous one. */
    const test = async (runtime: Runtime, at: number, gap: number): Promise<void> => {
      const x = runtime.data(new Float64Array(COUNT));
      const to = runtime.data(new Float64Array(COUNT));
      const of = runtime.data(new Float64Array(1));
      const others: Datum<'f64'>[] = [];
      const make = (): void => {
        for (let i = 1; i < 4; i++) others.push(runtime.data(new Float64Array(COUNT).fill(i)));
      };
      let result = '';
      const parent = task({
        name: 'parent',
        flows: { x: readWrite('f64') },
        body: async (_, { data, graph, spawn }) => {
          await undefined;
          for (let i = 0; i < at + gap; i++)
            graph.insert(i === at ? script('close', () => to.close()) : idle, { of });
          graph.insert(script('make', make), { of });
          for (let i = 0; i < COUNT; i++) spawn(paint, { to: data.x.part(i, 1), value: 9 });
          if (to.closed) return;
          try {
            spawn(copyOf, { to, from: data.x });
            result = 'spawned';
          } catch (error) {
            expect(error).toBeInstanceOf(HeadraceError);
            expect((error as HeadraceError).details).toMatchObject({ datum: to.name });
            result = (error as HeadraceError).code;
          }
        },
      });
      const run = runtime.run((graph) => void graph.insert(parent, { x }));
      await soon(runtime, run.done);
      results.add(result);
      for (const [i, other] of others.entries())
        expect(await other.read(), `closed in body ${at}, others made ${gap} later`).toEqual(
          new Float64Array(COUNT).fill(i + 1),
        );
      expect(await x.read()).toEqual(new Float64Array(COUNT).fill(9));
    };
    for (let at = 0; at < 12; at++)
      for (let gap = 1; gap < 4; gap++)
        await onMachine({ ...HOST, window: 1024 }, (runtime) => test(runtime, at, gap));
    expect([...results].sort()).toEqual(['', 'ERR_DATUM_CLOSED', 'spawned']);
  });
});
