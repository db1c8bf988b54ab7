// The one writer of Graphviz DOT: boxes with lines of text, coloured by a number, and arrows between them.
import type { Output } from './output.js';

/** A box. */
export interface DotNode {
  readonly id: string;
  /** Its text. */
  readonly lines: readonly string[];
  /** Boxes of one number have one colour. */
  readonly colour: number;
  readonly isEmphasised?: boolean;
}

/** An arrow between two boxes. */
export interface DotEdge {
  readonly from: string;
  readonly to: string;
  readonly label?: string;
  readonly isDashed?: boolean;
  readonly isEmphasised?: boolean;
}

// Okabe and Ito's colour-blind safe palette, lightened for black text.
const colours = [
  '#a8d4f0',
  '#f5cf8e',
  '#a5dcc6',
  '#f3b9a0',
  '#e6c3da',
  '#f6f0a5',
  '#bcd0e8',
  '#d9d9d9',
];
const EMPHASIS = 'penwidth=3, color="#c00000"';

/** Writes a directed graph. */
export function writeDot(output: Output, nodes: Iterable<DotNode>, edges: Iterable<DotEdge>): void {
  output.text(
    'digraph headrace {\n  rankdir=TB;\n  node [shape=box, style=filled, fontname="sans-serif"];\n',
  );
  for (const { id, lines, colour, isEmphasised } of nodes) {
    const emphasis = isEmphasised === true ? `, ${EMPHASIS}` : '';
    const fill = colours[colour % colours.length];
    const label = lines.map(escaped).join('\\n');
    output.text(`  "${escaped(id)}" [label="${label}", fillcolor="${fill}"${emphasis}];\n`);
  }
  for (const { from, to, label, isDashed, isEmphasised } of edges) {
    const parts = [
      ...(label === undefined ? [] : [`label="${escaped(label)}"`]),
      ...(isDashed === true ? ['style=dashed'] : []),
      ...(isEmphasised === true ? [EMPHASIS] : []),
    ];
    const attributes = parts.length === 0 ? '' : ` [${parts.join(', ')}]`;
    output.text(`  "${escaped(from)}" -> "${escaped(to)}"${attributes};\n`);
  }
  output.text('}\n');
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
}
