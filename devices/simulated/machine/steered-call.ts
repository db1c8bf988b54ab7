// The call of a kernel that reads parameters from memory: its last flows become parameters.
import type { SteeredKernelParameter } from '../../backend.js';
import type { KernelCall } from './executor.js';
import type { CompiledTime } from './kernel-times.js';

/** The call as the kernel sees it. `steers` are in ascending order of positions, and belong to the last flows. */
export function steeredCall(
  { memory, flows, params }: KernelCall,
  steers: readonly SteeredKernelParameter[],
): KernelCall {
  const bytes = new DataView(memory.buffer, memory.byteOffset, memory.byteLength);
  const first = flows.length - steers.length;
  const whole = [...params];
  steers.forEach(({ position, element }, i) => {
    const at = flows[first + i];
    const value = element === 'i32' ? bytes.getInt32(at, true) : bytes.getFloat64(at, true);
    whole.splice(position, 0, value);
  });
  return { memory, flows: flows.slice(0, first), params: whole };
}

/** The duration of such a kernel: that of the kernel it stands for, with 1 for each value that is not known yet. */
export function steeredTime(
  time: CompiledTime,
  steers: readonly SteeredKernelParameter[],
): CompiledTime {
  return (args, first, count) => {
    const whole = Array.from({ length: count }, (_, i) => args[first + i]);
    for (const { position } of steers) whole.splice(position, 0, 1);
    return time(whole, 0, whole.length);
  };
}
