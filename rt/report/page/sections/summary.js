// summary.js: what ran, and the verdict in a sentence. It is drawn above the list of sections.

import {h, table} from "../dom.js";
import {bytes, count, digits, percent, time, whole} from "../format.js";
import {boundShare, counted, isGood, peCount, peakOf, runName, utilShare} from "../result.js";
import {section} from "../sections.js";

function howItEnded(run) {
    const failed = (run.launches ?? []).find((launch) => launch.failure);
    if (run.interrupted) return `was ended by ${run.ended_by} at ${time(run.end_ps)}`;
    if (run.fault) return `failed: ${run.fault}`;
    if (run.error) return `failed: ${run.error}`;
    if (failed) return `failed with ${failed.failure.code} at ${failed.failure.node} after ${time(failed.failure.t_ps)}`;
    return `took ${time(run.end_ps)}`;
}

function whatBoundsIt(run) {
    const by = run.bound_by;
    if (!by) return "";
    const share = percent(boundShare(run));
    if (by.reason === "latency") return `; no part was busy for half of that time (most: ${by.resource}, ${share}), so its steps wait for one another`;
    if (by.reason === "transfers") return `; transfers bound it: ${by.resource} was ${share} busy, and data queued longest for ${by.queue}`;
    return `; ${by.resource}, ${share} busy, bounds it`;
}

function howFarFromBest(run) {
    const problem = (run.bounds ?? []).length === 1 ? run.bounds[0].problem : null;
    return problem?.bound_ps ? `. No kernel for this problem could be done before ${time(problem.bound_ps)}, so it reached ${percent(problem.reached_permille / 1000)} of the best` : "";
}

function whetherRight(run) {
    const verified = run.verify ?? [], right = verified.filter((one) => one.status === "ok").length, races = (run.races ?? []).length;
    const data = !verified.length ? "" : verified.every((one) => one.status === "skipped") ? " Its data were not computed."
        : right === verified.length ? ` ${right === 1 ? "Its verified result is" : `All ${right} verified results are`} right.`
        : ` ${verified.length - right} of ${verified.length} verified results are not right.`;
    return data + (races ? ` ${races} ${races === 1 ? "pair of calls races" : "pairs of calls race"}.` : "");
}

export const verdict = (run) => `${run.bench ?? "The command stream"} on ${run.system} ${howItEnded(run)}${whatBoundsIt(run)}${howFarFromBest(run)}.${whetherRight(run)}`;

function tile(name, figure, note, state) {
    return h("div", {class: `tile ${state ?? ""}`, "data-figure": name},
             h("dt", {}, name), h("dd", {class: "figure"}, figure), h("dd", {class: "note"}, note));
}

export function keyFigures(run) {
    const tiles = [tile("Simulated time", time(run.end_ps), `${whole(run.end_ps)} ps`)];
    const flop = run.util?.gemm_flop, span = run.util?.span_ps, peak = peakOf(run);
    if (flop && span)
        tiles.push(tile("Matrix products", count(flop / span * 1e12, "FLOP/s"),
                        peak.flops ? `${percent(flop / span * 1e12 / peak.flops)} of the peak in ${peak.dtype}` : `${count(flop, "FLOP")} in all`));
    const hbm = run.bytes?.hbm;
    if (hbm && hbm.read + hbm.write)
        tiles.push(tile("HBM", bytes(hbm.read + hbm.write), `${percent(utilShare(run, "hbm"))} busy`));
    if (run.bound_by)
        tiles.push(tile("Busiest", run.bound_by.resource, `${percent(boundShare(run))} busy`));
    const verified = run.verify ?? [], wrong = verified.filter((one) => one.status !== "ok");
    if (verified.length && !verified.every((one) => one.status === "skipped"))
        tiles.push(tile("Verified", wrong.length ? `${wrong.length} not right` : `${verified.length} right`,
                        wrong.length ? wrong.map((one) => one.tensor).join(", ") : verified.map((one) => one.tensor).slice(0, 4).join(", "), wrong.length ? "bad" : "good"));
    if (run.race_check)
        tiles.push(tile("Races", String((run.races ?? []).length), `${whole(run.race_check.compared)} operations compared`, (run.races ?? []).length ? "bad" : "good"));
    return h("dl", {class: "tiles"}, tiles);
}

function facts(run) {
    const machine = run.machine, rows = [];
    const add = (name, text) => rows.push({name, text});
    for (const [name, given] of Object.entries(run.params ?? {})) add(`parameter ${name}`, String(given));
    if (run.seed !== undefined) add("seed", String(run.seed));
    if (machine) {
        add("machine", `${machine.name}: ${counted(peCount(machine), "PE")} in ${counted(machine.sips * machine.cubes[0] * machine.cubes[1], "cube")}, ${counted(machine.sips, "SIP")}`);
        add("topology", machine.topology);
        add("kbgen", machine.kbgen);
        if (machine.hbm_bps) add("HBM bandwidth", count(machine.hbm_bps, "B/s"));
        const peak = peakOf(run);
        if (peak.flops) add(`peak in ${peak.dtype}`, count(peak.flops, "FLOP/s"));
    }
    for (const [name, figure] of Object.entries(run.figures ?? {}))
        add(`figure ${name}`, name.endsWith("_ps") ? time(figure) : name.endsWith("_bytes_per_s") ? count(figure, "B/s") : String(figure));
    for (const note of run.notes ?? []) add("note", note);
    if (run.host) add("host", `${digits(run.host.seconds)} s, ${whole(run.host.events)} events`);
    if (run.file) add("file", run.file);
    if (run.status !== undefined) add("exit status", String(run.status));
    return rows;
}

export function head(run) {
    return [h("p", {class: "maker"}, "kbgen report"), h("h1", {}, runName(run), h("span", {class: "on"}, ` on ${run.system}`)),
            h("p", {class: `verdict ${isGood(run) ? "" : "bad"}`}, verdict(run)), keyFigures(run)];
}

section({
    id: "what", title: "What ran", shows: () => true,
    about: "The bench, its parameters and the machine. Runs with the same of all these give the same times, byte by byte; only the host's time differs.",
    draw: (run) => [table([{title: "what", of: (row) => row.name}, {title: "value", of: (row) => row.text}], facts(run), {label: "What ran"})],
});
