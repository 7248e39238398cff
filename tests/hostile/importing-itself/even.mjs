import { odd } from "./odd.mjs";

export const even = (number) => number === 0 || odd(number - 1);
