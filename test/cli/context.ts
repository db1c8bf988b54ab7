// The streams and the environment of a command, for tests: it keeps the output.
import type { CliContext } from '../../cli/context.js';

/** A context and what went through it. */
export interface TestContext extends CliContext {
  readonly out: () => string;
  readonly err: () => string;
  readonly interrupt: () => void;
}

/** A context whose stderr is a terminal on request. */
export function testContext(
  settings: { isTTY?: boolean; env?: Record<string, string> } = {},
): TestContext {
  const out: string[] = [];
  const err: string[] = [];
  const controller = new AbortController();
  return {
    stdout: { write: (text) => out.push(text) },
    stderr: { isTTY: settings.isTTY ?? false, columns: 80, write: (text) => err.push(text) },
    env: settings.env ?? {},
    program: 'headrace',
    signal: controller.signal,
    out: () => out.join(''),
    err: () => err.join(''),
    interrupt: () => controller.abort(),
  };
}
