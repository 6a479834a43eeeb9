// sections.js: the list of sections. A section appears if the run has the keys that it is about.
//
//     section({id, title, shows: (run) => ..., draw: (run) => [elements]})
//
// `about` is the caption: what the section means, in a sentence or two; a text, or a function of the run.

export const sections = [];
export const section = (one) => sections.push(one);
