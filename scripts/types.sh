#!/usr/bin/env bash
# Checks the SDK's types: the extensions in this repository against them, and their names against the
# public SDK's. Needs node and npm, and the network the first time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Exact versions, so that a new release of another project never turns a check red.
packages='typescript@5.9.3 @types/node@24.19.2 @github/copilot-sdk@1.0.14'
folder=$(absolute "${XDG_CACHE_HOME:-$HOME/.cache}/tenon/types")

if ! { has node && has npm; }; then die 'the types are checked with node and npm; install Node.js 20 or later'; fi

mkdir -p "$folder"
if [ "$(cat "$folder/packages" 2>/dev/null)" != "$packages" ]; then
  say "getting $packages"
  # The folder gets a package.json of its own: npm would otherwise look for one further up.
  echo '{ "private": true }' >"$folder/package.json"
  rm -f "$folder/packages" "$folder/package-lock.json"
  # Nothing of theirs is run, so nothing of theirs has to be built. Word splitting is meant.
  # shellcheck disable=SC2086
  npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error $packages >/dev/null ||
    die 'npm could not get them'
  printf '%s\n' "$packages" >"$folder/packages"
fi

# project NAME OPTIONS FILE...: type-checks files, patterns relative to the repository.
project() {
  local name=$1 options=$2 files='' file
  shift 2
  for file in "$@"; do files="$files${files:+, }\"$root/$file\""; done
  cat >"$folder/tsconfig.$name.json" <<JSON
{
  "compilerOptions": {
    "strict": true, "noEmit": true, "target": "es2023", "module": "esnext", "moduleResolution": "bundler",
    "types": ["node"], "typeRoots": ["$folder/node_modules/@types"], $options
    "paths": {
      "@github/copilot-sdk": ["$root/js-sdk/types/index.d.ts"],
      "@github/copilot-sdk/extension": ["$root/js-sdk/types/extension.d.ts"],
      "@tenon/sdk": ["$root/js-sdk/types/index.d.ts"],
      "@tenon/sdk/extension": ["$root/js-sdk/types/extension.d.ts"]
    }
  },
  "include": [$files],
  "exclude": ["**/node_modules"]
}
JSON
  if "$folder/node_modules/.bin/tsc" --project "$folder/tsconfig.$name.json" --pretty false; then
    echo "types    $name: no errors"
  else
    echo "types    $name: see above"
    failed=1
  fi
}

failed=
project typescript '' 'js-sdk/types/*.d.ts' 'examples/sample-repo/.github/extensions/**/*.ts' 'extensions/**/*.ts'
# Plain JavaScript has no place to say what a parameter or a caught error is, other than comments that
# these files are better off without; everything else is checked as strictly.
project javascript '"allowJs": true, "checkJs": true, "noImplicitAny": false, "useUnknownInCatchVariables": false,' \
  'examples/sample-repo/.github/extensions/**/*.mjs' 'extensions/**/*.mjs'
node js-sdk/check-exports.mjs "$folder/node_modules" || failed=1
[ -z "$failed" ]
