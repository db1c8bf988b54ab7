// The hazards whose production code belongs to the network: the rule of the runtime against a model of the hardware,
// with and without the rule. For H3, H4, H5, H12 and H15 inside one rank, properties.test.ts tests with the rules, and
// mutations.test.ts, whose tests are named by hazard, without them.
import { describe, expect, test } from 'vitest';
import {
  ExportedMemory,
  ImportCache,
  Semaphore,
} from '../../devices/simulated/network/exported-memory.js';
import {
  NetworkMemory,
  requiredScope,
  type WritesOrdering,
} from '../../devices/simulated/network/memory.js';
import {
  type Block,
  MessageLayer,
  Receives,
  SpinningDevice,
} from '../../devices/simulated/network/message-layer.js';

function received(ordering: WritesOrdering, twoPaths = false): NetworkMemory {
  const memory = new NetworkMemory({ ordering, twoPaths });
  memory.receive(0, 1);
  memory.complete(0);
  return memory;
}

describe('H1: writes of the network', () => {
  test.each(['none', 'owner', 'allDevices'] as const)(
    'ordering %s: the required flush makes them visible',
    (ordering) => {
      for (const consumers of ['ownerOnly', 'others'] as const) {
        const memory = received(ordering);
        const scope = requiredScope(consumers, false);
        if (scope !== undefined) memory.flush(scope);
        memory.read(0, consumers === 'others' ? 'other' : 'owner', true);
        expect(memory.violations).toEqual([]);
      }
    },
  );

  test('a peer reads stale data without the flush to all devices, also when the owner is ordered', () => {
    const memory = received('owner');
    expect(memory.read(0, 'other', true)).toBe(0);
    memory.flush('owner');
    expect(memory.read(0, 'other', true)).toBe(0);
    expect(memory.violations[0]).toContain('flush to all devices');
    memory.flush('allDevices');
    expect(memory.read(0, 'other', true)).toBe(1);
  });

  test('two paths: only the forced fence helps, for every value of the attribute', () => {
    const memory = received('allDevices', true);
    memory.flush('allDevices');
    expect(memory.read(0, 'owner', true)).toBe(0);
    memory.flush('allDevices', true);
    expect(memory.read(0, 'owner', true)).toBe(1);
  });

  test('one flush serves a whole batch of completions', () => {
    const memory = new NetworkMemory({ ordering: 'none' });
    for (let block = 0; block < 10; block++) {
      memory.receive(block, 1);
      memory.complete(block);
    }
    memory.flush('allDevices');
    for (let block = 0; block < 10; block++) expect(memory.read(block, 'other', true)).toBe(1);
    expect(memory.flushes).toBe(1);
  });
});

test('H2: a consumer submitted before completion sees old data, and is named', () => {
  const memory = received('owner');
  expect(memory.read(0, 'owner', false)).toBe(0);
  expect(memory.violations[0]).toContain('submitted before the data were ready');
});

describe('H5: the source of a send', () => {
  /** Sends versions 1..20 of one block while a writer goes on; `waits`: the writer waits for the send. */
  function sendAll(seed: number, waits: boolean): number {
    const layer = new MessageLayer(seed);
    const source: Block = { version: 0 };
    let wrong = 0;
    for (let version = 1; version <= 20; version++) {
      source.version = version;
      const destination: Block = { version: 0 };
      layer.send(source, destination);
      if (!waits) source.version = -1; // a kill write right after "release"
      while (layer.open > 0) layer.progress();
      if (destination.version !== version) wrong++;
    }
    return wrong;
  }

  test('is right when the writer waits for the request, wrong when it does not', () => {
    for (let seed = 1; seed <= 100; seed++) {
      expect(sendAll(seed, true)).toBe(0);
      expect(sendAll(seed, false)).toBe(20);
    }
  });
});

describe('H6, H17: handles', () => {
  function reuse(
    checksGeneration: boolean,
    waitsForClose: boolean,
  ): { memory: ExportedMemory; wrong: number } {
    const memory = new ExportedMemory();
    const cache = new ImportCache(memory, checksGeneration);
    let wrong = 0;
    for (let value = 1; value <= 50; value++) {
      const handle = memory.allocate(value);
      if (memory.readThrough(cache.map(handle)) !== value) wrong++;
      memory.write(handle, value + 1000);
      if (memory.readThrough(cache.map(handle)) !== value + 1000) wrong++;
      if (waitsForClose) cache.release(handle);
      memory.free(handle);
    }
    return { memory, wrong };
  }

  test('a recycled address is opened again, and every read through a cached mapping is fresh', () => {
    const { memory, wrong } = reuse(true, true);
    expect(wrong).toBe(0);
    expect(memory.violations).toEqual([]);
    expect(memory.opens).toBe(50);
  });

  test('without the generation the cache reads freed memory', () => {
    expect(reuse(false, false).wrong).toBeGreaterThan(0);
  });

  test('without the acknowledgement the exporter frees under an open mapping', () => {
    expect(reuse(true, false).memory.violations[0]).toContain('is freed while');
  });
});

test('H7: a wait for at least a count survives a peer that laps it; a wait for equality does not', () => {
  const semaphore = new Semaphore();
  for (const value of [1, 2, 3, 7]) semaphore.signal(value);
  expect(semaphore.isOver(5)).toBe(true);
  expect(semaphore.isOver(5, true)).toBe(false);
  expect(() => semaphore.signal(7)).toThrow('does not grow');
});

test('H8: calls that wait for kernels are named while a kernel spins; no call of the hot path is among them', () => {
  const device = new SpinningDevice();
  device.spinning = true;
  for (const name of ['launch', 'copyAsync', 'eventRecord', 'streamWaitEvent', 'eventQuery'])
    device.call(name);
  expect(device.deadlocks).toEqual([]);
  for (const name of ['memAlloc', 'memFree', 'hostPin', 'moduleLoad', 'nullStream', 'syncCopy'])
    device.call(name);
  expect(device.deadlocks).toHaveLength(6);
});

test('H12: a cancelled receive gives its buffer back only if it really was cancelled', () => {
  let matched = 0;
  for (let seed = 1; seed <= 200; seed++) {
    const layer = new MessageLayer(seed);
    const destination: Block = { version: 0 };
    const id = layer.send({ version: 1 }, destination);
    if (layer.cancel(id)) {
      expect(layer.progress()).toBe(-1);
      expect(destination.version).toBe(0);
    } else {
      matched++;
      expect(layer.progress()).toBe(id);
      expect(destination.version).toBe(1);
    }
  }
  expect(matched).toBeGreaterThan(0);
});

test('H18: two devices that want the same remote datum cause one receive', () => {
  const receives = new Receives();
  expect([receives.want(3, 1), receives.want(3, 1), receives.want(3, 2)]).toEqual([
    'posted',
    'attached',
    'posted',
  ]);
  expect(receives.posted).toBe(2);
});
