// Copy-cover on CUDA (after the test of that name in UPC++): every ordered pair of places, sizes from 8 B to 1 MiB,
// sources overwritten as soon as the runtime allows it. Every element that arrives must belong to its round. The test
// distinguishes a stale element, an element that was overwritten before it was read, and garbage.
// HEADRACE_TEST_ROUNDS: rounds in all (on real GPUs 10 000).
import { describe, expect, it } from 'vitest';
import { type Datum, Runtime } from '../../index.js';
import { cudaGpus, isReal } from '../support/cuda.js';
import { nothingLeft, soon } from '../support/machines.js';
import { cuda, needing } from '../support/needs.js';
import { copy, fill, random } from '../support/tasks.js';

const ROUNDS = Number(process.env['HEADRACE_TEST_ROUNDS'] ?? (isReal ? 10_000 : 600));
/** Elements: 8 B to 1 MiB. */
const SIZES = Array.from({ length: 18 }, (_, i) => 2 ** i);
/** Rounds whose results are looked at together, and so may be under way together. */
const BATCH = 32;

type Place = 'host' | number;

/** What is wrong with the values of a round, or undefined. */
function mismatch(values: Float64Array, round: number): string | undefined {
  const at = values.findIndex((value) => value !== round);
  if (at < 0) return undefined;
  const value = values[at];
  const what =
    value === -round
      ? 'killed before it was read'
      : value < 0
        ? `killed in round ${-value}`
        : value > 0 && value < round
          ? `stale, of round ${value}`
          : 'garbage';
  return `round ${round}, element ${at} of ${values.length}: ${what} (${value})`;
}

const counts = [1, 2, 4].filter((gpus) => gpus <= cudaGpus);

describe.each(counts)('on %i CUDA', needing(cuda), (gpus) => {
  it(`copy-cover, ${ROUNDS} rounds`, { timeout: 200_000 }, async () => {
    const runtime = await Runtime.create({
      driver: 'cuda',
      gpus,
      gpuMemory: '96MiB',
      hostMemory: '512MiB',
      workers: 1,
      computeStreams: 2,
      checked: !isReal,
    });
    const places: Place[] = ['host', ...Array.from({ length: gpus }, (_, g) => g)];
    const pairs = places.flatMap((a) => places.map((b) => [a, b] as const));
    const next = random(gpus);
    const sources = new Map<number, Datum<'f64'>[]>();
    for (const size of SIZES)
      sources.set(
        size,
        [0, 1, 2].map(() => runtime.data(new Float64Array(size))),
      );
    let device = 0;
    let host = 0;
    for (let round = 1; round <= ROUNDS; ) {
      const results: { readonly round: number; readonly to: Datum<'f64'> }[] = [];
      const report = await soon(
        runtime,
        runtime.run((graph) => {
          for (let i = 0; i < BATCH && round <= ROUNDS; i++, round++) {
            const [a, b] = pairs[round % pairs.length];
            const size = SIZES[Math.floor(next() * (next() < 0.1 ? 18 : 14))];
            const source = sources.get(size)?.[round % 3] as Datum<'f64'>;
            const to = runtime.data('f64', size);
            const bytes = size * 8;
            graph.insert(fill, { to: source, count: size, value: round }, { device: a });
            graph.insert(copy, { to, from: source, bytes }, { device: b });
            // The kill: the next writer of the source, now where it is, now where the copy was read.
            if (round % 7 < 5) {
              const at = round % 2 === 0 ? a : b;
              graph.insert(fill, { to: source, count: size, value: -round }, { device: at });
            }
            results.push({ round, to });
          }
        }),
      );
      device += report.bytes.d2d;
      host += report.bytes.h2d + report.bytes.d2h;
      for (const { round: of, to } of results) {
        const values = await to.read();
        expect(mismatch(values, of)).toBeUndefined();
        to.close();
      }
    }
    expect(host).toBeGreaterThan(0);
    if (gpus > 1) expect(device).toBeGreaterThan(0);
    await nothingLeft(runtime, [...sources.values()].flat());
    await runtime.close();
  });
});
