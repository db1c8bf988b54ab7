// The parts of task classes, flows, CUDA kernels, matrices and declared graphs, as places for values that may be wrong.
import {
  commute,
  DeclaredGraph,
  list,
  read,
  readWrite,
  reduce,
  TiledMatrix,
  task,
  write,
} from '../../index.js';
import { as, closing, each, type Place, places } from './hostile-place.js';
import { look, spin } from './tasks.js';

const CUDA = ['source', 'file', 'function', 'arguments', 'grid', 'block', 'sharedBytes', 'options'];
const cuda = {
  source: '__global__ void f(double* to) {}',
  function: 'f',
  arguments: ['to'],
  grid: 1,
  block: 1,
};

const classes: Place[] = [
  ...places('task', {
    'task class': (_, value) => task(as(value)),
    flows: [/flow/, (_, value) => task(as({ name: 'x', flows: value, kernel: 'empty' }))],
    params: [
      /param/,
      (_, value) => task(as({ name: 'x', flows: {}, params: value, kernel: 'empty' })),
    ],
    cuda: [/cuda|CUDA/, (_, value) => task(as({ name: 'x', flows: {}, cuda: value }))],
    ...each(
      ['name', 'body', 'module', 'kernel', 'gpuKernel', 'explain'],
      (name) => (_, value) => task(as({ name: 'x', flows: {}, body: () => {}, [name]: value })),
    ),
    ...each(
      ['failureCode', 'fetch'],
      (name) => (_, value) => task(as({ name: 'x', flows: {}, kernel: 'empty', [name]: value })),
    ),
    "'to'": (_, value) => task(as({ name: 'x', flows: { to: value }, kernel: 'empty' })),
    "'by'": (_, value) =>
      task(as({ name: 'x', flows: {}, params: { by: value }, kernel: 'empty' })),
    ...each(
      ['element', 'mode', 'list', 'fetch'],
      (part) => (_, value) =>
        task(as({ name: 'x', flows: { to: { ...read('f64'), [part]: value } }, kernel: 'empty' })),
    ),
  }),
  ...places('cuda', {
    ...each(CUDA, (name) => [
      new RegExp(`${name}|no parameter`),
      (_, value) => {
        const { source: _source, ...rest } = cuda;
        const given = name === 'file' ? rest : cuda;
        task(as({ name: 'x', flows: { to: write('f64') }, cuda: { ...given, [name]: value } }));
      },
    ]),
    'arguments[0]': [
      /arguments\[0\]|no parameter/,
      (_, value) =>
        task(as({ name: 'x', flows: { to: write('f64') }, cuda: { ...cuda, arguments: [value] } })),
    ],
    'argument type': (_, value) =>
      task(
        as({
          name: 'x',
          flows: { to: write('f64') },
          params: { n: 'f64' },
          cuda: { ...cuda, arguments: ['to', { parameter: 'n', as: value }] },
        }),
      ),
    parameter: (_, value) =>
      task(
        as({
          name: 'x',
          flows: { to: write('f64') },
          params: { n: 'f64' },
          cuda: { ...cuda, arguments: ['to', { parameter: value, as: 'f64' }] },
        }),
      ),
    'grid[0]': [
      /grid\[0\]|no parameter/,
      (_, value) =>
        task(as({ name: 'x', flows: { to: write('f64') }, cuda: { ...cuda, grid: [value] } })),
    ],
    per: [
      /grid\[0\]/,
      (_, value) =>
        task(
          as({
            name: 'x',
            flows: { to: write('f64') },
            params: { n: 'i32' },
            cuda: { ...cuda, grid: [{ parameter: 'n', per: value }] },
          }),
        ),
    ],
    'options[0]': (_, value) =>
      task(as({ name: 'x', flows: { to: write('f64') }, cuda: { ...cuda, options: [value] } })),
  }),
  ...places('flows', {
    'read(': (_, value) => read(as(value)),
    'write(': (_, value) => write(as(value)),
    'readWrite(': (_, value) => readWrite(as(value)),
    'commute(': (_, value) => commute(as(value)),
    'reduce(': (_, value) => reduce(as(value), 'sum'),
    'list(': [/list/, (_, value) => list(as(value))],
    'options of a flow': (_, value) => [read('f64', as(value)), reduce('f64', 'sum', as(value))],
    fetch: (_, value) => read('f64', as({ fetch: value })),
    partials: (_, value) => reduce('f64', 'sum', as({ partials: value })),
    deterministic: (_, value) => reduce('f64', 'sum', as({ deterministic: value })),
    operator: (_, value) => reduce('f64', as(value)),
    identity: (_, value) => reduce('f64', as({ identity: value, combine: look })),
    combine: (_, value) =>
      reduce(
        'f64',
        as({
          identity: task({ name: 'i', flows: { a: write('f64') }, kernel: 'empty' }),
          combine: value,
        }),
      ),
  }),
];

const MATRIX = ['rows', 'columns', 'tile', 'grid', 'rankGrid', 'lower', 'name'];
const GRID = ['rows', 'columns', 'originRow', 'originColumn', 'blockRows', 'blockColumns'];
const matrices: Place[] = [
  ...places('TiledMatrix', {
    runtime: closing((_, value) => new TiledMatrix(as(value), 'f64', { rows: 2, tile: 2 })),
    elements: closing(
      ({ runtime }, value) => new TiledMatrix(runtime, as(value), { rows: 2, tile: 2 }),
    ),
    'options of a matrix': [
      /a matrix needs|options of a matrix/,
      closing(({ runtime }, value) => new TiledMatrix(runtime, 'f64', as(value))),
    ],
    // What a function of the program throws is what the constructor throws.
    values: ({ runtime }, value) => {
      if (typeof value === 'function') return;
      new TiledMatrix(runtime, 'f64', { rows: 2, tile: 2 }, as(value)).close();
    },
    ...each(MATRIX, (name) => [
      new RegExp(`${name}|tiles`),
      closing(
        ({ runtime }, value) =>
          new TiledMatrix(runtime, 'f64', as({ rows: 2, tile: 2, [name]: value })),
      ),
    ]),
  }),
  ...places(
    'grid of a matrix',
    each(GRID, (name) => [
      new RegExp(`${name}|devices`),
      closing(
        ({ runtime }, value) =>
          new TiledMatrix(runtime, 'f64', {
            rows: 2,
            tile: 2,
            grid: as({ rows: 1, columns: 1, [name]: value }),
          }),
      ),
    ]),
  ),
  ...places('matrix', {
    tile: ({ runtime }, value) => {
      const matrix = new TiledMatrix(runtime, 'f64', { rows: 2, tile: 2 });
      try {
        matrix.at(as(value), 0);
        matrix.at(0, as(value));
      } finally {
        matrix.close();
      }
    },
  }),
];

const declared: Place[] = places('DeclaredGraph', {
  task: (_, value) => new DeclaredGraph().add(as(value), spin, { microseconds: 1 }).validate(),
  'options of': (_, value) => new DeclaredGraph().add('x', spin, { microseconds: 1 }, as(value)),
  after: (_, value) =>
    new DeclaredGraph().add('x', spin, { microseconds: 1 }, as({ after: value })),
});

export const DECLARATION_PLACES: readonly Place[] = [...classes, ...matrices, ...declared];
