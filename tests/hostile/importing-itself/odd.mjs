import { even } from "./even.mjs";

export const odd = (number) => number !== 0 && even(number - 1);
