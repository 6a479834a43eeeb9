/* why.c: the critical path of a run and those of its launches: checked, printed and written with accounts and advice. */
#include "why.h"

#include <inttypes.h>
#include <string.h>

#include "base/human.h"
#include "causes.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "accounts.h"
#include "advice.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "path_report.h"
#include "picture.h"
#include "sites.h"
#include "sums.h"

bool why_on, why_launches;
const char *(*why_key_place)(const char *key);

static struct path path;
static struct advice advice;                            /* of it */

/* The path of a launch, from its submission to the host's last answer. It has segments if they were asked for. */
struct launch_path {
    const struct launch *launch;
    uint64_t reason_ps[REASONS];
    struct path path;
};

static struct ARRAY(struct launch_path) launch_paths;

static void launch_paths_forget(void)
{
    for (size_t i = 0; i < launch_paths.count; i++)
        path_free(&launch_paths.at[i].path);
    launch_paths.count = 0;
}

void why_begin(const char *stream)
{
    if (!why_on)
        return;
    path_free(&path);
    launch_paths_forget();
    launches_forget();
    sites_reset();
    sites_name_stream(stream);
    accounts_reset();
    engines_begin();
    causes_begin();
    observer_watch(&why_observer, true);
}

void why_mark_end(void)
{
    if (why_on)
        causes_mark_end();
}

/* ---- checks */

static const char *account_wrong(const struct account *account)
{
    uint64_t sum_ps = 0, total_ps = account->end_ps - account->begin_ps;
    for (unsigned reason = 0; reason < REASONS; reason++)
        sum_ps += account->reason_ps[reason];
    if (!account->tl)
        return NULL;
    if (sum_ps == total_ps)
        return engines_wrong(account);
    return arena_printf("the account of %s adds up to %" PRIu64 " ps, its kernel took %" PRIu64 " ps",
                        pe_name(account->tl->pe), sum_ps, total_ps);
}

/* The segments of a launch's path follow each other from its submission to the last answer, and have its reasons. */
static const char *launch_segments_wrong(const struct launch_path *of)
{
    uint64_t reason_ps[REASONS] = {0};
    const char *why = path_wrong(&of->path);
    if (!why && of->path.end_ps != of->launch->done_ps)
        why = arena_printf("it ends at %" PRIu64 " ps, its launch at %" PRIu64 " ps", of->path.end_ps, of->launch->done_ps);
    for (size_t i = 0; i < of->path.count; i++)
        reason_ps[of->path.segments[i].reason] += length_of(&of->path.segments[i]);
    for (unsigned reason = 0; reason < REASONS && !why; reason++)
        if (reason_ps[reason] != of->reason_ps[reason])
            why = arena_printf("its segments have %" PRIu64 " ps of %s, its sum %" PRIu64, reason_ps[reason],
                               reason_names[reason], of->reason_ps[reason]);
    return why ? arena_printf("the path of request %" PRIu64 ": %s", of->launch->fanout.correlation, why) : NULL;
}

static const char *launch_path_wrong(const struct launch_path *of)
{
    uint64_t sum_ps = 0, took_ps = of->launch->done_ps - of->launch->submitted_ps;
    for (unsigned reason = 0; reason < REASONS; reason++)
        sum_ps += of->reason_ps[reason];
    if (sum_ps == took_ps)
        return why_launches ? launch_segments_wrong(of) : NULL;
    return arena_printf("the path of request %" PRIu64 " adds up to %" PRIu64 " ps, its launch took %" PRIu64 " ps",
                        of->launch->fanout.correlation, sum_ps, took_ps);
}

static const char *wrong(uint64_t end_ps, bool stopped)
{
    const char *why = path_wrong(&path);
    if (!why && !stopped && path.end_ps != end_ps)
        why = arena_printf("it ends at %" PRIu64 " ps, the run at %" PRIu64 " ps", path.end_ps, end_ps);
    for (size_t i = 0; i < accounts.count && !why; i++)
        why = account_wrong(&accounts.at[i]);
    for (size_t i = 0; i < launch_paths.count && !why; i++)
        why = launch_path_wrong(&launch_paths.at[i]);
    return why;
}

static void launch_paths_make(void)
{
    size_t count;
    const struct launch_end *ends = causes_of_launches(&count);
    for (size_t i = 0; i < count; i++) {
        uint64_t from_ps = ends[i].launch->submitted_ps;
        *array_add(&launch_paths) = (struct launch_path){.launch = ends[i].launch};
        sums_add(ends[i].ref, from_ps, launch_paths.at[i].reason_ps);
        if (why_launches)
            launch_paths.at[i].path = path_to(ends[i].ref, from_ps);
    }
}

const char *why_end(uint64_t end_ps, bool stopped)
{
    if (!why_on)
        return NULL;
    observer_watch(&why_observer, false);
    path = path_to(end_ps ? causes_of_end() : (struct ref){0, EDGE_direct}, 0);    /* 0: only delays have ended */
    accounts_close(end_ps);
    advice = advice_of(&path, why_key_place);
    launch_paths_make();
    const char *why = wrong(end_ps, stopped);
    if (why) {
        why = arena_printf("internal error: the critical path of --why: %s", why);
        message("%s: %s\n", program_name, why);
    }
    causes_end();
    engines_end();
    return why;
}

/* ---- as JSON */

static void write_path(struct json *json)
{
    json_object(json, "path");
    path_write(json, &path);
    picture_write_columns(json, &path);
    json_object_end(json);
}

static void write_advice(struct json *json)
{
    json_string(json, "first", advice.sentence);
    json_object(json, "change");
    json_string(json, "line", advice.site ? site_name(advice.site) : NULL);
    json_double(json, "line_share", path_share(&path, advice.line_ps));
    json_string(json, "cause", advice.cause);
    json_double(json, "cause_share", path_share(&path, advice.cause_ps));
    json_string(json, "key", advice.key);
    json_string(json, "place", advice.key && why_key_place ? why_key_place(advice.key) : NULL);
    json_object_end(json);
}

