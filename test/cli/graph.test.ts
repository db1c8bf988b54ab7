// `headrace graph verify` and `headrace graph draw` as processes: the graph and the arguments that a file exports, the exit
// codes, the formats, and the errors of files that are wrong.
import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { json } from '@dagrejs/graphlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../cli/commands.js';
import { testContext } from './context.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const main = path.join(root, 'dist', 'cli', 'main.js');
let folder = '';
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'headrace-graphs-'));
  mkdirSync(path.join(folder, 'node_modules'));
  symlinkSync(root, path.join(folder, 'node_modules', 'headrace'));
  for (const [name, text] of Object.entries(files)) write(name, text);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, text: string): void => writeFileSync(path.join(folder, name), text);
const read = (name: string): string => readFileSync(path.join(folder, name), 'utf8');

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Starts `headrace graph` in the folder. */
function start(
  words: string,
  env: Readonly<Record<string, string>>,
): { child: ChildProcess; ended: Promise<Ended> } {
  const { NODE_OPTIONS: _, ...plain } = process.env;
  const argv = [main, 'graph', ...words.split(' ')];
  const child = spawn(process.execPath, argv, { cwd: folder, env: { ...plain, ...env } });
  let [out, err] = ['', ''];
  child.stdout.on('data', (text) => (out += text));
  child.stderr.on('data', (text) => (err += text));
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code) => resolve({ code, out, err })),
  );
  return { child, ended };
}

