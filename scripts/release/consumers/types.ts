import { HeadraceError, type RunReport, Runtime, read, task, write } from 'headrace';
import { cholesky } from 'headrace/algorithms';
import { loadTrace } from 'headrace/trace';

const fill = task({
  name: 'fill',
  flows: { x: write('f64') },
  params: { value: 'f64' },
  body: ({ x, value }) => {
    x.fill(value);
  },
});
const look = task({ name: 'look', flows: { x: read('f64') }, body: () => {} });

export async function main(): Promise<number> {
  const runtime: Runtime = await Runtime.create();
  const x = runtime.data('f64', 10);
  const report: RunReport = await runtime.run((graph) => {
    graph.insert(fill, { x, value: 1 });
    graph.insert(look, { x });
    // @ts-expect-error there is no flow of that name
    graph.insert(look, { y: x });
    // @ts-expect-error the parameter is missing
    graph.insert(fill, { x });
  });
  await runtime.close();
  return report.tasks;
}

export const others: readonly unknown[] = [HeadraceError, cholesky, loadTrace];
