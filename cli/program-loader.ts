// The way in which Node runs a program: JavaScript as it is; TypeScript by Node itself if it can (22.18 or newer), else
// with the loader tsx, if the program's project has it.
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { HeadraceError } from '../scheduler/errors.js';

/** Whether the Node of this process runs TypeScript. */
function nodeRunsTypeScript(): boolean {
  const { typescript } = process.features as { readonly typescript?: unknown };
  return typescript !== undefined && typescript !== false;
}

/**
 * Options of node for the program `file`, an absolute path.
 * @throws HeadraceError `ERR_TYPESCRIPT` when nothing can run it
 */
export function loaderOptions(file: string, isBuiltIn: boolean = nodeRunsTypeScript()): string[] {
  if (!/\.[cm]?ts$/.test(file) || isBuiltIn) return [];
  try {
    return ['--import', pathToFileURL(createRequire(file).resolve('tsx')).href];
  } catch {
    throw new HeadraceError(
      'ERR_TYPESCRIPT',
      `Node ${process.version} does not run TypeScript, and tsx, which would, is not installed in ${dirname(file)} or above`,
      { remedy: 'npm install --save-dev tsx, or Node 22.18 or newer' },
    );
  }
}
