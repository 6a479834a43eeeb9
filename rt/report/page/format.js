// format.js: numbers for people: few digits, and a unit in the same line.

const TIE = "\u00a0";

// Three to four significant digits, without an exponent.
export function digits(x) {
    const size = Math.abs(x);
    if (size >= 1000) return Math.round(x).toLocaleString("en-US");
    if (Number.isInteger(x)) return String(x);
    return size >= 0.001 ? x.toPrecision(size >= 100 ? 4 : 3) : String(Number(x.toPrecision(3)));
}

function scaled(x, steps, units) {
    let i = 0;
    while (i < units.length - 1 && Math.abs(x) >= steps) x /= steps, i++;
    return `${digits(x)}${TIE}${units[i]}`;
}

export const time = (ps) => scaled(ps, 1000, ["ps", "ns", "µs", "ms", "s"]);
export const bytes = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
export const count = (n, unit) => scaled(n, 1000, ["", "k", "M", "G", "T", "P", "E"].map((prefix) => prefix + unit));
export const whole = (n) => n.toLocaleString("en-US");
export const percent = (share) => share > 0 && share < 0.0005 ? `<${TIE}0.1${TIE}%` : `${(100 * share).toFixed(1)}${TIE}%`;

// A text in which numbers keep their units.
export const tied = (text) => text.replace(/(\d) (?=%|[kMGT]?i?B\b|[pnµm]?s\b)/g, `$1${TIE}`);

// All ticks of an axis in the unit that fits its end.
export function timeUnit(most) {
    const names = ["ps", "ns", "µs", "ms", "s"];
    const power = Math.max(0, Math.min(4, Math.floor(Math.log10(Math.max(most, 1)) / 3)));
    return {name: names[power], ps: 1000 ** power};
}

// The least of 1, 2, 5, 10, ... times a power of ten that is not below x.
export function niceAbove(x) {
    if (!(x > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(x));
    return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= x * 0.999999) * power;
}

// Ticks of a linear axis from 0 to `most`: about `wanted` of them.
export function ticks(least, most, wanted) {
    const rough = (most - least) / Math.max(1, wanted);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
    const found = [];
    for (let i = Math.ceil(least / step - 1e-9); i * step <= most * (1 + 1e-9); i++) found.push(i * step);
    return found;
}
