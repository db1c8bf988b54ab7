// Host memory far larger than the machine's: address space is reserved, and pages are allocated on first use.
import { expect, test } from 'vitest';
import { Runtime, readWrite, task, write } from '../../index.js';

const TIB = 2 ** 40;
const claim = task({ name: 'claim', flows: { to: write('f64') }, kernel: 'empty' });
const fill = task({
  name: 'fill',
  flows: { to: write('f64') },
  params: { count: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});
const increment = task({
  name: 'increment',
  flows: { of: readWrite('f64') },
  body: ({ of }) => {
    for (let i = 0; i < of.length; i++) of[i]++;
  },
});

test.each([2, 16])('%i TiB: data at its end are as good as any', async (tib) => {
  const runtime = await Runtime.create({ hostMemory: `${tib}TiB`, workers: 2 });
  // Takes all but the last MiB, and touches nothing.
  const most = runtime.data('f64', (tib * TIB - 2 ** 20) / 8, { name: 'most' });
  await runtime.run((graph) => void graph.insert(claim, { to: most }));
  expect(runtime.memory()[0]).toMatchObject({ capacity: tib * TIB, used: tib * TIB - 2 ** 20 });
  const values = Float64Array.from({ length: 1000 }, (_, i) => i);
  const last = runtime.data(values, { name: 'last' });
  const born = runtime.data('f64', 1000, { name: 'born' });
  await runtime.run((graph) => {
    graph.insert(increment, { of: last });
    graph.insert(fill, { to: born, count: 1000, value: 3 });
  });
  expect(await last.read()).toEqual(values.map((value) => value + 1));
  expect(await born.read()).toEqual(new Float64Array(1000).fill(3));
  // The first element can be read.
  await runtime.run(async (graph) => {
    expect(await graph.value(most)).toBe(0);
    expect(await graph.value(born)).toBe(3);
  });
  await expect(most.read()).rejects.toMatchObject({ code: 'ERR_ARRAY_TOO_LARGE' });
  await runtime.close();
});

test('a host that no address space holds is refused with a typed error', async () => {
  await expect(Runtime.create({ hostMemory: '8192TiB' })).rejects.toMatchObject({
    code: expect.stringMatching(/^ERR_/),
    message: expect.stringContaining('address space'),
  });
});
