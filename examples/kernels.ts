// One task class, two bodies: JavaScript on the host, a C kernel (kernels.c) on GPUs. Both must give the same bits.
import { Runtime } from 'headrace';
import { stencil } from 'headrace/algorithms';
import { compile } from './support/compile.js';

using library = compile('kernels.c');

async function smooth(gpus: number): Promise<Float64Array> {
  await using runtime = await Runtime.create({ gpus, gpuMemory: '64KiB' });
  if (gpus > 0) console.log(`loaded: ${runtime.loadKernels(library.file).join(', ')}`);
  const lengths = [500, 700, 300, 900];
  // Neighbouring blocks are on different GPUs, so halos travel from device to device.
  const place = (b: number): { device?: number } => (gpus > 0 ? { device: b % gpus } : {});
  const blocks = lengths.map((n, b) =>
    runtime.data(
      Float64Array.from({ length: n }, (_, i) => (i * (b + 1)) % 11),
      place(b),
    ),
  );
  const scratch = lengths.map((n, b) => runtime.data('f64', n, place(b)));
  const weights = runtime.data(Float64Array.of(0.25, 0.5, 0.25));
  const beyond = runtime.data(new Float64Array(1));
  let result = blocks as readonly (typeof blocks)[number][];
  const report = await runtime.run((graph) => {
    result = stencil(graph, { blocks, scratch, weights, beyond }, 50);
  });
  console.log(`${report.tasks} tasks with ${gpus} GPUs, ${report.bytes.d2d} bytes between devices`);
  const parts = await Promise.all(result.map((block) => block.read()));
  return Float64Array.from(parts.flatMap((part) => [...part]));
}

const onHost = await smooth(0);
const onGpus = await smooth(2);
console.log(
  onHost.every((value, i) => Object.is(value, onGpus[i])) ? 'same bits' : 'different bits',
);
