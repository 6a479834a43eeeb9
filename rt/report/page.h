/* page.h: a report of one or more runs as a single HTML page that needs nothing else.
 *
 * The page is rt/report/page/: markup, style and script, which the Makefile joins and this file embeds. It holds
 * the results of the runs as JSON. */
#ifndef KB_PAGE_H
#define KB_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes the page up to its data. A page that is served may ask its server, and no one else, for more. */
void page_begin(FILE *out, bool served);

/* Adds the results in a JSON text, which may be several, one after the other. `name` says where they come from; NULL: it is
 * not worth telling. Returns NULL, or why they are none: "line 3: a comma or } is missing". */
const char *page_add(FILE *out, const char *name, const char *text, size_t length);

/* Writes the rest of the page. `members` of its data follow the runs: JSON, such as "web":{}; NULL: none. */
void page_end(FILE *out, const char *members);

/* Returns a JSON object as a page has it, in memory of malloc; NULL: the text is not one. */
char *page_object(const char *text, size_t length);

/* Returns the result on the page of a run, likewise; NULL: the text is not such a page. */
char *page_result(const char *page);

#endif
