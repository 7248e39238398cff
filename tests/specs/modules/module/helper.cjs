// Loaded with require by extension.mjs beside it.
const path = require("path");

exports.count = (exports.count ?? 0) + 1;
exports.file = path.basename(__filename);
exports.folder = __dirname;
exports.isMain = require.main === module;
exports.data = require("./data.json");
