/* page.h: a report of one or more runs as a single HTML page that needs nothing else.
 *
 * The page is rt/report/page/: markup, style and script, which the Makefile joins and this file embeds. The results of the
 * runs stand in it as JSON. */
#ifndef KB_PAGE_H
#define KB_PAGE_H

#include <stddef.h>
#include <stdio.h>

/* Writes the page up to its data. */
void page_begin(FILE *out);

/* Adds the results in a JSON text, which may be several, one after the other. `name` says where they come from; NULL: it is
 * not worth telling. Returns NULL, or why the text is not JSON: "line 3: a comma or } is missing". */
const char *page_add(FILE *out, const char *name, const char *text, size_t length);

/* Writes the rest of the page. */
void page_end(FILE *out);

#endif
