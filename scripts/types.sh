#!/usr/bin/env bash
# Checks the SDK's types: every example and every extension in this repository against them, as strictly
# as tsc can, and their names against the public SDK's. Needs the network the first time only.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Exact versions, so that a new release of another project never turns a check red.
packages='typescript@5.9.3 @types/node@24.19.2 @github/copilot-sdk@1.0.14'
folder=$(absolute "${XDG_CACHE_HOME:-$HOME/.cache}/tenon/types")
record="$folder/node_modules/.versions"

if ! { has node && has npm; }; then die 'checking the types needs node and npm'; fi

if [ "$(cat "$record" 2>/dev/null)" != "$packages" ]; then
  say "getting $packages"
  mkdir -p "$folder"
  # The folder gets a package.json of its own: npm would otherwise look for one further up.
  echo '{ "private": true }' >"$folder/package.json"
  rm -f "$record" "$folder/package-lock.json"
  # Nothing of theirs is run at install time. Word splitting is meant.
  # shellcheck disable=SC2086
  npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error $packages >/dev/null ||
    die 'npm could not get them'
  printf '%s\n' "$packages" >"$record"
fi

# Of this run alone: clones share the folder.
project="$folder/tsconfig.$$.json"
trap 'rm -f "$project"' EXIT
cat >"$project" <<JSON
{
  "compilerOptions": {
    "noEmit": true, "allowJs": true, "checkJs": true,
    "target": "es2023", "module": "esnext", "moduleResolution": "bundler",
    "types": ["node"], "typeRoots": ["$folder/node_modules/@types"],
    "paths": {
      "@github/copilot-sdk": ["$root/js-sdk/types/index.d.ts"],
      "@github/copilot-sdk/extension": ["$root/js-sdk/types/extension.d.ts"],
      "@tenon/sdk": ["$root/js-sdk/types/index.d.ts"],
      "@tenon/sdk/extension": ["$root/js-sdk/types/extension.d.ts"]
    }
  },
  "include": [
    "$root/js-sdk/types/*.d.ts",
    "$root/examples/sample-repo/.github/extensions/**/*",
    "$root/extensions/**/*"
  ],
  "exclude": ["**/node_modules"]
}
JSON

tsc() { "$folder/node_modules/.bin/tsc" --strict --pretty false --project "$project" "$@"; }
failed=
if tsc; then
  count=$(tsc --listFilesOnly | grep -cE '/extensions/.*\.(mjs|ts)$') || die 'no extension was found to check'
  echo "types    no errors in $count files of the examples and extensions (tsc --strict)"
else
  echo 'types    errors: see above'
  failed=1
fi
node js-sdk/check-exports.mjs "$folder/node_modules" || failed=1
[ -z "$failed" ]
