// Following a run while it runs: events, channels of node:diagnostics_channel, and OpenTelemetry spans.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, describe, expect, it } from 'vitest';
import type { RunStatus } from '../../index.js';
import { nothingLeft, onMachine, soon } from '../support/machines.js';
import { add, fail, script } from '../support/tasks.js';

const machine = { workers: 1, gpus: 1, gpuMemory: '1MiB', checked: true };

describe('run.status and the progress event', () => {
  it('report progress, bytes, memory per device and the waits of tasks', async () => {
    await onMachine(machine, async (runtime) => {
      const a = runtime.data(new Float64Array(64), { name: 'a', device: 0 });
      const b = runtime.data(new Float64Array(64), { name: 'b', device: 0 });
      let held: RunStatus | undefined;
      const seen: RunStatus[] = [];
      const run = runtime.run((graph) => {
        graph.insert(add, { to: a, from: b, count: 64 }, { device: 0 });
        graph.insert(
          script('look', () => {
            held = run.status();
          }),
          { of: a },
        );
        graph.insert(add, { to: b, from: a, count: 64 }, { device: 0 });
      });
      run.events.on('progress', (status) => void seen.push(status));
      await soon(runtime, run);
      expect(held).toMatchObject({
        inserted: 3,
        inserting: false,
        waiting: { body: 1, predecessors: 1 },
      });
      expect(held?.bytes.h2d).toBe(2 * 512);
      expect(held?.bytes.d2h).toBe(512);
      const [host, gpu] = held?.devices ?? [];
      expect(host).toMatchObject({ name: 'host', kind: 'host' });
      expect(gpu).toMatchObject({ kind: 'emulated', capacity: 2 ** 20 });
      expect(gpu.used).toBe(2 * 512);
      const last = seen.at(-1);
      expect(last).toMatchObject({ inserted: 3, completed: 3, waiting: {} });
      expect(last?.seconds).toBeGreaterThan(0);
      await nothingLeft(runtime, [a, b]);
    });
  });

  it('rates of a young run are of all of it', async () => {
    await onMachine(machine, async (runtime) => {
      const a = runtime.data(new Float64Array(64));
      const b = runtime.data(new Float64Array(64));
      const run = runtime.run((graph) => {
        for (let i = 0; i < 10; i++)
          graph.insert(add, { to: a, from: b, count: 64 }, { device: 0 });
      });
      await soon(runtime, run);
      const { seconds, tasksPerSecond, bytesPerSecond } = run.status();
      expect(tasksPerSecond * seconds).toBeCloseTo(10, 6);
      expect(bytesPerSecond * seconds).toBeCloseTo(2 * 512, 3);
      await nothingLeft(runtime, [a, b]);
    });
  });
});

describe('channels', () => {
  it('publish the life of every run, and nothing after the subscriber has left', async () => {
    const messages: [string, Record<string, unknown>][] = [];
    const listen = (message: unknown, name: string | symbol): void => {
      messages.push([String(name), message as Record<string, unknown>]);
    };
    const names = ['start', 'progress', 'end', 'error'].map((what) => `headrace:run:${what}`);
    for (const name of names) subscribe(name, listen);
    try {
      await onMachine(machine, async (runtime) => {
        const a = runtime.data(new Float64Array(8));
        const b = runtime.data(new Float64Array(8));
        const good = runtime.run((graph) => void graph.insert(add, { to: a, from: b, count: 8 }), {
          name: 'good',
        });
        const report = await soon(runtime, good);
        expect(messages.map(([name]) => name)).toEqual([
          'headrace:run:start',
          ...messages.slice(1, -1).map(() => 'headrace:run:progress'),
          'headrace:run:end',
        ]);
        expect(messages.length).toBeGreaterThan(2);
        // Handles are compared as such: they reach everything there is.
        for (const [, message] of messages) {
          expect(message['run'] === good).toBe(true);
          expect(message['name']).toBe('good');
        }
        expect(messages.at(-2)?.[1]['status']).toMatchObject({ completed: 1, inserted: 1 });
        expect(messages.at(-1)?.[1]['report']).toBe(report);

        messages.length = 0;
        const bad = runtime.run((graph) => void graph.insert(fail, { of: a, code: 3 }));
        const error = await soon(
          runtime,
          bad.then(
            () => undefined,
            (reason: unknown) => reason,
          ),
        );
        const [channel, message] = messages.at(-1) as [string, Record<string, unknown>];
        expect(channel).toBe('headrace:run:error');
        expect(message['run'] === bad && message['error'] === error).toBe(true);
        expect(message['name']).toBe('run');
        for (const name of names) unsubscribe(name, listen);
        messages.length = 0;
        const c = runtime.data(new Float64Array(8));
        await soon(
          runtime,
          runtime.run((graph) => void graph.insert(add, { to: b, from: c, count: 8 })),
        );
        expect(messages).toEqual([]);
        c.close();
        await nothingLeft(runtime, [a, b]);
      });
    } finally {
      for (const name of names) unsubscribe(name, listen);
    }
  });
});

