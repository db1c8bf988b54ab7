// Closes of data within which a body runs that uses the same data: all of the close comes before what the body inserts, or after it.
import { describe, expect, it } from 'vitest';
import type { Datum, Graph, Runtime } from '../../index.js';
import { copyOf, paint } from '../support/body-tasks.js';
import { onMachine } from '../support/machines.js';
import { digits, HOST, one, type Place, play, SMALL } from '../support/within-calls.js';

/** Elements of the datum. */
const LENGTH = 8;

/** A program that closes a datum beside a body that uses it. */
interface Case {
  readonly closed: Datum;
  readonly first: (graph: Graph) => void;
  /** What the body does if the datum is open. */
  readonly body: (graph: Graph) => void;
  /** What holds after the run. */
  readonly check?: (wasOpen: boolean, of: string) => Promise<void>;
}

/**
 * The body is in every place near the end of the wait; one behind it makes data, which may get the row of the datum. They keep their values.
 */
async function everyClose(make: (runtime: Runtime) => Case): Promise<void> {
  const places = new Set<Place>();
  const test = async (runtime: Runtime, ahead: number, at: number, gap: number): Promise<void> => {
    const of = `${ahead} tasks ahead, used in task ${at}, others made in task ${at + gap}`;
    const { closed, first, body, check } = make(runtime);
    const others: Datum<'f64'>[] = [];
    const makeOthers = (): void => {
      for (let i = 1; i < 4; i++) others.push(runtime.data(new Float64Array(LENGTH).fill(i)));
    };
    let wasOpen = false;
    const use = (graph: Graph): void => {
      wasOpen = !closed.closed;
      if (wasOpen) body(graph);
    };
    const bodies = [
      [at, use],
      [at + gap, makeOthers],
    ] as const;
    const { place } = await play(runtime, {
      first,
      bodies,
      ahead,
      call: async () => closed.close(),
    });
    const values = await Promise.all(others.map((other) => other.read()));
    expect(values.map(digits), of).toEqual(['1', '2', '3'].map((digit) => digit.repeat(LENGTH)));
    await check?.(wasOpen, of);
    places.add(place);
  };
  for (let ahead = SMALL; ahead < SMALL + 2; ahead++)
    for (let at = 0; at < 12; at++)
      for (let gap = 1; gap < 4; gap++)
        await onMachine({ ...HOST, window: SMALL }, (runtime) => test(runtime, ahead, at, gap));
  expect([...places]).toContain('within');
}

const zeros = (runtime: Runtime): Datum<'f64'> => runtime.data(new Float64Array(LENGTH));

/** Some elements of a datum, and single ones of them. */
function partsOf(whole: Datum<'f64'>): { some: Datum<'f64'>; single: readonly Datum<'f64'>[] } {
  return { some: whole.part(0, 6), single: [1, 3, 5].map((i) => whole.part(i, 1)) };
}

const reduceInto =
  (to: Datum<'f64'>) =>
  (graph: Graph): void => {
    for (let i = 0; i < 4; i++) graph.insert(one, { to });
  };

describe('beside a body that reduces into it', () => {
  it('a datum is closed with the reduction, also while reductions into its parts end', () =>
    everyClose((runtime) => {
      const whole = zeros(runtime);
      const parts = [0, 2, 4, 6].map((i) => whole.part(i, 2));
      return {
        closed: whole,
        first: (graph) => {
          for (const to of [...parts, ...parts]) graph.insert(one, { to });
        },
        body: reduceInto(whole),
      };
    }));

  it.each<[string, (graph: Graph, parts: ReturnType<typeof partsOf>) => void, string, string]>([
    [
      'reductions into parts of it end',
      (graph, { single }) => {
        for (const to of [...single, ...single]) graph.insert(one, { to });
      },
      '42020200',
      '02020200',
    ],
    [
      'it is copied',
      (graph, { some, single }) => {
        graph.insert(paint, { to: some, value: 1 });
        for (const to of single) graph.insert(paint, { to, value: 2 });
      },
      '52121200',
      '12121200',
    ],
  ])('a part gives the result back, also while %s', (_what, insert, reduced, before) =>
    everyClose((runtime) => {
      const whole = zeros(runtime);
      const parts = partsOf(whole);
      return {
        closed: parts.some,
        first: (graph) => insert(graph, parts),
        body: reduceInto(parts.some),
        check: async (wasOpen, of) =>
          expect(digits(await whole.read()), of).toBe(wasOpen ? reduced : before),
      };
    }),
  );
});

describe('beside a body that uses it, the last part', () => {
  /** Only pieces of the part are newest. */
  const last = (runtime: Runtime) => {
    const whole = zeros(runtime);
    const { some, single } = partsOf(whole);
    const first = (graph: Graph): void => {
      graph.insert(paint, { to: some, value: 1 });
      for (const to of single) {
        graph.insert(paint, { to, value: 2 });
        to.close();
      }
    };
    return { whole, closed: some, first };
  };

  it('gives back what the body writes', () =>
    everyClose((runtime) => {
      const { whole, closed, first } = last(runtime);
      return {
        closed,
        first,
        body: (graph) => void graph.insert(paint, { to: closed, value: 7 }),
        check: async (wasOpen, of) => {
          expect(digits(await whole.read()), of).toBe(wasOpen ? '77777700' : '12121200');
          expect(digits(await whole.part(0, 6).read()), of).toBe(wasOpen ? '777777' : '121212');
        },
      };
    }));

  it('gives back what the body reduces into it', () =>
    everyClose((runtime) => {
      const { whole, closed, first } = last(runtime);
      return {
        closed,
        first,
        body: reduceInto(closed),
        check: async (wasOpen, of) =>
          expect(digits(await whole.read()), of).toBe(wasOpen ? '52121200' : '12121200'),
      };
    }));

  it('has the newest values for the body, and no others after it', () =>
    everyClose((runtime) => {
      const { whole, closed, first } = last(runtime);
      const seen = runtime.data(new Float64Array(6));
      return {
        closed,
        first,
        body: (graph) => {
          graph.insert(copyOf, { to: seen, from: closed });
          graph.insert(paint, { to: whole, value: 8 });
        },
        check: async (wasOpen, of) => {
          expect(digits(await seen.read()), of).toBe(wasOpen ? '121212' : '000000');
          expect(digits(await whole.part(0, 6).read()), of).toBe(wasOpen ? '888888' : '121212');
          expect(digits(await whole.read()), of).toBe(wasOpen ? '88888888' : '12121200');
        },
      };
    }));

  it('is given to the body while it is open, and another one after it', () =>
    everyClose((runtime) => {
      const { whole, closed, first } = last(runtime);
      return {
        closed,
        first,
        body: (graph) => {
          const again = whole.part(0, 6);
          expect(again).toBe(closed);
          graph.insert(paint, { to: again, value: 7 });
        },
        check: async (wasOpen, of) => {
          const next = whole.part(0, 6);
          expect(next.closed, of).toBe(false);
          expect(digits(await next.read()), of).toBe(wasOpen ? '777777' : '121212');
        },
      };
    }));
});
