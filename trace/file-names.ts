// Names of trace files, where one run or one process writes several.

/** File of one rank's trace: run.hrtrace becomes run.0.hrtrace, run.1.hrtrace, ... */
export function traceOfRank(file: string, rank: number): string {
  return file.replace(/(\.hrtrace)?$/, `.${rank}$1`);
}

/** File of the trace of a process's runtime number `n`, from 1: run.hrtrace, run-2.hrtrace, run-3.hrtrace, ... */
export function traceOfRuntime(file: string, n: number): string {
  return n === 1 ? file : file.replace(/(\.hrtrace)?$/, `-${n}$1`);
}
