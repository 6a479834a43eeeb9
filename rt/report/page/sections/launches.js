// launches.js: launches and memory requests of the host, in time.

import {chartWidth, h, s, table} from "../dom.js";
import {ticks, time, timeUnit} from "../format.js";
import {section} from "../sections.js";

const REQUESTS_ROW = 20, REQUESTS_FOOT = 30, REQUESTS_ROWS_MOST = 60;

function requestsOf(run) {
    const launches = (run.launches ?? []).map((launch, i) => ({name: launch.program, number: i + 1, what: "launch", from: launch.submitted_ps, start: launch.start_ps, to: launch.done_ps ?? run.end_ps, status: launch.status, launch}));
    const memory = (run.memory ?? []).map((request) => ({name: request.do, what: request.do, from: request.submitted_ps, to: request.done_ps, status: request.status}));
    return [...launches, ...memory].filter((one) => one.from !== null).sort((a, b) => a.from - b.from || b.to - a.to);
}

function drawRequests(run, requests) {
    const wide = chartWidth(), left = wide < 600 ? 96 : 150, shown = requests.slice(0, REQUESTS_ROWS_MOST), high = shown.length * REQUESTS_ROW + REQUESTS_FOOT, unit = timeUnit(run.end_ps);
    const most = wide < 600 ? 12 : 19;
    const x = (ps) => left + ps / run.end_ps * (wide - left - 20);
    const svg = s("svg", {viewBox: `0 0 ${wide} ${high}`, class: "requests", role: "img", "aria-label": "Launches and memory requests in time; the table below has them"});
    for (const tick of ticks(0, run.end_ps / unit.ps, wide / 110)) svg.append(s("line", {class: "grid", x1: x(tick * unit.ps), x2: x(tick * unit.ps), y1: 0, y2: high - REQUESTS_FOOT}), s("text", {class: "tick mid", x: x(tick * unit.ps), y: high - REQUESTS_FOOT + 18}, `${Number(tick.toPrecision(6))} ${unit.name}`));
    shown.forEach((one, i) => {
        const bar = (from, to, kind) => s("rect", {class: kind, x: x(from), y: i * REQUESTS_ROW + 3, width: Math.max(1.5, x(to) - x(from)), height: REQUESTS_ROW - 6, rx: 2});
        svg.append(s("text", {class: "tick end", x: left - 8, y: i * REQUESTS_ROW + REQUESTS_ROW / 2 + 4}, one.name.length > most ? `${one.name.slice(0, most - 1)}…` : one.name), bar(one.from, one.to, one.what === "launch" ? "way" : "fill-hbm"));
        if (one.what === "launch" && one.start !== null) svg.append(bar(one.start, Math.min(one.to, one.start + one.launch.pe_exec_ps), one.status === "ok" ? "fill-gemm" : "fill-bad"));
    });
    return svg;
}

section({
    id: "launches", title: "Launches", shows: (run) => (run.launches ?? []).length + (run.memory ?? []).length,
    about: "What the host asked for, in the order of submission. The pale part of a launch is its way from the host to the PEs and back; in the dark part its kernels run.",
    draw: (run) => {
        const requests = requestsOf(run);
        return [drawRequests(run, requests), requests.length > REQUESTS_ROWS_MOST ? h("p", {class: "note"}, `The picture has the first ${REQUESTS_ROWS_MOST} of ${requests.length}.`) : null, table([
            {title: "what", of: (one) => one.name}, {title: "status", of: (one) => one.status},
            {title: "submitted", number: true, of: (one) => time(one.from)}, {title: "kernels start", number: true, of: (one) => one.start === undefined || one.start === null ? "" : time(one.start)},
            {title: "done", number: true, of: (one) => time(one.to)}, {title: "longest kernel", number: true, of: (one) => one.launch ? time(one.launch.pe_exec_ps) : ""},
            {title: "longest DMA", number: true, of: (one) => one.launch ? time(one.launch.dma_ps) : ""}, {title: "longest compute", number: true, of: (one) => one.launch ? time(one.launch.compute_ps) : ""},
        ], requests.slice(0, 500), {label: "Launches"})];
    },
});
