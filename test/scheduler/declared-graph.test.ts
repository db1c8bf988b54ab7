// Declared graphs: validation, cycles by name, hostile names, exchange as JSON, execution in an order that respects
// all dependencies.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DeclaredGraph, HeadraceError, type TaskHandle, task } from '../../index.js';
import { HOSTS, onMachine, soon } from '../support/machines.js';

const ran: string[] = [];
const names: string[] = [];
const step = task({
  name: 'step',
  flows: {},
  params: { index: 'i32' },
  body: ({ index }) => {
    ran.push(names[index]);
  },
});

function declare(
  edges: Readonly<Record<string, readonly string[]>> | Map<string, readonly string[]>,
): DeclaredGraph {
  const graph = new DeclaredGraph();
  names.length = 0;
  ran.length = 0;
  for (const [name, after] of edges instanceof Map ? edges : Object.entries(edges)) {
    graph.add(name, step, { index: names.length }, { after });
    names.push(name);
  }
  return graph;
}

async function execute(graph: DeclaredGraph): Promise<Map<string, TaskHandle>> {
  return await onMachine(HOSTS[1].options, async (runtime) => {
    let handles = new Map<string, TaskHandle>();
    await soon(
      runtime,
      runtime.run((g) => {
        handles = graph.insertInto(g);
      }),
    );
    return handles;
  });
}

