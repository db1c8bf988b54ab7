// The work of the bodies in plain worker threads, without a runtime: what both cores give at this moment.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { work } from './script-classes.js';

interface Share {
  readonly bodies: number;
  readonly iterations: number;
}

export class PlainWorkers {
  private readonly workers: readonly Worker[];

  constructor(count: number) {
    this.workers = Array.from({ length: count }, () => new Worker(new URL(import.meta.url)));
  }

  /** Seconds until each worker has done its share of `bodies` bodies of `iterations`. */
  async seconds(bodies: number, iterations: number): Promise<number> {
    const share: Share = { bodies: bodies / this.workers.length, iterations };
    const start = performance.now();
    await Promise.all(
      this.workers.map(async (worker) => {
        worker.postMessage(share);
        await once(worker, 'message');
      }),
    );
    return (performance.now() - start) / 1e3;
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.terminate()));
  }
}

if (!isMainThread)
  parentPort?.on('message', ({ bodies, iterations }: Share) => {
    let sum = 0;
    for (let i = 0; i < bodies; i++) sum += work(iterations);
    parentPort?.postMessage(sum);
  });
