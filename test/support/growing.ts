// Programs whose tasks insert the rest of the program.
import {
  type Datum,
  type Flow,
  type Graph,
  type Program,
  type Runtime,
  type TaskClass,
  task,
  write,
} from '../../index.js';

/** A binary tree of `2 ** depth - 1` bodies. */
export function tree(depth: number): { program: Program; seen: { ran: number } } {
  const seen = { ran: 0 };
  let graph: Graph;
  const node: TaskClass<Record<never, never>, { readonly left: 'i32' }> = task({
    name: 'node',
    flows: {},
    params: { left: 'i32' },
    body: ({ left }): void => {
      seen.ran++;
      if (left === 1) return;
      graph.insert(node, { left: left - 1 });
      graph.insert(node, { left: left - 1 });
    },
  });
  const program = (g: Graph): void => {
    graph = g;
    graph.insert(node, { left: depth });
  };
  return { program, seen };
}

/** The integral of the square root from 0 to 1, by bisection where Simpson's rule is not good enough. */
export function quadrature(tolerance: number): { program: Program; seen: { sum: number } } {
  const seen = { sum: 0 };
  let graph: Graph;
  const f = Math.sqrt;
  const simpson = (a: number, b: number): number =>
    ((b - a) / 6) * (f(a) + 4 * f((a + b) / 2) + f(b));
  const interval: TaskClass<
    Record<never, never>,
    { readonly a: 'f64'; readonly b: 'f64'; readonly tolerance: 'f64' }
  > = task({
    name: 'interval',
    flows: {},
    params: { a: 'f64', b: 'f64', tolerance: 'f64' },
    body: ({ a, b, tolerance }): void => {
      const middle = (a + b) / 2;
      const halves = simpson(a, middle) + simpson(middle, b);
      if (Math.abs(halves - simpson(a, b)) <= tolerance || b - a < 1e-12) {
        seen.sum += halves;
        return;
      }
      graph.insert(interval, { a, b: middle, tolerance: tolerance / 2 });
      graph.insert(interval, { a: middle, b, tolerance: tolerance / 2 });
    },
  });
  const program = (g: Graph): void => {
    graph = g;
    graph.insert(interval, { a: 0, b: 1, tolerance });
  };
  return { program, seen };
}

/** Sorts `values` into `sorted`: a body makes data for two halves, inserts their tasks, awaits them, and merges. */
export function mergeSort(runtime: Runtime, values: Float64Array, sorted: Datum<'f64'>): Program {
  let graph: Graph;
  const sort: TaskClass<
    { readonly out: Flow<'f64', 'write'> },
    { readonly from: 'i32'; readonly length: 'i32' }
  > = task({
    name: 'sort',
    flows: { out: write('f64') },
    params: { from: 'i32', length: 'i32' },
    body: async ({ out, from, length }): Promise<void> => {
      if (length <= 4) {
        out.set(values.slice(from, from + length).sort());
        return;
      }
      const half = length >> 1;
      const parts = [runtime.data('f64', half), runtime.data('f64', length - half)];
      graph.insert(sort, { out: parts[0], from, length: half });
      graph.insert(sort, { out: parts[1], from: from + half, length: length - half });
      merge(await parts[0].read(), await parts[1].read(), out);
      for (const part of parts) part.close();
    },
  });
  return (g) => {
    graph = g;
    graph.insert(sort, { out: sorted, from: 0, length: values.length });
  };
}

function merge(left: Float64Array, right: Float64Array, to: Float64Array): void {
  for (let i = 0, j = 0; i + j < to.length; ) {
    const fromLeft = j === right.length || (i < left.length && left[i] <= right[j]);
    to[i + j] = fromLeft ? left[i] : right[j];
    if (fromLeft) i++;
    else j++;
  }
}
