// Writes native/include/headrace/contract.h from the constant tables of native/contract.ts, so that both
// languages have one source of truth. `--check` writes nothing and fails when the header on disk differs.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const source = fileURLToPath(new URL('../native/contract.ts', import.meta.url));
const header = fileURLToPath(new URL('../native/include/headrace/contract.h', import.meta.url));

/** The exported tables of contract.ts: name -> { key: number }. Types vanish when transpiled. */
async function tables() {
  const javascript = ts.transpileModule(readFileSync(source, 'utf8'), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  }).outputText;
  const encoded = Buffer.from(javascript, 'utf8').toString('base64');
  const module = await import(`data:text/javascript;base64,${encoded}`);
  return Object.entries(module).filter(([, value]) => typeof value === 'object' && value !== null);
}

/** The header's text. Tables keep the order in which contract.ts declares them. */
export async function generate() {
  const text = readFileSync(source, 'utf8');
  const position = (name) => text.indexOf(`export const ${name} `);
  const entries = (await tables()).sort(([a], [b]) => position(a) - position(b));
  const lines = [
    '// Generated from native/contract.ts by scripts/generate-contract.mjs. Do not edit.',
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
  const wanted = await generate();
  if (process.argv.includes('--check')) {
    let found = '';
    try {
      found = readFileSync(header, 'utf8');
    } catch {
      // a missing header differs from any wanted one
    }
    if (found !== wanted) {
      console.error(
        'native/include/headrace/contract.h is out of date: run node scripts/generate-contract.mjs',
      );
      process.exit(1);
    }
  } else {
    writeFileSync(header, wanted);
  }
}
