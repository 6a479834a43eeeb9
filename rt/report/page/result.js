// result.js: the results on the page, and the series of frames in them (docs/results.md, Activity).

const given = JSON.parse(document.getElementById("data").textContent);

export const runs = given.runs.map((run, i) => ({...run.result, file: run.file, number: i}));

// Of a page that `SIM web` serves: its machine and benches.
export const web = given.web;
export const addRun = (result, name) => runs[runs.push({...result, file: name, number: runs.length}) - 1];

// A name for a run that tells it from the others.
export function runName(run) {
    return runs.length > 1 ? `${String.fromCharCode(65 + run.number % 26)} ${run.file ?? run.bench ?? run.system}` : run.bench ?? run.system;
}

export const runLetter = (run) => String.fromCharCode(65 + run.number % 26);

const levels = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
const levelOf = new Uint8Array(128);
for (let i = 0; i < 64; i++) levelOf[levels.charCodeAt(i)] = i;

// The value of a series for a unit in a frame.
export function value(series, unit, frame) {
    const row = series.rows[series.row_of[unit]];
    return frame < row.length ? levelOf[row.charCodeAt(frame)] * series.full / 63 : 0;
}

// The mean over all units of a series, frame by frame.
export function means(series, frames) {
    const uses = new Uint32Array(series.rows.length), sums = new Float64Array(frames);
    for (const row of series.row_of) uses[row]++;
    series.rows.forEach((row, i) => {
        for (let frame = 0; frame < row.length; frame++) sums[frame] += uses[i] * levelOf[row.charCodeAt(frame)];
    });
    return Array.from(sums, (sum) => sum * series.full / 63 / series.row_of.length);
}

// The largest over all units, frame by frame.
export function maxima(series, frames) {
    const most = new Float64Array(frames);
    for (const row of series.rows)
        for (let frame = 0; frame < row.length; frame++) most[frame] = Math.max(most[frame], levelOf[row.charCodeAt(frame)]);
    return Array.from(most, (level) => level * series.full / 63);
}

export function largest(series) {
    let most = 0;
    for (const row of series.rows)
        for (let frame = 0; frame < row.length; frame++) most = Math.max(most, levelOf[row.charCodeAt(frame)]);
    return most * series.full / 63;
}

export const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

// Engines and what else a PE may be seen doing, in the order of pictures. `colour` is a class and a variable of style.css.
export const engines = [
    {name: "pe_gemm", letter: "g", colour: "gemm", does: "matrix products"},
    {name: "pe_math", letter: "m", colour: "math", does: "element-wise operations"},
    {name: "pe_dma comm", letter: "c", colour: "comm", does: "messages to other PEs"},
    {name: "pe_dma write", letter: "w", colour: "write", does: "writes to memories"},
    {name: "pe_dma read", letter: "r", colour: "read", does: "reads from memories"},
    {name: "pe_fetch_store", letter: "f", colour: "fetch", does: "moves between scratchpad and registers"},
    {name: "pe_scheduler", letter: "s", colour: "scheduler", does: "takes commands"},
];

export const enginesOf = (run) => engines.filter((engine) => run.activity?.engines[engine.name]);

export const peCount = (machine) => machine.sips * machine.cubes[0] * machine.cubes[1] * machine.cube_pes;

export function peName(machine, pe) {
    const cube = Math.floor(pe / machine.cube_pes), cubes = machine.cubes[0] * machine.cubes[1];
    return `sip${Math.floor(cube / cubes)}.cube${cube % cubes}.pe${pe % machine.cube_pes}`;
}

export const sliceCount = (machine) => peCount(machine) / machine.cube_pes * machine.cube_slices;

export const sliceName = (machine, slice) => peName(machine, Math.floor(slice / machine.cube_slices) * machine.cube_pes).replace(/pe0$/, `hbm_ctrl.pe${slice % machine.cube_slices}`);

// The HBM slice that a PE calls its own.
export const ownSlice = (machine, pe) => Math.floor(pe / machine.cube_pes) * machine.cube_slices + Math.floor(pe % machine.cube_pes * machine.cube_slices / machine.cube_pes);

// A unit is what a row of frames is of: a PE; in a large machine a cube or a SIP. Rows of HBM are of a slice, or likewise.
export function unitPes(run) {
    const machine = run.machine;
    return {pe: 1, cube: machine.cube_pes, sip: machine.cube_pes * machine.cubes[0] * machine.cubes[1]}[run.activity.of];
}

export const unitName = (run, unit) => peName(run.machine, unit * unitPes(run)).split(".").slice(0, {sip: 1, cube: 2, pe: 3}[run.activity.of]).join(".");

// A rank as SIP, cube and node; of the nodes outside of cubes `node` is their name.
export function placeOf(machine, rank) {
    const [system, outer] = machine.first_ranks, cubes = machine.cubes[0] * machine.cubes[1];
    const sipNodes = outer + cubes * machine.cube_nodes;
    if (rank < system) return {node: ["host", "switch"][rank]};
    const sip = Math.floor((rank - system) / sipNodes), inSip = (rank - system) % sipNodes;
    if (inSip < outer) return {sip, node: ["pcie_ep", "io_cpu"][inSip]};
    return {sip, cube: Math.floor((inSip - outer) / machine.cube_nodes), node: (inSip - outer) % machine.cube_nodes};
}

export function rankOf(machine, sip, cube, node) {
    const [system, outer] = machine.first_ranks;
    return system + sip * (outer + machine.cubes[0] * machine.cubes[1] * machine.cube_nodes) + outer + cube * machine.cube_nodes + node;
}

export function nodeName(machine, place) {
    if (place.cube === undefined) return place.sip === undefined ? place.node : `sip${place.sip}.${place.node}`;
    const node = machine.nodes.find((one) => one.node === place.node);
    const inCube = !node ? `node ${place.node}`
        : node.kind === "router" ? `noc.r${node.at[0]}c${node.at[1]}`
        : node.kind === "port" ? `port.${"nesw"[node.index]}`
        : node.kind === "hbm_ctrl" ? `hbm_ctrl.pe${node.index}`
        : node.kind.startsWith("pe_") ? `pe${node.index}.${node.kind}` : node.kind;
    return `sip${place.sip}.cube${place.cube}.${inCube}`;
}

// Names of resources as keys of "util", for people.
export const utilNames = (run) => Object.keys(run.util ?? {}).filter((key) => typeof run.util[key] === "object" && run.util[key].busy_ps > 0);
export const utilShare = (run, key) => {
    const of = run.util?.[key];
    return of && run.util.span_ps ? of.busy_ps / (run.util.span_ps * of.servers) : 0;
};

// The busiest resource, as "bound_by" names it: how busy it was.
export function boundShare(run) {
    const of = run.util?.[run.bound_by.resource];
    return of ? of.busiest_ps / (run.util.span_ps * of.busiest_servers) : run.bound_by.busy_permille / 1000;
}

// FLOP per second at peak: of the bench's dtype if it has one, else of f16, else the largest.
export function peakOf(run) {
    const peaks = run.machine?.peak_flops ?? {}, largest = Object.entries(peaks).sort((a, b) => b[1] - a[1])[0]?.[0];
    const dtype = [run.params?.dtype, "f16", largest].find((one) => peaks[one]);
    return {dtype, flops: peaks[dtype] ?? 0};
}

// Whether a run ended as it should, with the results that it should have.
export const isGood = (run) => !run.status && !run.interrupted && (run.launches ?? []).every((launch) => launch.status === "ok");

export const counted = (n, what) => `${n.toLocaleString("en-US")} ${what}${n === 1 ? "" : "s"}`;
