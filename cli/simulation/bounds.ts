// Lower bounds of the time of a program, from its tasks in program order and the times of their kernels: its longest
// chain, and its work divided by the number of executors. Data take no time to move here.
import { type CompiledTime, compileTime } from '../../devices/simulated/machine/kernel-times.js';
import type { MachineDescription } from '../../devices/simulated/machine/machine.js';
import { Datum, type TaskClass } from '../../scheduler/index.js';
import { AccessMode } from '../../trace/format.js';

/** The end of the last writer of a datum, and of the last of all its users. */
interface Use {
  written: number;
  used: number;
}

export class ProgramBounds {
  /** Seconds of the longest chain of kernels. */
  criticalPath = 0;
  /** Seconds of all kernels. */
  work = 0;
  private readonly machine: MachineDescription;
  private readonly times: Map<TaskClass, CompiledTime> = new Map();
  private readonly uses: Map<unknown, Use> = new Map();
  private params: Float64Array = new Float64Array(16);

  constructor(machine: MachineDescription) {
    this.machine = machine;
  }

  readonly add = (cls: TaskClass, args: Readonly<Record<string, unknown>>): void => {
    const { flowNames, modes, paramNames } = cls;
    if (paramNames.length > this.params.length) this.params = new Float64Array(paramNames.length);
    paramNames.forEach((name, i) => {
      this.params[i] = Number(args[name]);
    });
    const seconds = this.timeOf(cls)(this.params, 0, paramNames.length);
    let start = 0;
    // A list has an array of data.
    const uses = flowNames.map((name) => [args[name]].flat().map((datum) => this.useOf(datum)));
    uses.forEach((data, i) => {
      for (const use of data)
        start = Math.max(start, modes[i] === AccessMode.read ? use.written : use.used);
    });
    const end = start + seconds;
    uses.forEach((data, i) => {
      for (const use of data) {
        if (modes[i] !== AccessMode.read) use.written = end;
        use.used = Math.max(use.used, end);
      }
    });
    this.work += seconds;
    this.criticalPath = Math.max(this.criticalPath, end);
  };

  private useOf(datum: unknown): Use {
    if (!(datum instanceof Datum)) throw new Error('a flow is not a datum');
    let use = this.uses.get(datum);
    if (use === undefined) {
      use = { written: 0, used: 0 };
      this.uses.set(datum, use);
    }
    return use;
  }

  private timeOf(cls: TaskClass): CompiledTime {
    let time = this.times.get(cls);
    if (time === undefined) {
      const { kernels, hostKernels, gpus } = this.machine;
      const { kernel, gpuKernel } = cls.definition;
      const onGpu = gpus > 0 && gpuKernel !== false;
      const name = String((onGpu ? gpuKernel : undefined) ?? kernel);
      const onHost = hostKernels?.[name] ?? hostKernels?.['*'];
      const model = (onGpu ? undefined : onHost) ?? kernels[name] ?? kernels['*'];
      time = compileTime(model, name);
      this.times.set(cls, time);
    }
    return time;
  }
}
