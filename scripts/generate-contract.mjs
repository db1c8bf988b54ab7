// Writes native/include/headrace/contract.h from the constant tables of native/contract.ts, and native/mpi/contract.h
// from native/mpi-contract.ts, so that both languages have one source of truth. Both sides get the contract's number.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { commandLine } from './lib/command-line.mjs';
import { prepare } from './lib/prepare.mjs';
import { typescript } from './lib/typescript.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const usage = `usage: node scripts/generate-contract.mjs [--check]

Writes the C++ headers and the numbers of the native contracts.

  --check    write nothing; exit code 1 when a file on disk differs
  --help     this text
`;
const contracts = [
  {
    source: 'native/contract.ts',
    header: 'native/include/headrace/contract.h',
    number: 'contractNumber',
  },
  {
    source: 'native/mpi-contract.ts',
    header: 'native/mpi/contract.h',
    number: 'netContractNumber',
  },
];
const numbers = 'native/contract-numbers.ts';
/** Tables of functions that one addon calls in another one. */
const shared = ['native/include/headrace/doorbell.h', 'native/include/headrace/lanes.h'];

/**
 * The number of a contract: a hash of its tables and interfaces, and of the functions that addons share. Comments and layout do not
 * count. An addon that was built from another contract has another number.
 */
function numberOf(text) {
  const ts = typescript();
  const file = ts.createSourceFile('contract.ts', text, ts.ScriptTarget.ES2022);
  const bare = ts.createPrinter({ removeComments: true }).printFile(file);
  const hash = createHash('sha256').update(bare);
  for (const header of shared) {
    const code = readFileSync(`${root}/${header}`, 'utf8').replaceAll(/\/\/.*$/gm, '');
    hash.update(code.replaceAll(/\s+/g, ' '));
  }
  return hash.digest().readUInt32LE(0) & 0x7fffffff;
}

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

/** The header's text. Tables keep the order of the contract. */
async function generate({ source, number }) {
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
    '',
    '/// Differs for every other contract: the loader compares it.',
    `inline constexpr std::int32_t ${number} = ${numberOf(text)};`,
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

/** The text of the TypeScript file with the numbers. */
function generateNumbers() {
  const lines = [
    '// Generated from the contracts by scripts/generate-contract.mjs. Do not edit.',
    '// An addon that was built from another contract has another number, and is not loaded.',
    '',
  ];
  for (const { source, number } of contracts)
    lines.push(`export const ${number} = ${numberOf(readFileSync(`${root}/${source}`, 'utf8'))};`);
  return `${lines.join('\n')}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = commandLine(usage, { check: { type: 'boolean', default: false } });
  await prepare({ only: ['dependencies'] });
  const files = [[numbers, generateNumbers()]];
  for (const contract of contracts) files.push([contract.header, await generate(contract)]);
  for (const [file, wanted] of files) {
    if (!values.check) {
      writeFileSync(`${root}/${file}`, wanted);
      continue;
    }
    let found = '';
    try {
      found = readFileSync(`${root}/${file}`, 'utf8');
    } catch {
      // a missing file differs from any wanted one
    }
    if (found !== wanted) {
      console.error(`${file} is out of date: run node scripts/generate-contract.mjs`);
      process.exitCode = 1;
    }
  }
}
