// The thread that writes trace files, and the recording thread when the writer does not respond.
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BackgroundWriter, type StartWriter } from '../../trace/background-writer.js';
import { ChunkState, type WriterMemory, writeChunks } from '../../trace/chunk-writer.js';
import { FileSink, loadTrace, TraceRecorder } from '../../trace/index.js';
import { task, testHeader } from './support.js';

const CHUNK = 16 * 1024;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headrace-writer-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes a trace of `count` tasks without ever returning to the event loop. */
function recordTasks(sink: FileSink, count: number): void {
  const recorder = new TraceRecorder(sink, testHeader(), { chunkBytes: CHUNK });
  for (let id = 0; id < count; id++) task(recorder, id, 0, { start: id, end: id + 1 });
  recorder.finish();
}

describe('a trace file', () => {
  test('a long synchronous insertion does not write on the engine’s thread', () => {
    const path = join(folder, 'long.hrtrace');
    const sink = new FileSink(path);
    recordTasks(sink, 300_000);
    const { size } = statSync(path);
    expect(size).toBeGreaterThan(300_000 * 64);
    // The header and the last chunk.
    expect(sink.writtenHere).toBeLessThan(2 * CHUNK);
    const trace = loadTrace(path);
    expect(trace.problems).toEqual([]);
    expect(trace.tasks.id.every((id, row) => id === row)).toBe(true);
  });

  test('a short trace starts no thread', () => {
    const path = join(folder, 'short.hrtrace');
    const sink = new FileSink(path);
    recordTasks(sink, 10);
    expect(sink.writtenHere).toBe(statSync(path).size);
  });
});

/** Chunk `n` of a test: every byte tells it. */
const filled = (n: number): Uint8Array => new Uint8Array(CHUNK).fill(n + 1);

function expectWhole(path: string, chunks: number): void {
  const bytes = readFileSync(path);
  expect(bytes.length).toBe(chunks * CHUNK);
  for (let n = 0; n < chunks; n++) {
    const part = bytes.subarray(n * CHUNK, (n + 1) * CHUNK);
    expect(part.equals(filled(n)), `chunk ${n}`).toBe(true);
  }
}

/** A writer on a file of its own, what the calling thread had to write, and how to hand chunk `n` over. */
function writerOn(name: string, start?: StartWriter, patience?: number) {
  const path = join(folder, name);
  const fd = openSync(path, 'w');
  const here: number[] = [];
  const writeNow = (bytes: Uint8Array, position: number): void => {
    here.push(position / CHUNK);
    writeSync(fd, bytes, 0, bytes.length, position);
  };
  const writer = new BackgroundWriter(fd, CHUNK, writeNow, start, patience);
  const hand = (n: number): boolean => {
    const chunk = writer.take();
    chunk?.set(filled(n));
    if (chunk !== undefined) writer.hand(chunk, CHUNK, n * CHUNK);
    return chunk !== undefined;
  };
  let closed = false;
  const close = (): boolean => {
    writer.finish(() => {
      closed = true;
      closeSync(fd);
    });
    return closed;
  };
  return { path, writer, here, hand, close, isClosed: () => closed };
}

/** A real thread whose writes do `before` first, a statement that sees `count`, `gate` (one word) and `memory`. */
function threadThat(before: string, gate: Int32Array): StartWriter {
  return (memory, ended) => {
    const source = `const { memory, gate } = require('node:worker_threads').workerData;
      let count = 0;
      (${writeChunks})(memory, (...args) => { ${before}; count++; return require('node:fs').writeSync(...args); });`;
    const worker = new Worker(source, { eval: true, workerData: { memory, gate } });
    worker.once('exit', ended);
    worker.unref();
  };
}

const newGate = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));

describe('the writing thread', () => {
  test('closing waits for chunks on their way', () => {
    const gate = newGate();
    const w = writerOn('closing', threadThat('Atomics.wait(gate, 0, 0)', gate));
    for (let n = 0; n < 20; n++) w.hand(n);
    expect(statSync(w.path).size).toBe(0);
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
    expect(w.close()).toBe(true);
    expect(w.here).toEqual([]);
    expectWhole(w.path, 20);
  });

  test('a chunk on its way is not filled anew: the caller waits for a slow disk', () => {
    const w = writerOn('slow', threadThat('Atomics.wait(gate, 0, 0, 3)', newGate()));
    for (let n = 0; n < 150; n++) w.hand(n);
    expect(w.close()).toBe(true);
    expect(w.here).toEqual([]);
    expectWhole(w.path, 150);
  });

  test('short writes go on where they ended', () => {
    const w = writerOn('short', threadThat('args[3] = Math.min(args[3], 1000)', newGate()));
    for (let n = 0; n < 5; n++) w.hand(n);
    w.close();
    expectWhole(w.path, 5);
  });

  test('after a failure it writes nothing more, and reports the loss', () => {
    // Once: there may be room again later, but not for what is missing.
    const full = `if (count === 3) { count++; throw new Error('ENOSPC: no space left on device, write'); }`;
    const w = writerOn('failing', threadThat(full, newGate()));
    for (let n = 0; n < 50; n++) w.hand(n);
    expect(w.close()).toBe(true);
    expect(w.writer.failure?.message).toBe('ENOSPC: no space left on device, write');
    expect(w.writer.lost).toBe(47 * CHUNK);
    expectWhole(w.path, 3);
  });

  test('does not write a chunk that was taken back', () => {
    let memory: WriterMemory | undefined;
    const w = writerOn('taken', (m) => {
      memory = m;
    });
    w.hand(0);
    w.hand(1);
    const m = memory as WriterMemory;
    Atomics.store(m.state, m.order[0], ChunkState.free);
    const places: number[] = [];
    writeChunks(m, (_fd, _bytes, _offset, length, position) => {
      places.push(position);
      Atomics.store(m.handed, 0, -1);
      return length;
    });
    expect(places).toEqual([CHUNK]);
    expect(m.landed[0]).toBe(2);
  });
});

