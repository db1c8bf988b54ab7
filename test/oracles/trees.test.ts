// Oracles whose graph is a tree: reduction, and trees that unfold while they run.
import { describe, expect, it } from 'vitest';
import { type Datum, type Graph, read, readWrite, task, write } from '../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { add, copy, fill, random } from '../support/tasks.js';

describe.each(MACHINES)('on $name', ({ options, gpus }) => {
  it('reduce: contributions 0 to 39 of four owners sum to 780', async () => {
    await onMachine(options, async (runtime) => {
      const count = 16;
      const leaves = Array.from({ length: 40 }, (_, i) =>
        runtime.data('f64', count, gpus === 0 ? {} : { device: Math.floor(i / 10) % gpus }),
      );
      const report = await soon(
        runtime,
        runtime.run((graph) => {
          for (const [i, to] of leaves.entries()) graph.insert(fill, { to, count, value: i });
          for (let stride = 1; stride < leaves.length; stride *= 2) {
            for (let i = 0; i + stride < leaves.length; i += 2 * stride) {
              graph.insert(add, { to: leaves[i], from: leaves[i + stride], count });
            }
          }
        }),
      );
      expect(report.tasks).toBe(40 + 39);
      // Values were born on the devices and moved between them only.
      expect(report.bytes.h2d).toBe(0);
      expect(report.bytes.d2h).toBe(0);
      expect(report.bytes.d2d > 0).toBe(gpus > 1);
      expect(await leaves[0].read()).toEqual(new Float64Array(count).fill(780));
      await nothingLeft(runtime, leaves);
    });
  });

  it('haar tree: a tree that unfolds by the values of its nodes gives the XOR of its leaves', async () => {
    await onMachine(options, async (runtime) => {
      const split = (value: number, depth: number): boolean =>
        depth < 3 || (depth < 12 && (Math.imul(value, 0x9e3779b1) >>> 8) % 5 < 3);
      const child = (value: number, side: number): number =>
        (Math.imul(value, 2 + side) + 0x1234567 + side) | 0;
      const serial = (value: number, depth: number): { xor: number; leaves: number } => {
        if (!split(value, depth)) return { xor: value, leaves: 1 };
        const [l, r] = [0, 1].map((side) => serial(child(value, side), depth + 1));
        return { xor: l.xor ^ r.xor, leaves: l.leaves + r.leaves };
      };
      const result = runtime.data(Int32Array.of(0, 0), { name: 'result' });
      let graph: Graph;
      let live = 0;
      const leaf = task({
        name: 'leaf',
        flows: { result: readWrite('i32'), value: read('i32') },
        body: ({ result: to, value }) => {
          to[0] ^= value[0];
          to[1]++;
        },
      });
      const node = task({
        name: 'node',
        flows: { value: read('i32') },
        params: { depth: 'i32' },
        body: ({ value, depth }) => {
          // The children's data are made here, when it is known that there are children.
          for (const side of split(value[0], depth) ? [0, 1] : []) {
            const datum = runtime.data(Int32Array.of(child(value[0], side)));
            live++;
            if (split(child(value[0], side), depth + 1)) {
              graph.insert(node, { value: datum, depth: depth + 1 });
            } else graph.insert(leaf, { result, value: datum });
            // Freed when its last task is over.
            datum.close();
          }
        },
      });
      const root = runtime.data(Int32Array.of(77));
      await soon(
        runtime,
        runtime.run((g) => {
          graph = g;
          graph.insert(node, { value: root, depth: 0 });
        }),
      );
      const expected = serial(77, 0);
      expect(expected.leaves).toBeGreaterThan(50);
      expect([...(await result.read())]).toEqual([expected.xor, expected.leaves]);
      expect(live).toBe(2 * expected.leaves - 2);
      await nothingLeft(runtime, [root, result]);
    });
  });

  it('merge sort: recursive splitting, pieces of uneven size', async () => {
    await onMachine(options, async (runtime) => {
      const next = random(3);
      const numbers = Float64Array.from({ length: 3000 }, () => Math.floor(next() * 1e6));
      const sort = task({
        name: 'sort',
        flows: { of: readWrite('f64') },
        body: ({ of }) => void of.sort(),
      });
      const merge = task({
        name: 'merge',
        flows: { to: write('f64'), a: read('f64'), b: read('f64') },
        body: ({ to, a, b }) => {
          let i = 0;
          let j = 0;
          for (let k = 0; k < to.length; k++) {
            to[k] = j >= b.length || (i < a.length && a[i] <= b[j]) ? a[i++] : b[j++];
          }
        },
      });
      /** Sorts a part; the pieces go over native tasks, so over GPUs where there are some. */
      const sorted = (graph: Graph, part: Float64Array): Datum<'f64'> => {
        if (part.length < 40) {
          const input = runtime.data(part);
          const piece = runtime.data('f64', part.length);
          graph.insert(copy, { to: piece, from: input, bytes: input.bytes });
          input.close();
          graph.insert(sort, { of: piece });
          return piece;
        }
        const at = 1 + Math.floor(next() * (part.length - 1));
        const a = sorted(graph, part.subarray(0, at));
        const b = sorted(graph, part.subarray(at));
        const merged = runtime.data('f64', part.length);
        const moved = runtime.data('f64', part.length);
        graph.insert(merge, { to: merged, a, b });
        graph.insert(copy, { to: moved, from: merged, bytes: merged.bytes });
        for (const datum of [a, b, merged]) datum.close();
        return moved;
      };
      const results: Datum<'f64'>[] = [];
      await soon(
        runtime,
        runtime.run((graph) => {
          results.push(sorted(graph, numbers));
        }),
      );
      expect(await results[0].read()).toEqual(numbers.slice().sort());
      await nothingLeft(runtime, results);
    });
  });
});
