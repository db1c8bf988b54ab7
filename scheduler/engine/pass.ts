// The pass, as parts of the engine call it.

export interface Pass {
  /** Makes one pass; true when it completed, started or ran anything. Does nothing within a pass. */
  pump(): boolean;
  /** Whether a pass has called the caller back. */
  readonly isUnderWay: boolean;
}
