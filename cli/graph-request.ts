// What `headrace graph` asks of the process that loads the user's file.

/** Formats of a drawing. */
export const drawingFormats = ['svg', 'dot', 'graphlib'] as const;
/** One of them. */
export type DrawingFormat = (typeof drawingFormats)[number];

interface OfFile {
  /** The words that start headrace from a shell in the current folder. */
  readonly program: string;
  /** The file as the user named it. */
  readonly name: string;
  /** Its absolute path. */
  readonly file: string;
  /** The graph, by the name of its export or its own; undefined: the only one. */
  readonly graph?: string | undefined;
  /** The export that makes the arguments; undefined: `example`, if the graph needs one. */
  readonly arguments?: string | undefined;
}

/** To check an instance. */
export interface VerifyRequest extends OfFile {
  readonly command: 'verify';
  readonly json: boolean;
}

/** To draw the classes, or the tasks of an instance. */
export interface DrawRequest extends OfFile {
  readonly command: 'draw';
  readonly tasks: boolean;
  readonly format: DrawingFormat;
  /** File to write; `-`: standard output. */
  readonly target: string;
}

export type GraphRequest = VerifyRequest | DrawRequest;
