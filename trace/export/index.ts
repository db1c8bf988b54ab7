// The export formats.
export * from './chrome.js';
export * from './csv.js';
export * from './graph-export.js';
export * from './output.js';
export * from './paje.js';
export * from './perfetto.js';
