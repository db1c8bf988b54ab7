// The messages between the main thread and the thread of a command.

/** From the command's thread. */
export type FromCommand =
  | { readonly kind: 'stdout'; readonly text: string }
  | { readonly kind: 'stderr'; readonly text: string }
  /** The command has seen the request to stop, and will stop. */
  | { readonly kind: 'heard' }
  | { readonly kind: 'leftover'; readonly path: string; readonly unfinished: boolean }
  | { readonly kind: 'result'; readonly code: number }
  /** The thread ends without a result; names the awaited promises. */
  | { readonly kind: 'silent'; readonly awaited: string };

/** The input of the thread. */
export interface CommandThreadData {
  /** Address of the module that has `runCli`. */
  readonly commands: string;
  readonly argv: readonly string[];
  readonly program: string;
  readonly isTTY: boolean;
  /** int32 words that both threads see. */
  readonly words: SharedArrayBuffer;
}

/** Places in `words`. */
export const Word = {
  /** 1: the command is to stop. */
  stop: 0,
  /** Width of the terminal; 0: unknown. */
  columns: 1,
  count: 2,
} as const;
