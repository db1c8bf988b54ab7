// Writes the viewer as one HTML file: style, program and data inline, nothing fetched. So it works from disk,
// in an e-mail, years later. The program is the modules of trace/viewer/, joined without imports and exports.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { TraceError } from '../errors.js';
import type { Output } from '../export/output.js';
import type { Trace } from '../trace.js';
import { buildPayload } from './payload.js';

/** The viewer's modules in the order of their dependencies. */
export const viewerModules: readonly string[] = [
  'format.js',
  'theme.js',
  'model.js',
  'detail-levels.js',
  'layout.js',
  'scene.js',
  'charts.js',
  'highlight.js',
  'paint.js',
  'minimap.js',
  'explain.js',
  'dom.js',
  'details.js',
  'panels.js',
  'search.js',
  'view.js',
  'walk.js',
  'input.js',
  'page.js',
  'main.js',
];

/** Writes the page of a trace. One column of data is in memory at a time, besides the loaded trace. */
export function writePage(trace: Trace, output: Output): void {
  const payload = buildPayload(trace);
  const title = escapeHtml(`${trace.ranks[0].header.program} - Headrace trace`);
  output.text(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>
${viewerStyle()}</style>
</head>
<body>
<div id="app"></div>
<pre id="printed">${escapeHtml(payload.text)}</pre>
<noscript><p>The timeline needs JavaScript; the summary below does not.</p><style>#printed{display:block}</style></noscript>
<script type="application/json" id="meta">${escapeScript(JSON.stringify(payload.meta))}</script>
`);
  for (const column of payload.columns()) {
    const { name, type, length, delta } = column;
    output.text(
      `<script type="text/plain" class="column" data-name="${name}" data-type="${type}" data-length="${length}"${delta ? ' data-delta' : ''}>`,
    );
    output.text(Buffer.from(column.bytes).toString('base64'));
    output.text('</script>\n');
  }
  output.text(`<script>
${viewerProgram()}</script>
</body>
</html>
`);
}

/**
 * The viewer's program: its modules in one function, with imports and exports removed. Comments
 * (types, mostly) and indentation go too: they are half of the text. (No module has a template literal of several
 * lines, nor a string that looks like a comment.)
 */
export function viewerProgram(): string {
  const parts = viewerModules.map((file) =>
    viewerFile(file)
      .replace(/^import\s[^;]*;\n/gm, '')
      .replace(/^export (?=(?:async )?(?:function|class|const|let) )/gm, '')
      .replace(/\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*/g, '')
      .replace(/^\s*\/\/.*\n/gm, '')
      .replace(/^\s+/gm, ''),
  );
  return `(() => {\n'use strict';\n${parts.join('')}})();\n`;
}

/** The viewer's style sheet without indentation. */
export function viewerStyle(): string {
  return viewerFile('viewer.css').replace(/^\s+/gm, '');
}

/** A file of trace/viewer/: beside the sources, also when this code runs compiled from dist/. */
function viewerFile(file: string): string {
  for (const place of ['../viewer/', '../../../trace/viewer/']) {
    const path = fileURLToPath(new URL(place + file, import.meta.url));
    if (existsSync(path)) return readFileSync(path, 'utf8');
  }
  throw new TraceError(
    'ERR_TRACE_READ',
    `the viewer's file trace/viewer/${file} is missing from the installation; install headrace again.`,
  );
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

// Inside a script element only the sequences that could end or nest it need escapes.
function escapeScript(json: string): string {
  return json.replaceAll('<', '\\u003c');
}
