// ledger.js: which simplifications of the model the run has touched, and how much they can have made.

import {gauge, h, table} from "../dom.js";
import {percent, tied} from "../format.js";
import {section} from "../sections.js";

section({
    id: "ledger", title: "Not modelled", shows: (run) => run.ledger?.length,
    about: "What the machine of this model leaves out and this run has touched, with the most by which the run could last longer if that were modelled. These are limits of the simulation, not of the kernel.",
    draw: (run) => [table([
        {title: "what", of: (entry) => [h("b", {}, entry.name), h("span", {class: "change"}, tied(entry.text))]},
        {title: "at most", of: (entry) => entry.most_permille === null ? "not known" : [gauge(entry.most_permille / 1000), percent(entry.most_permille / 1000)]},
    ], run.ledger, {label: "Not modelled"})],
});
