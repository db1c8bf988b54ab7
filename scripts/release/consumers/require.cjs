// A CommonJS program: `require` gives the same module that `import` does.
const { Runtime, task, write } = require('headrace');
const { cholesky } = require('headrace/algorithms');
const { loadTrace } = require('headrace/trace');

async function main() {
  const one = task({ name: 'one', flows: { x: write('f64') }, body: ({ x }) => x.fill(1) });
  const runtime = await Runtime.create();
  const x = runtime.data('f64', 10, { name: 'x' });
  await runtime.run((graph) => graph.insert(one, { x }));
  const isSame = (await import('headrace')).Runtime === Runtime;
  console.log((await x.read())[9], isSame, typeof cholesky, typeof loadTrace);
  await runtime.close();
}

main();
