// What a spare isolate loads while it waits: modules that most extensions import and that the
// startup snapshot cannot hold.
import "node:crypto";
