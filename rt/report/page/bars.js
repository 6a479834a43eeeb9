// bars.js: a stacked bar for each of many things, sorted; neighbours share a bar where there are more than fit.

import {chartWidth, h, s, swatch} from "./dom.js";
import {niceAbove, ticks} from "./format.js";
import {sum} from "./result.js";

const BARS_HIGH = 280, DIGIT = 7.7, BARS_GAP = 6, BARS_FOOT = 8, BARS_MOST = 256;

export const colourKeys = (parts) => h("div", {class: "keys"}, parts.map((part) => h("span", {class: "key"}, swatch(part.colour), part.name)));

// `order`: the things, the tallest first. `parts`: {name, colour, of: (thing) => amount}. `name` and `text` are a thing's name and
// what is said of it, `unit` that of the axis, `label` what a reader hears.
export function stackedBars({order, parts, name, text, unit, label}) {
    const wide = chartWidth(), total = (thing) => sum(parts.map((part) => part.of(thing)));
    const bars = Math.min(order.length, BARS_MOST), most = niceAbove(Math.max(...order.map(total)));
    const scale = ticks(0, most, 5).map((tick) => ({tick, label: String(Number(tick.toPrecision(3)))}));
    const axis = BARS_GAP + DIGIT * Math.max(...scale.map((one) => one.label.length)), width = (wide - axis) / bars;
    const y = (amount) => BARS_HIGH - BARS_FOOT - amount / most * (BARS_HIGH - BARS_FOOT - 10);
    const svg = s("svg", {viewBox: `0 0 ${wide} ${BARS_HIGH}`, class: "bars", role: "img", "aria-label": label});
    for (const {tick, label} of scale)
        svg.append(s("line", {class: "grid", x1: axis, x2: wide, y1: y(tick), y2: y(tick)}), s("text", {class: "tick end", x: axis - BARS_GAP, y: y(tick) + 4}, label));
    for (let bar = 0; bar < bars; bar++) {
        const members = order.slice(Math.floor(bar * order.length / bars), Math.floor((bar + 1) * order.length / bars));
        const group = s("g", {}, s("title", {}, members.length === 1 ? `${name(members[0])}: ${text(members[0])}` : `${members.length} from ${name(members[0])} to ${name(members.at(-1))}`));
        let below = 0;
        for (const part of parts) {
            const amount = sum(members.map(part.of)) / members.length;
            if (amount > 0) group.append(s("rect", {class: `fill-${part.colour}`, x: axis + bar * width, y: y(below + amount), width: Math.max(0.5, width - (width > 3 ? 0.8 : 0)), height: Math.max(0, y(below) - y(below + amount))}));
            below += amount;
        }
        svg.append(group);
    }
    return [colourKeys(parts), h("p", {class: "unit"}, unit), svg];
}