function codeOf(action: () => unknown): HeadraceError {
  try {
    action();
  } catch (error) {
    if (error instanceof HeadraceError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('declared graphs', () => {
  it('run every task once, after all it names, whatever the order of declaration', async () => {
    const graph = declare({
      roof: ['walls', 'beams'],
      walls: ['floor'],
      beams: ['floor'],
      floor: [],
      paint: ['roof'],
    });
    const handles = await execute(graph);
    expect([...ran].sort()).toEqual(['beams', 'floor', 'paint', 'roof', 'walls']);
    const at = (name: string): number => ran.indexOf(name);
    expect(at('floor')).toBe(0);
    expect(at('roof')).toBeGreaterThan(Math.max(at('walls'), at('beams')));
    expect(at('paint')).toBe(4);
    expect([...handles.keys()].sort()).toEqual([...ran].sort());
  });

  it.each([
    ['of one task', { a: ['a'] }, ['a', 'a']],
    ['of two', { a: ['b'], b: ['a'] }, ['a', 'b', 'a']],
    [
      'behind a tail',
      { tail: ['c'], a: ['c'], b: ['a'], c: ['b'], free: [] },
      ['a', 'b', 'c', 'a'],
    ],
  ])('name a cycle %s', (_, edges, expected) => {
    const error = codeOf(() => declare(edges as unknown as Record<string, string[]>).validate());
    expect(error.code).toBe('ERR_CYCLE');
    const cycle = error.details.cycle as string[];
    // The same cycle, wherever it is cut open.
    expect(cycle[0]).toBe(cycle[cycle.length - 1]);
    expect([...cycle.slice(1)].sort()).toEqual([...expected.slice(1)].sort());
    expect(error.message).toBe(`the graph has a cycle: ${cycle.join(' -> ')}`);
    for (let i = 0; i + 1 < cycle.length; i++) {
      const after = (edges as unknown as Record<string, string[]>)[cycle[i + 1]];
      expect(after).toContain(cycle[i]);
    }
  });

  it('name a cycle and insert nothing', async () => {
    const graph = declare({ a: [], b: ['a', 'c'], c: ['b'] });
    await onMachine(HOSTS[0].options, async (runtime) => {
      const run = runtime.run((g) => void graph.insertInto(g));
      await expect(run).rejects.toMatchObject({ code: 'ERR_CYCLE' });
      expect(run.progress.inserted).toBe(0);
    });
  });

  it.each([
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '',
    ' ',
    '\0',
    '\u0001',
    't:a',
    '1',
    '-0',
    '🙂\u2028',
  ])('take %j for a name like any other', async (name) => {
    const edges = new Map([
      ['last', [name, 'first']],
      [name, ['first']],
      ['first', []],
    ]);
    const graph = declare(edges);
    expect(graph.validate()).toEqual(['first', name, 'last']);
    await execute(graph);
    expect(ran).toEqual(['first', name, 'last']);
    const loop = declare(
      new Map([
        [name, ['other']],
        ['other', [name]],
      ]),
    );
    const cycle = codeOf(() => loop.validate()).details.cycle as string[];
    expect(new Set(cycle)).toEqual(new Set([name, 'other']));
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)['polluted']).toBe(undefined);
  });

  it('refuse values without a meaning', () => {
    expect(codeOf(() => declare({ a: ['nobody'] }).validate())).toMatchObject({
      code: 'ERR_UNKNOWN_TASK',
      message: "task 'a' comes after 'nobody', which is not declared",
      details: { task: 'a' },
    });
    expect(codeOf(() => declare({ a: [] }).add('a', step, { index: 0 }))).toMatchObject({
      code: 'ERR_DUPLICATE_TASK',
    });
    const large = new DeclaredGraph();
    for (let i = 0; i < 1000; i++)
      large.add(`t${i}`, step, { index: 0 }, i === 0 ? {} : { after: [`t${i - 1}`] });
    expect(codeOf(() => large.add('one more', step, { index: 0 }))).toMatchObject({
      code: 'ERR_GRAPH_TOO_LARGE',
      details: { limit: 1000 },
    });
    expect(large.validate()).toHaveLength(1000);
  });

  it('validate a chain of 1000 tasks declared backwards, and find its cycle', () => {
    const chain = new DeclaredGraph();
    for (let i = 999; i >= 0; i--)
      chain.add(`t${i}`, step, { index: 0 }, i === 0 ? {} : { after: [`t${i - 1}`] });
    expect(chain.validate()[0]).toBe('t0');
    const ring = new DeclaredGraph();
    for (let i = 999; i >= 0; i--)
      ring.add(`t${i}`, step, { index: 0 }, { after: [`t${(i + 999) % 1000}`] });
    expect(codeOf(() => ring.validate()).details.cycle).toHaveLength(1001);
  });

  it('are exchanged as plain JSON', () => {
    const graph = declare({ b: ['a'], a: [] });
    const json = JSON.parse(JSON.stringify(graph)) as ReturnType<DeclaredGraph['toJSON']>;
    expect(json.nodes.map((n) => n.value).sort()).toEqual(['a', 'b']);
    expect(json.edges).toHaveLength(1);
    const label = new Map(json.nodes.map((n) => [n.v, n.value]));
    expect([label.get(json.edges[0].v), label.get(json.edges[0].w)]).toEqual(['a', 'b']);
    expect(graph.tasks).toEqual([
      { name: 'b', after: ['a'] },
      { name: 'a', after: [] },
    ]);
  });

  it('are acyclic exactly if a depth-first search finds no cycle', () => {
    const edges = fc.array(fc.tuple(fc.nat({ max: 11 }), fc.nat({ max: 11 })), { maxLength: 24 });
    fc.assert(
      fc.property(edges, (list) => {
        const after = new Map<string, string[]>(
          Array.from({ length: 12 }, (_, i) => [`t${i}`, []]),
        );
        for (const [from, to] of list) (after.get(`t${to}`) as string[]).push(`t${from}`);
        const state = new Map<string, number>();
        const cyclic = (name: string): boolean => {
          if (state.get(name) === 1) return true;
          if (state.get(name) === 2) return false;
          state.set(name, 1);
          const found = (after.get(name) as string[]).some(cyclic);
          state.set(name, 2);
          return found;
        };
        const expected = [...after.keys()].some(cyclic);
        const graph = declare(after);
        if (expected) expect(codeOf(() => graph.validate()).code).toBe('ERR_CYCLE');
        else {
          const order = graph.validate();
          expect([...order].sort()).toEqual([...after.keys()].sort());
          for (const [name, before] of after) {
            for (const b of before) expect(order.indexOf(b)).toBeLessThan(order.indexOf(name));
          }
        }
      }),
    );
  });
});
