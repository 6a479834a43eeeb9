/* row.h: rows of tables for templates, and the texts that stand in them. */
#ifndef GEN_ROW_H
#define GEN_ROW_H

#include <stdint.h>

#include "tmpl.h"

/* Adds a row: a text for each column, in their order. */
void add_row(struct table *table, ...);

/* Fills a cell, still empty, of a table of one row. */
void set_cell(struct table *once, const char *column, const char *cell);

const char *number_text(uint64_t n);

/* Text that can stand in a comment, whatever it holds: printable, and without the marks of a comment. */
const char *comment_text(const char *text);

/* Where a key's value comes from: "ref_sip.yaml:14 cube.noc.link_bw_gbs", "default cube.sram.at". */
const char *place_text(struct where where, const char *key);

#endif
