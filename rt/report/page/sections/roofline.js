// roofline.js: rates of matrix products by FLOP per byte of HBM, below what the machine can do.

import {chartWidth, h, s, tableBehind} from "../dom.js";
import {bytes, count, digits, percent, time} from "../format.js";
import {peakOf} from "../result.js";
import {section} from "../sections.js";

const ROOF_HIGH = 440, ROOF_LEFT = 84, ROOF_RIGHT = 24, ROOF_TOP = 34, ROOF_FOOT = 60;

// Points: the run, and its launches if there are several.
function pointsOf(run) {
    const points = [], works = run.activity.launches, hbm = run.bytes.hbm.read + run.bytes.hbm.write;
    points.push({name: "the run", flop: run.util.gemm_flop, bytes: hbm, ps: run.util.span_ps, whole: true});
    (run.launches ?? []).forEach((launch, i) => {
        const work = works[i];
        if (run.launches.length > 1 && work?.flop && work.hbm_bytes && launch.done_ps)
            points.push({name: `${launch.program}, launch ${i + 1}`, flop: work.flop, bytes: work.hbm_bytes, ps: launch.done_ps - launch.start_ps});
    });
    for (const point of points) point.x = point.flop / point.bytes, point.y = point.flop / point.ps * 1e12;
    return points.filter((point) => point.bytes && point.ps);
}

const decades = (from, to) => Array.from({length: Math.round(Math.log10(to / from)) + 1}, (_, i) => from * 10 ** i);

function drawRoofline(run) {
    const wide = chartWidth(), {machine} = run, points = pointsOf(run), peak = peakOf(run), ridge = peak.flops / machine.hbm_bps;
    const lowX = Math.min(ridge / 20, ...points.map((point) => point.x / 2)), highX = Math.max(ridge * 20, ...points.map((point) => point.x * 4));
    const x0 = 10 ** Math.floor(Math.log10(lowX)), x1 = 10 ** Math.ceil(Math.log10(highX));
    const y1 = 10 ** Math.ceil(Math.log10(peak.flops * 1.05)), y0 = 10 ** Math.floor(Math.log10(Math.min(peak.flops / 50, ...points.map((point) => point.y / 2))));
    const x = (n) => ROOF_LEFT + Math.log(n / x0) / Math.log(x1 / x0) * (wide - ROOF_LEFT - ROOF_RIGHT), y = (n) => ROOF_HIGH - ROOF_FOOT - Math.log(n / y0) / Math.log(y1 / y0) * (ROOF_HIGH - ROOF_FOOT - ROOF_TOP);
    const svg = s("svg", {viewBox: `0 0 ${wide} ${ROOF_HIGH}`, class: "roofline", role: "img", "aria-label": "Roofline; the table below has its points"});
    for (const at of decades(x0, x1)) svg.append(s("line", {class: "grid", x1: x(at), x2: x(at), y1: ROOF_TOP, y2: ROOF_HIGH - ROOF_FOOT}), s("text", {class: "tick mid", x: x(at), y: ROOF_HIGH - ROOF_FOOT + 21}, digits(at)));
    for (const at of decades(y0, y1)) svg.append(s("line", {class: "grid", x1: ROOF_LEFT, x2: wide - ROOF_RIGHT, y1: y(at), y2: y(at)}), s("text", {class: "tick end", x: ROOF_LEFT - 8, y: y(at) + 4}, count(at, "FLOP/s")));
    const foot = Math.max(x0, y0 / machine.hbm_bps);
    svg.append(s("polyline", {class: "roof", points: `${x(foot)},${y(foot * machine.hbm_bps)} ${x(ridge)},${y(peak.flops)} ${x(x1)},${y(peak.flops)}`}),
               s("text", {class: "label end", x: wide - ROOF_RIGHT, y: y(peak.flops) - 9}, `${peak.dtype} peak, ${count(peak.flops, "FLOP/s")}`));
    // The label of the slope, at its middle or, if the run is there, towards its farther end.
    const place = Math.log(points[0].x / foot) / Math.log(ridge / foot);
    const slopeX = foot * (ridge / foot) ** (Math.abs(place - 0.5) > 0.35 ? 0.5 : place < 0.5 ? 0.8 : 0.2), angle = Math.atan2(y(foot * machine.hbm_bps) - y(peak.flops), x(ridge) - x(foot)) * -180 / Math.PI;
    for (const point of [...points].reverse()) {
        svg.append(s("circle", {class: point.whole ? "point whole" : "point", cx: x(point.x), cy: y(point.y), r: point.whole ? 7 : 4.5, "data-point": point.name}, s("title", {}, `${point.name}: ${count(point.y, "FLOP/s")}`)));
        if (point.whole) svg.append(s("line", {class: "drop", x1: x(point.x), x2: x(point.x), y1: y(point.y) + 7, y2: ROOF_HIGH - ROOF_FOOT}),
                                    s("text", {class: "label strong mid", x: Math.max(ROOF_LEFT + 90, Math.min(wide - ROOF_RIGHT - 90, x(point.x))), y: y(point.y) + 30}, `${point.name}: ${count(point.y, "FLOP/s")}`));
    }
    svg.append(wide < 600 ? s("text", {class: "label", x: x(slopeX) + 12, y: y(slopeX * machine.hbm_bps) + 16}, `HBM, ${count(machine.hbm_bps, "B/s")}`)
        : s("text", {class: "label mid", transform: `translate(${x(slopeX)} ${y(slopeX * machine.hbm_bps) - 9}) rotate(${angle})`}, `HBM, ${count(machine.hbm_bps, "B/s")}`));
    svg.append(s("text", {class: "tick mid", x: (ROOF_LEFT + wide - ROOF_RIGHT) / 2, y: ROOF_HIGH - 6}, "FLOP per byte of HBM"));
    const roof = (point) => Math.min(peak.flops, point.x * machine.hbm_bps);
    return [svg, tableBehind("Table: points of the roofline", [
        {title: "point", of: (point) => point.name}, {title: "FLOP", number: true, of: (point) => count(point.flop, "FLOP")}, {title: "HBM", number: true, of: (point) => bytes(point.bytes)},
        {title: "time", number: true, of: (point) => time(point.ps)}, {title: "FLOP/byte", number: true, of: (point) => digits(point.x)}, {title: "rate", number: true, of: (point) => count(point.y, "FLOP/s")},
        {title: "of the roof above it", number: true, of: (point) => percent(point.y / roof(point))},
    ], () => points)];
}

section({
    id: "roofline", title: "Roofline", shows: (run) => run.activity && run.machine?.hbm_bps && run.util?.gemm_flop > 0 && run.util.span_ps && run.bytes.hbm.read + run.bytes.hbm.write > 0 && peakOf(run).flops,
    about: "The rate of matrix products by how many of their operations come to a byte that HBM moves. No run can be above the line: left of its bend HBM sets it, right of it the arrays. The distance to the line is what a better schedule could gain; moving right takes fewer bytes.",
    draw: drawRoofline,
});
