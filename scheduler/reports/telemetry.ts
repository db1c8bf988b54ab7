// OpenTelemetry spans, one per run, through the optional peer `@opentelemetry/api`. Without it there are no spans and no
// cost. This file declares the few functions that it uses, so that no type of the package becomes part of ours.
import type { RunReport } from './run-report.js';

interface Span {
  setAttributes(attributes: Record<string, string | number>): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  recordException(error: Error): unknown;
  end(): void;
}

interface OpenTelemetry {
  readonly trace: {
    getTracer(name: string): {
      startSpan(name: string, options: { attributes: Record<string, string | number> }): Span;
    };
    setSpan(context: unknown, span: Span): unknown;
  };
  readonly context: { active(): unknown; with<T>(context: unknown, call: () => T): T };
}

const STATUS_OK = 1;
const STATUS_ERROR = 2;
/** Not a literal: the compiler must not look for a package that may be absent. */
const PACKAGE: string = '@opentelemetry/api';

let api: OpenTelemetry | undefined;
let loading: Promise<void> | undefined;

/** Looks for the package, once per process. Runs that start afterwards have spans. */
export function loadTelemetry(): Promise<void> {
  loading ??= import(PACKAGE).then(
    (found: OpenTelemetry) => {
      api = found;
    },
    () => {},
  );
  return loading;
}

/** The span of one run. */
export class RunSpan {
  private readonly span: Span | undefined;

  constructor(name: string, rank: number, ranks: number) {
    this.span = api?.trace.getTracer('headrace').startSpan(`headrace run ${name}`, {
      attributes: { 'headrace.run': name, 'headrace.rank': rank, 'headrace.ranks': ranks },
    });
  }

  /** Calls the program; spans that it starts are children of this one. */
  within<T>(call: () => T): T {
    if (api === undefined || this.span === undefined) return call();
    return api.context.with(api.trace.setSpan(api.context.active(), this.span), call);
  }

  ended(report: RunReport): void {
    if (this.span === undefined) return;
    const attributes: Record<string, number> = {
      'headrace.tasks': report.tasks,
      'headrace.evictions': report.evictions,
      'headrace.spills': report.spills,
    };
    for (const [kind, bytes] of Object.entries(report.bytes)) {
      attributes[`headrace.bytes.${kind}`] = bytes;
    }
    this.span.setAttributes(attributes);
    this.span.setStatus({ code: STATUS_OK });
    this.span.end();
  }

  failed(error: Error): void {
    if (this.span === undefined) return;
    const code = 'code' in error ? String(error.code) : error.name;
    this.span.setAttributes({ 'headrace.error': code });
    this.span.recordException(error);
    this.span.setStatus({ code: STATUS_ERROR, message: error.message });
    this.span.end();
  }
}
