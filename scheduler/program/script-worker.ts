// The program of a script worker: it loads the modules of task classes and runs their bodies.
import { workerData } from 'node:worker_threads';
import { serveScripts } from '../../devices/native/script-server.js';
import type { ScriptWorkerData } from '../../devices/native/script-workers.js';
import { loadScriptClass } from './script-class.js';

const { scriptWorker } = workerData as { readonly scriptWorker: ScriptWorkerData };
await serveScripts(scriptWorker, (cls, space) => loadScriptClass(cls, space, scriptWorker.checked));
