// waits.js: how long tiles of each PE waited in the queue of each stage, PEs sorted.

import {chartWidth, h, s, swatch, tableBehind} from "../dom.js";
import {digits, niceAbove, ticks, time} from "../format.js";
import {enginesOf, peCount, peName, sum} from "../result.js";
import {section} from "../sections.js";

const WAITS_HIGH = 280, WAITS_AXIS = 46, WAITS_FOOT = 8, BARS_MOST = 256;

function drawWaits(run) {
    const wide = chartWidth(), {machine, activity} = run, span = run.util?.span_ps || run.end_ps, pes = peCount(machine);
    const of = enginesOf(run), waits = of.map((engine) => activity.engines[engine.name].wait_ps);
    const total = (pe) => sum(waits.map((list) => list[pe])), order = Array.from({length: pes}, (_, pe) => pe).sort((a, b) => total(b) - total(a) || a - b);
    const bars = Math.min(pes, BARS_MOST), most = niceAbove(total(order[0]) / span), width = (wide - WAITS_AXIS) / bars;
    const y = (amount) => WAITS_HIGH - WAITS_FOOT - amount / most * (WAITS_HIGH - WAITS_FOOT - 10);
    const svg = s("svg", {viewBox: `0 0 ${wide} ${WAITS_HIGH}`, class: "bars", role: "img", "aria-label": "Waiting tiles of each PE, the most first"});
    for (const tick of ticks(0, most, 5))
        svg.append(s("line", {class: "grid", x1: WAITS_AXIS, x2: wide, y1: y(tick), y2: y(tick)}), s("text", {class: "tick end", x: WAITS_AXIS - 6, y: y(tick) + 4}, String(Number(tick.toPrecision(3)))));
    for (let bar = 0; bar < bars; bar++) {
        const members = order.slice(Math.floor(bar * pes / bars), Math.floor((bar + 1) * pes / bars));
        let below = 0;
        const group = s("g", {}, s("title", {}, members.length === 1 ? `${peName(machine, members[0])}: ${digits(total(members[0]) / span)} tiles waiting` : `${members.length} PEs`));
        of.forEach((engine, i) => {
            const amount = sum(members.map((pe) => waits[i][pe])) / members.length / span;
            if (amount > 0) group.append(s("rect", {class: `fill-${engine.colour}`, x: WAITS_AXIS + bar * width, y: y(below + amount), width: Math.max(0.5, width - (width > 3 ? 0.8 : 0)), height: Math.max(0, y(below) - y(below + amount))}));
            below += amount;
        });
        svg.append(group);
    }
    return [
        h("div", {class: "keys"}, of.map((engine) => h("span", {class: "key"}, swatch(engine.colour), `for ${engine.name}`))), h("p", {class: "unit"}, "tiles waiting, mean over the run"), svg,
        h("p", {class: "ends note"}, h("span", {}, `most: ${peName(machine, order[0])}`), h("span", {}, `least: ${peName(machine, order[pes - 1])}`)),
        tableBehind("Table: waits of each PE", [
            {title: "PE", of: (pe) => peName(machine, pe)}, {title: "all waits", number: true, of: (pe) => time(total(pe))},
            ...of.map((engine, i) => ({title: `for ${engine.name}`, number: true, of: (pe) => time(waits[i][pe])})),
        ], () => order),
    ];
}

section({
    id: "waits", title: "Waits", shows: (run) => run.machine && run.activity && enginesOf(run).some((engine) => run.activity.engines[engine.name].wait_ps.some((ps) => ps > 0)),
    about: "How many tiles and commands of each PE waited for each part, as a mean over the run: waits of several tiles at a time add up. A long wait for a busy part is work in store; a long wait for a part that is seldom busy is a stall behind it.",
    draw: drawWaits,
});