/* The kernel that took longest; the first of several. */
static const struct account *longest_account(void)
{
    const struct account *worst = NULL;
    for (const struct account *one = accounts.at; one < accounts.at + accounts.count; one++)
        if (one->tl && (!worst || one->end_ps - one->begin_ps > worst->end_ps - worst->begin_ps))
            worst = one;
    return worst;
}

struct spread {
    uint64_t least_ps, most_ps, sum_ps;
};

/* Of a reason, over all kernels. */
static struct spread spread_of(unsigned reason)
{
    struct spread spread = {UINT64_MAX, 0, 0};
    for (const struct account *one = accounts.at; one < accounts.at + accounts.count; one++) {
        uint64_t ps = one->reason_ps[reason];
        if (!one->tl)
            continue;
        spread.least_ps = ps < spread.least_ps ? ps : spread.least_ps;
        spread.most_ps = ps > spread.most_ps ? ps : spread.most_ps;
        spread.sum_ps += ps;
    }
    return spread;
}

static void write_spread(struct json *json)
{
    const struct account *worst = longest_account();
    json_object(json, "spread");
    for (unsigned reason = 0; reason < REASONS; reason++) {
        struct spread spread = spread_of(reason);
        if (!spread.most_ps)
            continue;
        json_object(json, reason_names[reason]);
        json_u64(json, "least_ps", spread.least_ps);
        json_u64(json, "most_ps", spread.most_ps);
        json_object_end(json);
    }
    json_object_end(json);
    json_string(json, "worst", worst ? pe_name(worst->tl->pe) : NULL);
}

static void write_account(struct json *json)
{
    uint64_t sum_ps[REASONS] = {0};
    json_object(json, "account");
    json_array(json, "kernels");
    for (size_t i = 0; i < accounts.count; i++) {
        const struct account *account = &accounts.at[i];
        if (!account->tl)
            continue;
        json_object(json, NULL);
        json_string(json, "pe", pe_name(account->tl->pe));
        json_string(json, "kernel", account->tl->name);
        json_u64(json, "request", account->tl->request);
        json_u64(json, "begin_ps", account->begin_ps);
        json_u64(json, "end_ps", account->end_ps);
        reasons_write(json, "reasons", account->reason_ps);
        engines_write_kernel(json, account);
        json_object_end(json);
        for (unsigned reason = 0; reason < REASONS; reason++)
            sum_ps[reason] += account->reason_ps[reason];
    }
    json_array_end(json);
    reasons_write(json, "reasons", sum_ps);
    write_spread(json);
    picture_write_pes(json);
    engines_write(json);
    json_object_end(json);
}

static void write_launches(struct json *json)
{
    json_array(json, "launches");
    for (size_t i = 0; i < launch_paths.count; i++) {
        const struct launch *launch = launch_paths.at[i].launch;
        json_object(json, NULL);
        json_u64(json, "request", launch->fanout.correlation);
        json_string(json, "program", launch->program);
        json_u64(json, "begin_ps", launch->submitted_ps);
        json_u64(json, "end_ps", launch->done_ps);
        reasons_write(json, "reasons", launch_paths.at[i].reason_ps);
        if (launch->line)
            json_string(json, "source", site_name(site_number(launch->file, launch->line)));
        if (why_launches) {
            json_object(json, "path");
            path_write(json, &launch_paths.at[i].path);
            json_object_end(json);
        }
        json_object_end(json);
    }
    json_array_end(json);
}

void why_write(struct json *json)
{
    if (!why_on)
        return;
    json_object(json, "why");
    write_path(json);
    path_write_longest(json, &path);
    write_advice(json);
    write_launches(json);
    write_account(json);
    json_object_end(json);
}

/* ---- for people */

static void print_account(FILE *out)
{
    const struct account *worst = longest_account();
    uint64_t total_ps = 0;
    if (!worst)
        return;
    for (const struct account *one = accounts.at; one < accounts.at + accounts.count; one++)
        total_ps += one->tl ? one->end_ps - one->begin_ps : 0;
    fprintf(out, "account      of all kernels, and from the least to the most of one; the longest took %s on %s\n",
            human_time(worst->end_ps - worst->begin_ps), pe_name(worst->tl->pe));
    for (unsigned reason = 0; reason < REASONS; reason++) {
        struct spread spread = spread_of(reason);
        if (spread.sum_ps)
            fprintf(out, "    %5.1f %%  %9s to %9s  %s\n", total_ps ? 100 * (double)spread.sum_ps / (double)total_ps : 0,
                    human_time(spread.least_ps), human_time(spread.most_ps), reason_names[reason]);
    }
}

static void print_launches(FILE *out)
{
    for (size_t i = 0; why_launches && i < launch_paths.count; i++) {
        const struct launch_path *of = &launch_paths.at[i];
        fprintf(out, "launch       %s, request %" PRIu64 ", from %" PRIu64 " ps: %s in %zu segments\n", of->launch->program,
                of->launch->fanout.correlation, of->path.begin_ps, human_time(of->path.end_ps - of->path.begin_ps),
                of->path.count);
        path_print(out, &of->path);
    }
}

void why_print(FILE *out)
{
    if (!why_on)
        return;
    fprintf(out, "why          the critical path: %s in %zu segments\n", human_time(path.end_ps), path.count);
    path_print(out, &path);
    print_account(out);
    engines_print(out);
    print_launches(out);
    fprintf(out, "change first %s\n", advice.sentence);
}

void why_write_track(void)
{
    if (why_on)
        picture_write_track(&path);
}
