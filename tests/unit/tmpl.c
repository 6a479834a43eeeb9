/* tmpl.c: templates: holes, rows, conditions, and what is said of a wrong one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/tmpl.h"

static const char *const once_columns[] = {"name", "count"}, *once_cells[] = {"ref", "2"};
static const char *const row_columns[] = {"row", "name"}, *row_cells[] = {"a", "inner", "b", "$name$"};
static const char *const digit_columns[] = {"digit"}, *digit_cells[] = {"0", "1"};

static struct table tables[] = {
    {"rows", row_columns, 2, row_cells, 2},
    {"digits", digit_columns, 1, digit_cells, 2},
    {"none", digit_columns, 1, NULL, 0},
};
static const struct condition conditions[] = {{"yes", true}, {"no", false}};
static const struct cells cells = {{"once", once_columns, 2, once_cells, 1}, tables, 3, conditions, 2};

static int tests;

static void result(bool good, const char *what, const char *got, const char *want)
{
    printf("%s %d - %s\n", good ? "ok" : "not ok", ++tests, what);
    if (!good)
        printf("# got  '%s'\n# want '%s'\n", got, want);
}

static const char *expand(const char *text)
{
    static struct source source;
    source = (struct source){"t.in", text, strlen(text), 0};
    return tmpl_expand(&source, &cells);
}

static void gives(const char *what, const char *template, const char *want)
{
    const char *got = expand(template);
    result(got && !strcmp(got, want), what, got ? got : "(an error)", want);
}

/* In a process of its own, because errors are counted, and its standard error goes to a file. */
static void says(const char *what, const char *template, const char *want)
{
    char said[1000];
    int status = 0;
    FILE *file = tmpfile();
    if (!file)
        exit(3);
    fflush(stdout);
    if (fork() == 0) {
        dup2(fileno(file), STDERR_FILENO);
        _exit(expand(template) ? 1 : 0);
    }
    wait(&status);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = 0;
    fclose(file);
    result(status == 0 && !strncmp(said, want, strlen(want)), what, said, want);
}

static void test_text(void)
{
    gives("a text without directives stays as it is", "int x; // it's / a /* text */\n\t\"%s\"\n",
          "int x; // it's / a /* text */\n\t\"%s\"\n");
    gives("an empty template gives an empty text", "", "");
    gives("a hole within a word is filled", "kb_$name$_$count$;", "kb_ref_2;");
    gives("holes side by side are filled", "$name$$count$", "ref2");
    gives("a template need not end in a newline", "x\n//@ if yes\ny\n//@ end", "x\ny\n");
}

static void test_blocks(void)
{
    gives("each repeats its block for every row", "//@ each rows\n$row$,\n//@ end\n", "a,\nb,\n");
    gives("a cell of a row hides one of the same name, and is not expanded again",
          "  //@ each rows\n$name$\n  //@ end\n$name$\n",
          "inner\n$name$\nref\n");
    gives("each without rows gives nothing", "x\n//@ each none\n$digit$\n//@ end\ny\n", "x\ny\n");
    gives("each within each gives every pair of rows",
          "//@ each rows\n//@ each digits\n$row$$digit$\n//@ end\n//@ end\n", "a0\na1\nb0\nb1\n");
    gives("if keeps its block when the condition holds", "//@ if yes\n1\n//@ end\n//@ if no\n2\n//@ end\n", "1\n");
    gives("else keeps its block when the condition does not hold",
          "//@ if yes\n1\n//@ else\n2\n//@ end\n//@ if no\n3\n//@ else\n4\n//@ end\n", "1\n4\n");
    gives("if within a dropped block is dropped",
          "//@ if no\n//@ if yes\n1\n//@ else\n2\n//@ end\n//@ else\n3\n//@ end\n", "3\n");
    gives("if within each is decided for every row", "//@ each rows\n//@ if yes\n$row$\n//@ end\n//@ end\n", "a\nb\n");
}

static void test_errors(void)
{
    says("an unknown hole is an error", "x\n  $nmae$\n", "t.in:2:4: error: no hole 'nmae'");
    says("a hole of a table outside its rows is an error", "$row$", "t.in:1:2: error: no hole 'row'");
    says("an unknown hole in a dropped block is an error", "//@ if no\n$nmae$\n//@ end\n",
         "t.in:2:2: error: no hole 'nmae'");
    says("an unknown hole in a table without rows is an error", "//@ each none\n$nmae$\n//@ end\n",
         "t.in:2:2: error: no hole 'nmae'");
    says("an unknown table is an error", "//@ each rws\n//@ end\n", "t.in:1:10: error: no table 'rws'");
    says("an unknown condition is an error", "//@ if maybe\n//@ end\n", "t.in:1:8: error: no condition 'maybe'");
    says("a '$' alone is an error", "a $ b", "t.in:1:3: error: a '$' that begins no hole");
    says("an unknown directive is an error", "  //@ loop rows\n", "t.in:1:3: error: no directive");
    says("text after a directive is an error", "//@ end of it\n", "t.in:1:1: error: no directive");
    says("a directive after code is an error", "x = 1; //@ if yes\n//@ end\n", "t.in:1:8: error: no directive");
    says("each without end is an error", "x\n//@ each rows\n$row$\n", "t.in:2:10: error: 'each' without its 'end'");
    says("if without end is an error", "//@ if yes\n1\n//@ else\n", "t.in:1:8: error: 'if' without its 'end'");
    says("a second else is an error", "//@ if yes\n//@ else\n//@ else\n//@ end\n",
         "t.in:1:8: error: 'if' without its 'end'");
    says("end without a block is an error", "1\n//@ end\n", "t.in:2:1: error: 'end' without a block");
    says("else without a block is an error", "//@ else\n", "t.in:1:1: error: 'else' without a block");
}

/* Blocks that are nested without end are an error, not a crash. */
static void test_depth(void)
{
    char template[100 * sizeof "//@ if yes\n"], *end = template;
    for (int i = 0; i < 100; i++)
        end = stpcpy(end, "//@ if yes\n");
    says("blocks nested more than 16 deep are an error", template,
         "t.in:17:8: error: blocks are nested more than 16 deep");
}

int main(void)
{
    program_name = "tmpl";
    test_text();
    test_blocks();
    test_errors();
    test_depth();
    printf("1..%d\n", tests);
    return 0;
}
