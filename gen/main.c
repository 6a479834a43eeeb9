/* main.c: kbgen, a compiler from the description of a machine to a simulator of it: the passes, in order.
 *
 *     topology.yaml -> model       check_topology: every number in base units, every name resolved
 *     model -> plan                elaborate, wire, measure, route: nodes, links, totals, tables of next steps
 *     plan -> C                    emit: templates filled with the plan's rows
 *     C -> simulator               gen/build: nothing is done twice that an earlier call has done:
 *                                      build_is_known      an equal simulator, or one of the same structure, is there
 *                                      check_models        if not: the user's models define what that C calls
 *                                      build_simulator     patched, or compiled and linked with the runtime
 *
 * All errors of the input are found before anything is written.
 *
 * Subcommands search spaces of such machines (gen/search). */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../rt/common/arena.h"
#include "../rt/common/completion.h"
#include "../rt/common/diag.h"
#include "../rt/common/temporary.h"
#include "../rt/common/yaml.h"
#include "build/batch.h"
#include "build/build.h"
#include "build/depfile.h"
#include "build/home.h"
#include "build/output.h"
#include "build/process.h"
#include "build/timing.h"
#include "check.h"
#include "dump.h"
#include "dump_schema.h"
#include "emit.h"
#include "options.h"
#include "schema.h"
#include "search/front.h"
#include "search/merge.h"
#include "search/point.h"
#include "search/report.h"
#include "search/search.h"
#include "search/space_schema.h"

static const struct subcommand *const subcommands[] = {
    &search_subcommand, &front_subcommand, &point_subcommand, &report_subcommand, &merge_subcommand, NULL,
};

static void version_print(void)
{
    puts("kbgen " KBGEN_VERSION);
}

static void offer_keys(const struct key *of)
{
    for (size_t i = 0; i < of->count; i++)
        if (of->keys[i].count)
            offer_keys(&of->keys[i]);
        else
            completion_offer(arena_printf("%s=", of->keys[i].path), of->keys[i].doc);
}

/* Offers the keys of a topology for --set. */
static void offer(const char *argument, const char *first)
{
    (void)first;
    if (!strcmp(argument, "KEY=VALUE"))
        offer_keys(schema());
}

static const struct program program = {
    .about = "makes simulators of AI accelerators from their descriptions",
    .alone = &make_subcommand, .subcommands = subcommands, .notes = options_notes,
    .statuses = "Exit status: 0 good; 1 data are wrong; 2 wrong use or input; 3 the host system failed (no compiler, disk full);\n"
                "128 and more: ended by a signal.",
    .version_print = version_print, .offer = offer,
};

static void dump(enum dump what, const struct model *model, const struct plan *plan)
{
    switch (what) {
    case DUMP_model:
        dump_model(stdout, model);
        break;
    case DUMP_nodes:
        dump_nodes(stdout, plan);
        break;
    case DUMP_links:
        dump_links(stdout, plan);
        break;
    case DUMP_routes:
        dump_routes(stdout, plan);
        break;
    case DUMP_dot:
        dump_dot(stdout, plan);
        break;
    case DUMP_schema_space:
        dump_schema_space(stdout);
        break;
    default:
        dump_schema(stdout);
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        die("write to standard output:");
}

static struct plan *lay_out(const struct model *model)
{
    struct plan *plan = elaborate(model);
    wire(plan);
    measure(plan);
    errors_end();
    route(plan);
    timing_pass("lay out");
    return plan;
}

/* Checks that the output would not overwrite an input, nor a folder. */
static void check_output(const struct options *options, const char *output)
{
    if (options->emit_c || options->emit_lib)
        return out_check_folder(output);
    if (faccessat(AT_FDCWD, output, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return;                                         /* there is no such file */
    for (size_t i = 0; i < options->topology_count; i++)
        out_check_file(output, options->topologies[i]);
    out_check_file(output, home_program());
    for (size_t i = 0; i < options->kernel_count; i++)
        out_check_file(output, options->kernels[i]);
    for (size_t i = 0; i < options->impl_count; i++)
        out_check_file(output, options->impls[i]);
}

/* Of a library the rule is that of its file for linkers. */
static void write_depfile(const char *output, const char *made, const struct topology_text *text, const struct build *build)
{
    struct words files = {0};
    for (size_t i = 0; i < text->file_count; i++)
        if (strcmp(text->files[i]->path, STANDARD_INPUT))
            words_add(&files, text->files[i]->path);
    build_list_files(build, &files);
    depfile_write(arena_printf("%s.d", output), made, &files);
}

/* Makes C of the plan and a simulator of the C, as far as the options ask for it. */
static void make(const struct options *options, const struct topology_text *text, const struct plan *plan)
{
    const struct model *model = plan->model;
    const char *output = options->output ? options->output
                       : arena_printf("%s/%s%s", options->folder, model->name, options->emit_c ? ".c" : options->emit_lib ? ".lib" : "");
    const char *generated = options->emit_c ? output : arena_printf("%s.c", output);
    const struct build_options build_options = {
        .path = output, .cc = options->cc, .level = options->level, .jobs = options->jobs,
        .kernels = options->kernels, .kernel_count = options->kernel_count,
        .impls = model->impls, .impl_count = model->impls_count,
        .library = options->emit_lib ? model->name : NULL, .hash = topology_hash(plan),
    };
    if (!options->check) {
        claim_name(model);
        errors_end();
        check_output(options, output);
    }
    const char *templates = arena_printf("%s/templates", home_sources());
    struct emission emission = emit(plan, templates);
    errors_end();
    timing_pass("emit");
    struct build *build = options->check || options->emit_c ? NULL : build_begin(&build_options, &emission);
    if (!build || !build_is_known(build)) {
        check_models(model, &build_options, &emission);
        errors_end();
        timing_pass("check models");
    }
    if (options->emit_c || (options->keep && build))
        write_emission(generated, &emission);
    if (build)
        build_simulator(build);
    if (options->depfile)
        write_depfile(output, options->emit_lib ? arena_printf("%s/lib%s.so", output, model->name) : output, text, build);
}

static int run(struct options *options)
{
    timing_begin(options->verbose);
    struct topology_text text = {.sets = options->sets, .set_count = options->set_count};
    const struct impl_files impls = name_impls(options->impls, options->impl_count);
    read_impls(&impls);
    const struct model *model = check_topology(options->topology, &text, &impls);
    errors_end();
    timing_pass("check");
    const struct plan *plan = lay_out(model);
    if (options->dump)
        dump(options->dump, model, plan);
    else if (!options->check || model->impls_count)
        make(options, &text, plan);
    return 0;
}

int main(int argc, char **argv)
{
    program_name = "kbgen";
    temporary_set_before(processes_stop);
    signal(SIGXFSZ, SIG_IGN);                           /* a write beyond the file size limit then fails and is reported */
    signal(SIGTTOU, SIG_IGN);                           /* compilers, in the background, may write to the terminal */
    program_begin(&program, argc, argv);
    const struct subcommand *subcommand = argc > 1 ? subcommand_named(argv[1]) : NULL;
    if (subcommand)
        return subcommand->main(argc - 1, argv + 1);
    struct options options = options_read(argc, argv);
    if (options.dump >= DUMP_schema) {
        dump(options.dump, NULL, NULL);
        return 0;
    }
    if (options.topology_count <= 1)
        return run(&options);
    return make_batch(&options, run);
}
