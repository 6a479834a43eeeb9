// whatif.js: what each number of the machine would gain, changed alone (SIM whatif).

import {gauge, h, table, tableBehind} from "../dom.js";
import {percent, time} from "../format.js";
import {section} from "../sections.js";

section({
    id: "whatif", title: "What would help", shows: (run) => Array.isArray(run.changes),
    about: (run) => `The run repeated with each number of the machine changed alone, by ${run.by} in the better direction. The elasticity is the share of the run's time that is in proportion to that number: what limits the run has a large one.`,
    draw: (run) => [
        run.changes.length ? table([
            {title: "number", of: (one) => [h("b", {}, one.key ?? one.param), one.place ? h("span", {class: "change"}, one.place) : null]},
            {title: "from", number: true, of: (one) => one.value}, {title: "to", number: true, of: (one) => one.changed},
            {title: "shorter by", of: (one) => [gauge(one.gain), percent(one.gain)]}, {title: "takes", number: true, of: (one) => time(one.end_ps)},
            {title: "elasticity", number: true, of: (one) => one.elasticity === undefined || one.elasticity === null ? "" : one.elasticity.toFixed(2)},
        ], run.changes, {label: "What would help"}) : h("p", {}, "No number changed the time of the run."),
        (run.unchanged ?? []).length ? tableBehind(`Table: ${run.unchanged.length} that change nothing`, [{title: "number", of: (name) => name}], () => run.unchanged) : null,
        (run.failed ?? []).length ? tableBehind(`Table: ${run.failed.length} that the run does not stand`, [{title: "number", of: (one) => one.key ?? one.param}, {title: "to", of: (one) => one.changed}, {title: "what happens", of: (one) => one.error}], () => run.failed) : null,
    ].filter(Boolean),
});
