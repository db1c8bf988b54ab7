// One run of a case on one rank: its tasks in the engine's numbering, and its end.
import type { Graph, HeadraceError, Run, Runtime } from '../../../scheduler/index.js';

export class RunPlayer {
  /** Its tasks without movements, in the oracle's numbering. */
  readonly tasks: number[] = [];
  /** Code of the error of the run, '' when it ended well, undefined while it has not ended. */
  outcome: string | undefined;
  error: HeadraceError | undefined;
  graph: Graph | undefined;
  wasCancelled = false;
  /** The engine has seen its failure. */
  hasFailed = false;
  /** The reason why the program stopped inserting. */
  thrown: unknown;
  private run: Run | undefined;

  /** Begins the run; its program goes on until `ended` resolves. */
  begin(runtime: Runtime, ended: Promise<void>): void {
    this.run = runtime.run((graph) => {
      this.graph = graph;
      return ended.then(() => {
        if (this.thrown !== undefined) throw this.thrown;
      });
    });
    this.run.done.then(
      () => {
        this.outcome = '';
      },
      (error: HeadraceError) => {
        this.error = error;
        this.outcome = error.code ?? String(error);
      },
    );
  }

  get isOver(): boolean {
    return this.outcome !== undefined;
  }

  cancel(): void {
    if (this.isOver) return;
    this.wasCancelled = true;
    this.run?.cancel('as the case says');
  }
}
