// The files of a project that `headrace new` makes. test/cli/new.test.ts installs, runs, tests and traces it.

/** Not as one text: the release looks for modules of the package that are named so. */
const SUMS: string = ['.', 'sums.js'].join('/');

const sums = `// Two task classes, and a function that inserts their tasks.
import { read, readWrite, task, write } from 'headrace';

/** A body in JavaScript runs on the program's own thread. */
const fill = task({
  name: 'fill',
  flows: { block: write('f64') },
  params: { first: 'i32' },
  body: ({ block, first }) => {
    for (let i = 0; i < block.length; i++) block[i] = first + i;
  },
});

/** A native kernel runs on all cores, and on GPUs. This one is built in: to[i] += factor * from[i]. */
const add = task({
  name: 'add',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'i32', factor: 'f64' },
  kernel: 'add_f64',
});

/** Fills \`count\` blocks of \`length\` elements with 0, 1, 2 ... and adds them element by element. */
async function sumOfBlocks(runtime, count, length) {
  const total = runtime.data(new Float64Array(length), { name: 'total' });
  const report = await runtime.run((graph) => {
    for (let b = 0; b < count; b++) {
      const block = runtime.data('f64', length, { name: \`block \${b}\` });
      graph.insert(fill, { block, first: b * length });
      graph.insert(add, { to: total, from: block, count: length, factor: 1 });
      block.close(); // frees it after these tasks
    }
  });
  return { tasks: report.tasks, total: await total.read() };
}

export { sumOfBlocks };
`;

const program = `import { Runtime } from 'headrace';
import { sumOfBlocks } from '${SUMS}';

const runtime = await Runtime.create();
const { tasks, total } = await sumOfBlocks(runtime, 100, 1000);
console.log(\`\${tasks} tasks, total[0] = \${total[0]}\`);
await runtime.close();
`;

const test = `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Runtime } from 'headrace';
import { sumOfBlocks } from '${SUMS}';

for (const gpus of [0, 2]) {
  test(\`adds the blocks with \${gpus} emulated GPUs\`, async () => {
    const runtime = await Runtime.create({ gpus, checked: true });
    const { tasks, total } = await sumOfBlocks(runtime, 3, 2);
    await runtime.close();
    assert.equal(tasks, 6);
    assert.deepEqual([...total], [0 + 2 + 4, 1 + 3 + 5]);
  });
}
`;

/** The files of a project called `name` by their names; `headrace` is its dependency as package.json has it. */
export function projectFiles(name: string, headrace: string): Readonly<Record<string, string>> {
  const manifest = {
    name,
    version: '0.0.0',
    private: true,
    type: 'module',
    engines: { node: '^20.19.0 || >=22.12.0' },
    scripts: {
      start: 'node program.js',
      test: 'node --test',
      trace: 'headrace run --trace run.hrtrace program.js && headrace trace summary run.hrtrace',
    },
    dependencies: { headrace },
  };
  return {
    'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
    '.gitignore': 'node_modules\n*.hrtrace\n',
    'program.js': program,
    'sums.js': sums,
    'sums.test.js': test,
  };
}
