// What the zygote loads before its first fork: modules that most extensions import and that the startup snapshot cannot
// hold.
import "node:crypto";
