// node js-sdk/check-exports.mjs FOLDER: compares what our SDK exports with what the public one does.
// FOLDER is a node_modules with `typescript` and `@github/copilot-sdk`; scripts/types.sh makes it.
//
// An import of a name that is missing fails when the extension is loaded, before any of its code runs.
// So every name of the public `extension` entry has to be there, and our types must not promise a
// value that the built-in modules do not export.

import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const modules = process.argv[2] && path.resolve(process.argv[2]);
if (!modules) {
  console.error("usage: node js-sdk/check-exports.mjs NODE_MODULES_FOLDER");
  process.exit(2);
}
const ts = createRequire(path.join(modules, "_"))("typescript");

const theirs = path.join(modules, "@github/copilot-sdk/dist/extension.d.ts");
const ours = (entry) => path.join(here, "types", `${entry}.d.ts`);
const program = ts.createProgram([theirs, ours("extension"), ours("index")], {
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  target: ts.ScriptTarget.ES2022,
  noEmit: true,
});
const checker = program.getTypeChecker();

/** What a declaration file exports: name to whether it is a value. */
function exportsOf(file) {
  const source = program.getSourceFile(file);
  const module = source && checker.getSymbolAtLocation(source);
  if (!module) throw new Error(`${file} is not there or exports nothing`);
  return new Map(checker.getExportsOfModule(module).map((symbol) => [symbol.getName(), isValue(symbol)]));
}

function isValue(symbol) {
  const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
  // `export type { Name }` makes a type even of a class.
  if (isAlias && symbol.declarations?.some((node) => ts.isTypeOnlyExportDeclaration(node))) return false;
  const target = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
  return (target.flags & ts.SymbolFlags.Value) !== 0;
}

/** The names that a module of `src/public` exports; each is one `export const { ... } = sdk`. */
function builtInNames(entry) {
  const file = path.join(here, "src/public", `${entry}.js`);
  const source = ts.createSourceFile(file, ts.sys.readFile(file), ts.ScriptTarget.ES2022);
  const names = new Set();
  for (const statement of source.statements) {
    if (!ts.isVariableStatement(statement) || !statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) continue;
    for (const { name } of statement.declarationList.declarations) {
      const parts = ts.isObjectBindingPattern(name) ? name.elements.map((element) => element.name) : [name];
      for (const part of parts) names.add(part.text);
    }
  }
  return names;
}

const missing = [];

const wanted = exportsOf(theirs);
const offered = exportsOf(ours("extension"));
for (const [name, value] of wanted) {
  if (!offered.has(name)) missing.push(`${name}: the public SDK exports it, our types do not`);
  else if (value && !offered.get(name)) missing.push(`${name}: a value in the public SDK, only a type in ours`);
}
for (const entry of ["extension", "index"]) {
  const builtIn = builtInNames(entry);
  const typed = exportsOf(ours(entry));
  for (const [name, value] of typed) {
    if (value && !builtIn.has(name)) missing.push(`${name}: in types/${entry}.d.ts, not in src/public/${entry}.js`);
  }
  for (const name of builtIn) {
    if (!typed.get(name)) missing.push(`${name}: in src/public/${entry}.js, not in types/${entry}.d.ts`);
  }
}

for (const line of missing) console.log(`missing  ${line}`);
const values = [...wanted.values()].filter(Boolean).length;
console.log(
  missing.length === 0
    ? `exports  all ${wanted.size} names of @github/copilot-sdk/extension are there (${values} values, ${wanted.size - values} types)`
    : `exports  ${missing.length} missing`,
);
process.exitCode = missing.length === 0 ? 0 : 1;
