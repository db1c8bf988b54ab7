// The machine of a plan in a file: the numbers of its queues and spaces mean something on a machine of the same shape only.
import type { Backend, QueueInfo, SpaceInfo } from '../../devices/backend.js';

/** The devices and queues of a machine. A plan may have more memory than the machine that it was made for, so bytes are only shown. */
export interface PlanMachine {
  readonly spaces: readonly { readonly kind: SpaceInfo['kind']; readonly bytes: number }[];
  readonly queues: readonly (readonly [QueueInfo['kind'], number, number])[];
}

export function machineOf({ spaces, queues }: Pick<Backend, 'spaces' | 'queues'>): PlanMachine {
  return {
    spaces: spaces.map(({ kind, bytes }) => ({ kind, bytes })),
    queues: queues
      .filter(({ kind }) => kind !== 'lane')
      .map(({ kind, space, peer }) => [kind, space, peer]),
  };
}

/** Whether a plan for one machine has the same queues on the other. */
export function haveSameShape(a: PlanMachine, b: PlanMachine): boolean {
  return shapeOf(a) === shapeOf(b);
}

function shapeOf({ spaces, queues }: PlanMachine): string {
  return JSON.stringify([spaces.map(({ kind }) => kind), queues]);
}

/** Such as `2 workers, 4 script workers, 2 emulated GPUs with 1 compute stream each that copy from each other`. */
export function machineText({ spaces, queues }: PlanMachine): string {
  const [, ...gpus] = spaces;
  const count = (wanted: QueueInfo['kind'], of?: number): number =>
    queues.filter(([kind, space]) => kind === wanted && (of === undefined || space === of)).length;
  const scripts = count('script');
  const workers = [
    plural(count('worker'), 'worker'),
    ...(scripts > 0 ? [plural(scripts, 'script worker')] : []),
  ].join(', ');
  if (gpus.length === 0) return `${workers} and no GPU`;
  const groups = new Map<string, number>();
  gpus.forEach(({ kind }, g) => {
    const streams = plural(count('compute', g + 1), 'compute stream');
    const peers = count('peer', g + 1) > 0 ? ' and peer access' : '';
    const text = `${kind} GPU with ${streams}${peers}`;
    groups.set(text, (groups.get(text) ?? 0) + 1);
  });
  return [workers, ...Array.from(groups, ([text, n]) => `${n} ${text}`)].join(', ');
}

function plural(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}
