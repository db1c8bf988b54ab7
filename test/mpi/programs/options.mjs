// A runtime whose options differ from rank to rank: `[the options of rank 0, those of the others]`.
import { Runtime } from '../../../dist/index.js';
import { report } from './report.mjs';

const rank = Number(process.env['OMPI_COMM_WORLD_RANK'] ?? process.env['PMI_RANK']);
const options = JSON.parse(process.argv[2])[Math.min(rank, 1)];
try {
  const runtime = await Runtime.create({ workers: 1, ...options });
  await runtime.close();
  report(rank, { code: '', message: '' });
} catch ({ code, message }) {
  // The next one is opened with the same options everywhere.
  const runtime = await Runtime.create({ workers: 1 });
  await runtime.close();
  report(rank, { code, message });
}