const graph = (words: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  start(words, env).ended;

/** A chain of tasks; `last` is the condition of its end. */
const chain = (last: string): string => `
  import { parameterised, range, readWrite, task } from 'headrace';
  const work = task({ name: 'work', flows: { x: readWrite('f64') }, body: () => {} });
  export const chain = parameterised('a chain', (graph, { x, n }) => {
    const { step } = graph.declare({ step: { runs: work, indices: ['i'] } });
    graph.define(step, {
      ranges: { i: () => range(0, n) },
      flows: { x: {
        from: ({ i }) => (i === 0 ? x : step.x({ i: i - 1 })),
        to: ({ i }) => (${last} ? x : step.x({ i: i + 1 })),
      } },
    });
  });`;
const example = `
  export const example = async (runtime) => ({ x: runtime.data(Float64Array.of(0)), n: 3 });`;
const plain = `
  import { parameterised } from 'headrace';
  const none = parameterised('none', () => {});`;

const files: Readonly<Record<string, string>> = {
  'good.mjs': chain('i === n - 1') + example,
  'wrong.mjs': chain('i === n') + example,
  'early.mjs': chain('i > 0') + example,
  'bare.mjs': chain('i === n'),
  'two.mjs': `${chain('i === n - 1')}
    export const other = parameterised('other', (graph, { x, n }) => { if (n !== 7) throw new Error('n is ' + n); });
    export { other as second };
    export const small = { n: 7 };
    export const same = parameterised('twin', () => {});
    export const twin = parameterised('same', () => {});`,
  'none.mjs': 'export const example = 1;',
  'alone.mjs': `${plain} export default none; export { none };`,
  'open.mjs': `${plain} export { none }; setInterval(() => {}, 1e6);
    export const example = (runtime) => { console.error('workers ' + runtime.options.workers); };`,
  'throws.mjs': `${plain} export { none }; throw new TypeError('mine');`,
  'syntax.mjs': 'export const = 1;',
  'bad-example.mjs': `${plain} export { none }; export function example() { throw new Error('my example'); }`,
  'stuck.mjs': `console.log('on'); for (;;);`,
  'typed.ts': `import { parameterised, type ParameterisedGraph } from 'headrace';
    export const typed: ParameterisedGraph = parameterised('typed', () => {});`,
  'undefined-class.mjs': `import { parameterised, task, read } from 'headrace';
    const look = task({ name: 'look', flows: { x: read('f64') }, body: () => {} });
    export const open = parameterised('open', (graph) => { graph.declare({ c: { runs: look, indices: [] } }); });`,
};

describe('verify', () => {
  it('prints that there is no problem', async () => {
    expect(await graph('verify good.mjs')).toEqual({
      ...{ code: 0, out: 'a chain: 3 tasks, no problems\n', err: '' },
    });
  });

  it('prints the problems, and exits with 1', async () => {
    expect(await graph('verify wrong.mjs')).toEqual({
      code: 1,
      out: `a chain: 3 tasks, 1 problem
  range  'x' of step(i=2) goes to step(i=3), which is outside of its ranges\n`,
      err: '',
    });
    const { code, out } = await graph('verify --json wrong.mjs');
    expect(code).toBe(1);
    expect(JSON.parse(out)).toEqual({
      ...{ ok: false, graph: 'a chain', tasks: 3 },
      problems: [{ kind: 'range', text: expect.stringContaining('step(i=3)') }],
    });
  });

  it('takes graphs and arguments by the names of their exports, or the name of the graph', async () => {
    const fine = { code: 0, out: 'other: 0 tasks, no problems\n', err: '' };
    expect(await graph('verify two.mjs --graph second --arguments small')).toEqual(fine);
    // The name of an export is looked for first.
    expect((await graph('verify two.mjs --graph same')).out).toMatch(/^twin: /);
    expect((await graph('verify alone.mjs')).out).toBe('none: 0 tasks, no problems\n');
    expect((await graph('verify alone.mjs --graph default')).code).toBe(0);
    expect((await graph('verify good.mjs --arguments example')).code).toBe(0);
  });

  it('gives `example` a runtime, and ends although the file has left a timer', async () => {
    const { code, out, err } = await graph('verify open.mjs');
    expect([code, out, err]).toEqual([0, 'none: 0 tasks, no problems\n', 'workers 1\n']);
  });

  it('loads TypeScript where this Node does, and else says what does', async () => {
    const { typescript } = process.features as { readonly typescript?: unknown };
    const { code, out, err } = await graph('verify typed.ts');
    if (typescript !== undefined && typescript !== false)
      expect([code, out]).toEqual([0, 'typed: 0 tasks, no problems\n']);
    else expect([code, err]).toEqual([1, expect.stringContaining('[ERR_TYPESCRIPT]')]);
  });

  it('passes a signal on to a file that does not come to its end', async () => {
    const { child, ended } = start('verify stuck.mjs', {});
    child.stdout?.once('data', () => child.kill('SIGTERM'));
    // The output closes when the process that loads the file has ended.
    expect(await ended).toEqual({ code: 143, out: 'on\n', err: '' });
  });

  it('loads the files of examples', async () => {
    const file = path.join(root, 'dist', 'examples', 'edit-distance.js');
    expect(await graph(`verify ${file}`)).toEqual({
      ...{ code: 0, out: 'edit distance: 6 tasks, no problems\n', err: '' },
    });
  });
});

describe('a file that is wrong', () => {
  it('functions of a graph that throw: the stack leads into the file', async () => {
    const { code, out } = await graph('verify --json two.mjs --graph other --arguments chain');
    expect(code).toBe(1);
    const { error } = JSON.parse(out);
    expect(error.code).toBe('ERR_GRAPH_CLASS');
    expect(error.message).toMatch(
      /graph 'other' cannot be built from its arguments: n is .*:\nError: n is [\s\S]*two\.mjs/,
    );
  });

  it.each([
    ['none.mjs', 'none.mjs exports no parameterised graph'],
    [
      'two.mjs',
      'two.mjs exports several graphs: chain, other, same, twin (choose one with --graph',
    ],
    ['two.mjs --graph cha', "two.mjs exports no graph 'cha' (it exports chain, other, same, twin)"],
    ['bare.mjs', "graph 'a chain' takes arguments, and bare.mjs exports no function 'example'"],
    ['good.mjs --arguments small', "good.mjs exports no 'small'"],
    ['throws.mjs', /throws\.mjs cannot be loaded \(.* run throws\.mjs .*\):\nTypeError: mine\n/],
    ['syntax.mjs', /syntax\.mjs cannot be loaded \(.*\):\nSyntaxError: /],
    [
      'bad-example.mjs',
      "'example' of bad-example.mjs throws:\nError: my example\n    at example (",
    ],
  ])('%s: ERR_GRAPH_FILE', async (words, message) => {
    const { code, out, err } = await graph(`verify --json ${words}`);
    expect(code).toBe(1);
    const { ok, error } = JSON.parse(out);
    expect([ok, error.code]).toEqual([false, 'ERR_GRAPH_FILE']);
    expect(error.message).toMatch(message);
    expect(err).toContain('[ERR_GRAPH_FILE]');
  });

  it('keeps the errors of Headrace', async () => {
    const { code, err } = await graph('verify undefined-class.mjs');
    expect(code).toBe(1);
    expect(err).toContain(
      "class 'c' of graph 'open' is declared and not defined [ERR_GRAPH_CLASS]",
    );
  });
});

describe('draw', () => {
  const classes = `digraph headrace {
  rankdir=TB;
  node [shape=box, style=filled, fontname="sans-serif"];
  "step(i)" [label="step(i)\\nruns work\\n3 tasks", fillcolor="#a8d4f0"];
  "step(i)" -> "step(i)" [label="x"];
}
`;

  it('writes the classes as DOT', async () => {
    const { code, out, err } = await graph('draw good.mjs -o - --format dot');
    expect([code, out, err]).toEqual([0, classes, '']);
    const file = await graph('draw -o good.dot good.mjs');
    expect([file.code, file.out]).toEqual([0, '']);
    expect(file.err).toBe('good.dot: a chain, 1 class, 1 flow\n');
    expect(read('good.dot')).toBe(classes);
  });

  it('writes the tasks as JSON that graphlib reads', async () => {
    const { code, err } = await graph('draw good.mjs --tasks --output tasks.json');
    expect([code, err]).toEqual([0, 'tasks.json: a chain, 3 tasks, 2 flows\n']);
    const drawn = json.read(JSON.parse(read('tasks.json')));
    expect(drawn.nodes()).toEqual(['step(i=0)', 'step(i=1)', 'step(i=2)']);
    expect(drawn.successors('step(i=1)')).toEqual(['step(i=2)']);
    expect(drawn.graph()).toBe('a chain');
  });

  it('draws an edge that lacks an end in red', async () => {
    const { code, out, err } = await graph('draw early.mjs --tasks -o - --format dot');
    expect(code).toBe(0);
    const edges = out.match(/^.* -> .*$/gm);
    expect(edges).toEqual([
      '  "step(i=0)" -> "step(i=1)" [label="x"];',
      '  "step(i=1)" -> "step(i=2)" [label="x", penwidth=3, color="#c00000"];',
    ]);
    expect(err).toMatch(/^headrace: note: 1 flow in red: .* graph verify says which\n$/);
  });

  it('gives DOT to the program dot for SVG, beside the file unless it is told where', async () => {
    const bin = path.join(folder, 'bin');
    mkdirSync(bin);
    const dot = path.join(bin, 'dot');
    writeFileSync(dot, '#!/bin/sh\n[ "$*" = -Tsvg ] || exit 9\necho "<svg>"\ncat\necho "</svg>"\n');
    chmodSync(dot, 0o755);
    const env = { PATH: `${bin}:${process.env['PATH']}` };
    const { code, err } = await graph('draw good.mjs', env);
    expect([code, err]).toEqual([0, 'good.svg: a chain, 1 class, 1 flow\n']);
    expect(read('good.svg')).toBe(`<svg>\n${classes}</svg>\n`);

    writeFileSync(dot, '#!/bin/sh\nexec <&-\necho "no memory" >&2\nexit 3\n');
    const failed = await graph('draw good.mjs -o failed.svg', env);
    expect(failed.code).toBe(1);
    expect(failed.err).toBe('headrace: dot -Tsvg failed (3):\nno memory [ERR_GRAPHVIZ]\n');
    expect(existsSync(path.join(folder, 'failed.svg'))).toBe(false);
  });

  it('names what gets Graphviz where it is missing', async () => {
    const { code, err } = await graph('draw good.mjs -o -', { PATH: folder });
    expect(code).toBe(1);
    expect(err).toMatch(/dot is not on PATH \(.*graphviz; or --format dot\) \[ERR_GRAPHVIZ\]\n$/);
  });

  it('says when it cannot write', async () => {
    const { code, err } = await graph('draw good.mjs -o no/folder/x.dot');
    expect(code).toBe(1);
    expect(err).toContain('cannot write no/folder/x.dot');
    expect(err).toContain('[ERR_TRACE_WRITE]');
  });
});

describe('the command line', () => {
  it.each([
    [[], 'a graph subcommand is needed'],
    [['vrify'], 'unknown graph subcommand "vrify", did you mean verify?'],
    [['verify'], 'a file is needed'],
    [['draw', '--tasks'], 'a file is needed'],
    [['verify', 'nothing.mjs'], 'there is no program nothing.mjs'],
    [['draw', 'a.mjs', '--jsn'], 'unknown option --jsn'],
    [['draw', 'a.mjs', 'b.mjs'], 'unexpected argument "b.mjs"'],
    [['draw', 'a.mjs', '--format', 'png'], '--format expects svg or dot or graphlib, found "png"'],
    [['draw', 'a.mjs', '-o'], '--output needs a value'],
  ])('exit code 2 with usage for %j', async (argv, message) => {
    const context = testContext();
    expect(await runCli(['graph', ...argv], context)).toBe(2);
    expect(context.err()).toContain(message);
    expect(context.err()).toContain('\nusage: headrace graph');
    expect(context.out()).toBe('');
  });

  it.each([['--help'], ['verify --help'], ['draw --help'], ['draw x.mjs --help']])(
    'shows options after %s',
    async (words) => {
      const context = testContext();
      expect(await runCli(['graph', ...words.split(' ')], context)).toBe(0);
      expect(context.out()).toMatch(/^usage: headrace graph/);
      expect(context.err()).toBe('');
    },
  );
});