describe('a writing thread that does not come', () => {
  test('is replaced by the caller, who writes every chunk at its place', () => {
    const w = writerOn('dead', () => {}, 10);
    let handed = 0;
    while (w.hand(handed)) handed++;
    expect(w.here).toEqual(Array.from({ length: handed }, (_, n) => n));
    expect(w.hand(0)).toBe(false);
    expect(w.close()).toBe(true);
    expectWhole(w.path, handed);
  });

  test('keeps the descriptor and its chunk until it has ended, when it died while writing', () => {
    let memory: WriterMemory | undefined;
    let ended = (): void => {};
    const start: StartWriter = (m, e) => {
      memory = m;
      ended = e;
    };
    const w = writerOn('stuck', start, 10);
    for (let n = 0; n < 3; n++) w.hand(n);
    const m = memory as WriterMemory;
    Atomics.store(m.state, m.order[0], ChunkState.writing);
    expect(w.close()).toBe(false);
    expect(w.here).toEqual([0, 1, 2]);
    expectWhole(w.path, 3);
    ended();
    expect(w.isClosed()).toBe(true);
  });
});

describe('in a process of its own', () => {
  // The trace room compiled by itself: what is tested is how a process ends, not the package.
  let program: (body: string) => string;
  beforeAll(() => {
    const room = join(folder, 'room');
    mkdirSync(room);
    writeFileSync(join(room, 'package.json'), '{ "type": "module" }');
    for (const name of [
      'sinks',
      'background-writer',
      'chunk-writer',
      'errors',
      'thrown',
      'shown',
    ]) {
      const source = readFileSync(new URL(`../../trace/${name}.ts`, import.meta.url), 'utf8');
      const options = { module: ts.ModuleKind.ES2022, target: ts.ScriptTarget.ES2022 };
      const { outputText } = ts.transpileModule(source, { compilerOptions: options });
      writeFileSync(join(room, `${name}.js`), outputText);
    }
    program = (body) => {
      const path = join(room, 'program.js');
      const begin = `import { FileSink } from './sinks.js';
        const sink = new FileSink(${JSON.stringify(join(folder, 'child'))});
        let chunk = new Uint8Array(${CHUNK}).fill(7);
        for (let n = 0; n < 100; n++) { chunk = sink.exchange(chunk, ${CHUNK}); chunk.fill(7); }\n`;
      writeFileSync(path, begin + body);
      return path;
    };
  });
  const run = (command: string, ...args: string[]): string =>
    execFileSync(command, args, { encoding: 'utf8', timeout: 25_000 });

  test('a program that ends without closing its trace is not held up', () => {
    expect(run(process.execPath, program('console.log("end");'))).toBe('end\n');
    expect(run(process.execPath, program('console.log("exit"); process.exit(0);'))).toBe('exit\n');
  });

  test('a full disk is reported when the trace is closed', () => {
    const body = 'try { sink.close(); } catch (e) { console.log(e.code, sink.lost, e.message); }';
    // Files may be at most 64 blocks of 512 bytes long: two chunks.
    const limited = 'ulimit -f 64; exec "$0" "$1"';
    const said = run('sh', '-c', limited, process.execPath, program(body));
    expect(said).toMatch(/^ERR_TRACE_WRITE 1605632 .*EFBIG/);
    expect(statSync(join(folder, 'child')).size).toBe(2 * CHUNK);
  });

  test('the thread takes neither loaders nor preloads of the program with it', () => {
    const preload = join(folder, 'preload.cjs');
    const body = 'sink.close(); console.log(sink.writtenHere);';
    writeFileSync(
      preload,
      'if (!require("node:worker_threads").isMainThread) throw new Error("preloaded");',
    );
    expect(run(process.execPath, '--require', preload, program(body))).toBe('0\n');
  });

  test('inside a worker thread', () => {
    const inner = program('sink.close(); console.log(sink.writtenHere);');
    const outer = join(folder, 'outer.mjs');
    writeFileSync(
      outer,
      `import { Worker } from 'node:worker_threads'; new Worker(${JSON.stringify(inner)});`,
    );
    expect(run(process.execPath, outer)).toBe('0\n');
    expect(statSync(join(folder, 'child')).size).toBe(100 * CHUNK);
  });
});
