// data.js: the points of a search: columns, scales, which points are brushed, which one is picked.

import {bytes, digits, ticks, time, timeUnit, whole} from "../format.js";

export const data = JSON.parse(document.getElementById("data").textContent);
export const {points} = data, pointCount = points.hash.length;
points.state = points.failed.map((failed, point) => failed || points.infeasible[point]);  // a number of data.states

const LEVELS_MOST = 24;                                 // values of a column that are levels, each with its place

// Levels in their order: numbers and amounts such as "64 KiB" by size, then words.
const sizeOf = (value) => {
    const [, amount, prefix, binary] = typeof value === "string" ? /^(\d+\.?\d*) ?([KMGT]?)(i?)[A-Za-z/]*$/.exec(value) ?? [] : [];
    return typeof value === "number" ? value : amount === undefined ? NaN : Number(amount) * (binary ? 1024 : 1000) ** " KMGT".indexOf(prefix || " ");
};
function byValue(a, b) {
    const x = sizeOf(a), y = sizeOf(b);
    return x < y ? -1 : x > y ? 1 : x === y ? 0 : Number.isNaN(x) - Number.isNaN(y) || (a < b ? -1 : 1);
}

function describe(column, number) {
    const present = column.values.filter((value) => value !== null), distinct = [...new Set(present)];
    const numbers = distinct.every((value) => typeof value === "number");
    const text = (value) => value === null ? "-" : typeof value === "string" ? value : column.name.endsWith("_ps") ? time(value) : column.name.endsWith("_bytes") ? bytes(value) : digits(value);
    const levels = !numbers || (column.role === "axis" && distinct.length <= LEVELS_MOST) ? distinct.sort(byValue) : null;
    return {...column, number, text, exact: (value) => typeof value === "number" && Number.isInteger(value) ? whole(value) : typeof value === "number" ? String(Number(value.toPrecision(12))) : value ?? "-",
            numbers, levels, varies: distinct.length > 1, known: present.length > 0};
}

export const columns = data.columns.map(describe);
export const objectives = data.objectives.map((one) => ({...one, column: columns[one.column]}));
export const axes = columns.filter((column) => column.role === "axis");
export const figures = columns.filter((column) => column.role !== "axis" && column.numbers && column.known);
export const shown = columns.filter((column) => column.varies && (column.role === "axis" || figures.includes(column)));

export const isGood = (point) => points.state[point] === 0;
export const good = points.state.flatMap((state, point) => state === 0 ? [point] : []);
export const frontPoints = points.front.flatMap((front, point) => front ? [point] : []);

// Where a column's values are between 0 and 1, and its ticks: {at: (value) => place, ticks: [{place, text}]}.
export function scaleOf(column, log, wanted = 6) {
    if (column.levels) {
        const place = new Map(column.levels.map((level, i) => [level, (i + 0.5) / column.levels.length])), step = Math.ceil(column.levels.length / (2 * wanted));
        return {at: (value) => place.get(value) ?? NaN, unit: "", ticks: column.levels.flatMap((level, i) => i % step ? [] : [{place: place.get(level), text: typeof level === "number" ? String(level) : level}])};
    }
    let least = Infinity, most = -Infinity;
    for (const point of good) {
        const value = column.values[point];
        if (typeof value === "number") least = Math.min(least, value), most = Math.max(most, value);
    }
    if (!(least <= most)) return {at: () => NaN, unit: "", ticks: []};
    const isTime = column.name.endsWith("_ps"), unit = isTime ? timeUnit(most) : {ps: 1, name: ""};
    const tell = (value) => String(Number((value / unit.ps).toPrecision(4)));
    if (log && least > 0) {
        const low = Math.log(least / 1.04), high = Math.log(most * 1.04), first = Math.floor(Math.log10(least)), last = Math.ceil(Math.log10(most));
        const stepsOf = (factors) => Array.from({length: last - first + 1}, (_, i) => factors.map((factor) => factor * 10 ** (first + i))).flat().filter((value) => Math.log(value) >= low && Math.log(value) <= high);
        const steps = [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9]].map(stepsOf).find((found) => found.length >= Math.min(wanted, 4)) ?? stepsOf([1, 2, 5]);
        return {at: (value) => typeof value === "number" && value > 0 ? (Math.log(value) - low) / (high - low) : NaN, unit: unit.name, ticks: steps.map((value) => ({place: (Math.log(value) - low) / (high - low), text: tell(value)}))};
    }
    const margin = (most - least || Math.abs(most) || 1) * 0.03, low = least - margin, high = most + margin;
    return {at: (value) => typeof value === "number" ? (value - low) / (high - low) : NaN, unit: unit.name,
            ticks: ticks(low / unit.ps, high / unit.ps, wanted).map((value) => ({place: (value * unit.ps - low) / (high - low), text: String(Number(value.toPrecision(6)))}))};
}

// Whether a column is better seen on a logarithmic scale: its values span more than a decade, and not by a few of them alone.
export function prefersLog(column) {
    if (column.prefersLog === undefined) {
        const values = good.map((point) => column.values[point]).filter((value) => typeof value === "number").sort((a, b) => a - b);
        column.prefersLog = !column.levels && values.length > 1 && values[0] > 0 && values.at(-1) / values[0] >= 20 && values[Math.floor(0.95 * values.length)] / values[Math.floor(0.05 * values.length)] >= 5;
    }
    return column.prefersLog;
}

// The best good point of an objective.
export function bestOf({column, goal}) {
    let best = -1;
    for (const point of good) {
        const value = column.values[point];
        if (typeof value === "number" && (best < 0 || (goal === "max" ? value > column.values[best] : value < column.values[best]))) best = point;
    }
    return best;
}

// The point to begin with: the best one in the first objective; of several, one on the front.
export function firstPoint() {
    const best = objectives.length ? bestOf(objectives[0]) : -1;
    if (best < 0) return Math.max(0, good[0] ?? 0);
    return frontPoints.find((point) => objectives[0].column.values[point] === objectives[0].column.values[best]) ?? best;
}

// ---- what the reader has chosen

export const chosen = {point: -1, brushes: new Map(), inside: new Uint8Array(pointCount), count: 0};
const listeners = [];
export const onChoice = (listener) => listeners.push(listener);
const tell = (what) => listeners.forEach((listener) => listener(what));

export function pick(point) {
    chosen.point = point;
    tell("point");
}

// Brushes: column -> {scale, from, to}. Points inside all of them are marked.
export function brush(column, range, settled) {
    if (range) chosen.brushes.set(column, range);
    else chosen.brushes.delete(column);
    markInside();
    tell(settled ? "brush" : "brushing");
}

export function markInside() {
    chosen.inside.fill(0);
    chosen.count = 0;
    for (const point of good) {
        let inside = 1;
        for (const [column, {scale, from, to}] of chosen.brushes) {
            const place = scale.at(column.values[point]);
            if (!(place >= from && place <= to)) inside = 0;
        }
        chosen.inside[point] = inside;
        chosen.count += inside;
    }
}
markInside();
