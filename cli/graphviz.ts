// Graphviz, which lays graphs out and draws them: the program `dot`.
import { spawn } from 'node:child_process';
import { aptCommand, isOnPath } from '../devices/installation.js';
import { HeadraceError } from '../scheduler/errors.js';

/** Draws a graph in DOT as SVG. @throws HeadraceError `ERR_GRAPHVIZ` */
export function drawSvg(dot: string, env: Readonly<NodeJS.ProcessEnv>): Promise<string> {
  if (!isOnPath('dot', env))
    throw new HeadraceError(
      'ERR_GRAPHVIZ',
      'Graphviz draws SVG, and its program dot is not on PATH',
      {
        remedy: `${aptCommand(['graphviz'])}; or --format dot`,
      },
    );
  return new Promise((resolve, reject) => {
    const child = spawn('dot', ['-Tsvg'], { env, stdio: ['pipe', 'pipe', 'pipe'] });
    let [svg, errors] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (svg += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
    child.on('error', (cause) =>
      reject(new HeadraceError('ERR_GRAPHVIZ', 'dot cannot be started', { cause })),
    );
    child.on('close', (code) => {
      if (code === 0) resolve(svg);
      else
        reject(
          new HeadraceError('ERR_GRAPHVIZ', `dot -Tsvg failed (${code ?? 'signal'})`, {
            report: errors.trimEnd(),
          }),
        );
    });
    // If it ends before it has read everything, its exit code says why.
    child.stdin.on('error', () => {});
    child.stdin.end(dot);
  });
}
