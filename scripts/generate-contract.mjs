// Writes native/include/headrace/contract.h from the constant tables of native/contract.ts, and native/mpi/contract.h
// from native/mpi-contract.ts, so that both languages have one source of truth.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { commandLine } from './lib/command-line.mjs';
import { prepare } from './lib/prepare.mjs';
import { typescript } from './lib/typescript.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const usage = `usage: node scripts/generate-contract.mjs [--check]

Writes the C++ headers of the native contract.

  --check    write nothing; exit code 1 when a header on disk differs
  --help     this text
`;
const contracts = [
  { source: 'native/contract.ts', header: 'native/include/headrace/contract.h' },
  { source: 'native/mpi-contract.ts', header: 'native/mpi/contract.h' },
];

/** The exported tables of a contract: name -> { key: number }. Types vanish when transpiled. */
async function tables(text) {
  const ts = typescript();
  const javascript = ts.transpileModule(text, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  }).outputText;
  const encoded = Buffer.from(javascript, 'utf8').toString('base64');
  const module = await import(`data:text/javascript;base64,${encoded}`);
  return Object.entries(module).filter(([, value]) => typeof value === 'object' && value !== null);
}

/** The header's text. Tables keep the order in which the contract declares them. */
export async function generate(source = contracts[0].source) {
  const text = readFileSync(`${root}/${source}`, 'utf8');
  const position = (name) => text.indexOf(`export const ${name} `);
  const entries = (await tables(text)).sort(([a], [b]) => position(a) - position(b));
  const lines = [
    `// Generated from ${source} by scripts/generate-contract.mjs. Do not edit.`,
    '#pragma once',
    '',
    '#include <cstdint>',
    '',
    'namespace headrace {',
  ];
  for (const [name, table] of entries) {
    lines.push('', `namespace ${name} {`);
    for (const [key, value] of Object.entries(table)) {
      if (!Number.isInteger(value)) throw new Error(`${name}.${key} is not an integer`);
      lines.push(`inline constexpr std::int32_t ${key} = ${value};`);
    }
    lines.push(`}  // namespace ${name}`);
  }
  lines.push('', '}  // namespace headrace', '');
  return lines.join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = commandLine(usage, { check: { type: 'boolean', default: false } });
  await prepare({ only: ['dependencies'] });
  for (const { source, header } of contracts) {
    const wanted = await generate(source);
    if (!values.check) {
      writeFileSync(`${root}/${header}`, wanted);
      continue;
    }
    let found = '';
    try {
      found = readFileSync(`${root}/${header}`, 'utf8');
    } catch {
      // a missing header differs from any wanted one
    }
    if (found !== wanted) {
      console.error(`${header} is out of date: run node scripts/generate-contract.mjs`);
      process.exitCode = 1;
    }
  }
}
