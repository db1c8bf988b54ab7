// Names of queues in reports.
import type { Backend } from '../../devices/backend.js';
import { FIRST_QUEUE, type QueueId } from '../../devices/handles.js';

/** Such as `worker 0`, `script worker 1`, `lane 3`, `gpu 1 compute 0`, `gpu 0 h2d` or `gpu 0 from gpu 1`. */
export function queueName(backend: Backend, q: QueueId): string {
  const { kind, space, peer } = backend.queues[q];
  let before = 0;
  for (let p = FIRST_QUEUE; p < q; p++) {
    const other = backend.queues[p];
    if (other.kind === kind && other.space === space) before++;
  }
  if (kind === 'worker' || kind === 'lane') return `${kind} ${before}`;
  if (kind === 'script') return `script worker ${before}`;
  const gpu = `gpu ${space - 1}`;
  if (kind === 'peer') return `${gpu} from gpu ${peer - 1}`;
  return kind === 'compute' ? `${gpu} compute ${before}` : `${gpu} ${kind}`;
}