interface Span {
  end(): void;
}

/** The functions of `@opentelemetry/api` that a program uses to set it up and to look. */
interface OpenTelemetry {
  readonly trace: {
    setGlobalTracerProvider(provider: unknown): boolean;
    getSpan(context: unknown): Span | undefined;
    disable(): void;
  };
  readonly context: {
    setGlobalContextManager(manager: unknown): boolean;
    active(): unknown;
    disable(): void;
  };
}

// By name, like the runtime: the package is a peer that need not be there when this file is compiled.
const name: string = '@opentelemetry/api';
const { trace, context } = (await import(name)) as OpenTelemetry;

/** What a tracer provider was asked for. */
interface Seen {
  readonly name: string;
  readonly attributes: Record<string, unknown>;
  status: unknown;
  readonly exceptions: unknown[];
  ended: number;
}

/** A provider that keeps what it is told. */
function keepingProvider(seen: Seen[]) {
  const startSpan = (name: string, options: { attributes?: Record<string, unknown> }): Span => {
    const kept: Seen = { name, attributes: {}, status: undefined, exceptions: [], ended: 0 };
    Object.assign(kept.attributes, options.attributes);
    seen.push(kept);
    return {
      setAttributes: (more: Record<string, unknown>) => Object.assign(kept.attributes, more),
      setStatus: (status: unknown) => {
        kept.status = status;
      },
      recordException: (error: unknown) => kept.exceptions.push(error),
      end: () => kept.ended++,
    } as unknown as Span;
  };
  return { getTracer: () => ({ startSpan }) };
}

describe('OpenTelemetry', () => {
  afterEach(() => {
    trace.disable();
    context.disable();
  });

  it('has one span per run, with the figures of the report or the failure', async () => {
    const seen: Seen[] = [];
    trace.setGlobalTracerProvider(keepingProvider(seen));
    await onMachine(machine, async (runtime) => {
      const a = runtime.data(new Float64Array(64));
      const b = runtime.data(new Float64Array(64));
      await soon(
        runtime,
        runtime.run(
          (graph) => void graph.insert(add, { to: a, from: b, count: 64 }, { device: 0 }),
          {
            name: 'good',
          },
        ),
      );
      expect(seen).toEqual([
        {
          name: 'headrace run good',
          attributes: expect.objectContaining({
            'headrace.run': 'good',
            'headrace.rank': 0,
            'headrace.ranks': 1,
            'headrace.tasks': 1,
            'headrace.bytes.h2d': 2 * 512,
          }),
          status: { code: 1 },
          exceptions: [],
          ended: 1,
        },
      ]);
      const run = runtime.run((graph) => void graph.insert(fail, { of: a, code: 3 }));
      await expect(soon(runtime, run)).rejects.toThrow();
      expect(seen).toHaveLength(2);
      expect(seen[1]).toMatchObject({
        name: 'headrace run run',
        attributes: { 'headrace.error': 'ERR_TASK_FAILED' },
        status: { code: 2 },
        ended: 1,
      });
      expect(seen[1].exceptions).toHaveLength(1);
      await nothingLeft(runtime, [a, b]);
    });
  });

  it('makes spans of the program children of the span of its run', async () => {
    const seen: Seen[] = [];
    const active: unknown[] = [];
    const root = context.active();
    trace.setGlobalTracerProvider(keepingProvider(seen));
    context.setGlobalContextManager({
      active: () => active.at(-1) ?? root,
      with: (inner: unknown, call: () => unknown) => {
        active.push(inner);
        try {
          return call();
        } finally {
          active.pop();
        }
      },
      enable: () => {},
      disable: () => {},
    });
    await onMachine(machine, async (runtime) => {
      let within: Span | undefined;
      await soon(
        runtime,
        runtime.run(() => {
          within = trace.getSpan(context.active());
        }),
      );
      expect(seen).toHaveLength(1);
      expect(within).toBeDefined();
      expect(trace.getSpan(context.active())).toBeUndefined();
    });
  });
});
