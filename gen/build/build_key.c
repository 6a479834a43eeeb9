/* build_key.c: fingerprints of what a simulator is built from.
 *
 * The compiler is asked once who it is (toolchain.c) and once which files a file of the user's includes; the answers are
 * cached, and hold as long as those files have the same content. */
#include "build_key.h"

#include <stdio.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/hash.h"
#include "cache.h"
#include "home.h"
#include "output.h"

static void hash_words(struct hash *hash, const struct words *words, size_t first)
{
    for (size_t i = first; i < words->count; i++)
        hash_text(hash, words->word[i]);
}

static void hash_files(struct hash *hash, const struct words *files)
{
    for (size_t i = 0; i < files->count; i++)
        hash_file(hash, files->word[i]);
}

/* ---- what is the same for all topologies */

static void hash_headers(struct hash *hash)
{
    static const char *const endings[] = {".h", ".def"};
    const char *runtime = arena_printf("%s/rt", home_sources());
    struct words rooms = {0}, headers = {0};
    words_of_folder(&rooms, runtime, "", "");
    for (size_t i = 0; i < rooms.count; i++)
        for (size_t j = 0; j < COUNT_OF(endings); j++) {
            const char *room = arena_printf("%s/%s", runtime, rooms.word[i]);
            words_of_folder(&headers, room, endings[j], arena_printf("%s/", room));
        }
    hash_files(hash, &headers);
}

const char *fingerprint_of_home(void)
{
    static const char *known;
    if (known)
        return known;
    struct hash *hash = hash_begin();
    hash_text(hash, home_identity());
    hash_headers(hash);
    hash_file(hash, home_runtime());
    return known = hash_end(hash);
}

/* ---- generated files */

/* With all generated files that it includes, and that these include. */
static void hash_generated(struct hash *hash, const struct emission *emission, const struct emitted *file)
{
    hash_text(hash, file->name);
    hash_text(hash, file->code);
    for (size_t i = 0; i < emission->count; i++)
        if (strstr(file->code, arena_printf("#include \"%s\"\n", emission->files[i].name)))
            hash_generated(hash, emission, &emission->files[i]);
}

const char *fingerprint_of_generated(const struct emission *emission, const struct emitted *file)
{
    struct hash *hash = hash_begin();
    hash_generated(hash, emission, file);
    return hash_end(hash);
}

/* Of the file with the numbers, its template and the symbols' sizes count. */
static void hash_emission(struct hash *hash, const struct emission *emission)
{
    for (size_t i = 0; i < emission->count; i++) {
        const struct emitted *file = &emission->files[i];
        hash_text(hash, file->name);
        if (strcmp(file->name, NUMBERS_FILE))
            hash_text(hash, file->code);
    }
    hash_file(hash, arena_printf("%s/templates/" NUMBERS_FILE ".in", home_sources()));
    for (size_t i = 0; i < NUMBERS; i++) {
        hash_text(hash, emission->numbers.list[i].symbol);
        hash_number(hash, emission->numbers.list[i].length);
    }
}

/* ---- files of the user's, with all that they include */

/* The hash of a file's content, or "none". */
static const char *hash_of_content(const char *path)
{
    size_t length;
    const char *text = read_file(path, &length);
    if (!text)
        return "none";
    struct hash *hash = hash_begin();
    hash_add(hash, text, length);
    return hash_end(hash);
}

/* The cache's name for the includes of a file with this content, read by this compiler with these arguments. */
static const char *includes_name(const struct build_inputs *inputs, const struct translation_unit *unit)
{
    struct process compiler = check_command(inputs->options, unit, inputs->emission);
    struct hash *hash = hash_begin();
    hash_text(hash, inputs->tools.name);
    hash_text(hash, inputs->tools.identity);
    hash_words(hash, &compiler.words, 0);
    hash_text(hash, compiler.input ? compiler.input : "");
    hash_file(hash, unit->path);
    return arena_printf("includes-%s", hash_end(hash));
}

/* The files of a rule for make, "sim.o: a.c b.h \", without its target; in a name "\" precedes a blank. */
static struct words files_of_rule(const char *rule)
{
    struct words files = {0};
    const char *text = strstr(rule, ": ");
    for (text = text ? text + 1 : ""; *text;) {
        text += strspn(text, " \n");
        if (!strncmp(text, "\\\n", 2)) {
            text += 2;
            continue;
        }
        char *name = arena_alloc(strlen(text) + 1, 1), *end = name;
        for (; *text && !strchr(" \n", *text); text++) {
            if (*text == '\\' && text[1] == ' ')
                text++;
            *end++ = *text;
        }
        if (end > name)
            words_add(&files, name);
    }
    return files;
}

/* Asks the compiler which files a user's file includes; returns their fingerprint, and leaves in the unit what to cache:
 * the fingerprint, then a line for each file with the hash of its content. */
static const char *ask_for_includes(const struct build_inputs *inputs, struct translation_unit *unit)
{
    struct process compiler = check_command(inputs->options, unit, inputs->emission);
    const char *rule = temporary(inputs->scratch(inputs->scratch_arg), "included");
    static const char *const options[] = {"-E", "-P", "-MD", "-MF"};
    for (size_t i = 0; i < COUNT_OF(options); i++)
        words_add(&compiler.words, options[i]);
    words_add(&compiler.words, rule);
    size_t length, rule_length;
    const char *text = process_output(&compiler, &length), *said = read_file(rule, &rule_length);
    if (compiler.status != 0)
        compiler_refused(&compiler, unit);
    struct hash *hash = hash_begin();
    hash_add(hash, text, length);
    struct words files = files_of_rule(said ? said : "");
    char *memo = "";
    for (size_t i = 0; i < files.count; i++)
        if (strcmp(files.word[i], "-")) {
            const char *content = hash_of_content(files.word[i]);
            words_add(&unit->includes, files.word[i]);
            hash_text(hash, content);
            memo = arena_printf("%s%s %s\n", memo, content, files.word[i]);
        }
    remove(rule);
    const char *included = hash_end(hash);
    if (files.count)
        unit->includes_memo = arena_printf("%s\n%s", included, memo);
    return included;
}

/* The same from the cache, or NULL: it is not there, or an included file has another content now. */
static const char *recall_includes(struct translation_unit *unit)
{
    size_t length;
    const char *memo = cache_find(unit->includes_name, &length);
    if (!memo)
        return NULL;
    size_t end = strcspn(memo, "\n");
    const char *included = arena_text(memo, end), *line = memo + end;
    struct words files = {0};
    for (line += *line == '\n'; *line; line += end + (line[end] == '\n')) {
        end = strcspn(line, "\n");
        const char *blank = strchr(line, ' ');
        if (!blank || blank >= line + end)
            return NULL;
        const char *path = arena_text(blank + 1, (size_t)(line + end - blank - 1)), *content = hash_of_content(path);
        words_add(&files, path);
        if (strncmp(line, content, (size_t)(blank - line)) || content[blank - line])
            return NULL;
    }
    unit->includes = files;
    return included;
}

static const char *fingerprint_of_users(const struct build_inputs *inputs, struct translation_unit *unit, bool ask)
{
    unit->includes_name = includes_name(inputs, unit);
    const char *included = recall_includes(unit);
    if (!included && ask)
        included = ask_for_includes(inputs, unit);
    if (!included)
        return NULL;
    struct hash *hash = hash_begin();
    hash_file(hash, unit->path);
    hash_text(hash, included);
    return hash_end(hash);
}

/* ---- all of it */

/* What a library is made of besides. */
static void hash_library(struct hash *hash, const char *name)
{
    const char *templates = arena_printf("%s/templates/lib", home_sources());
    struct words files = {0};
    words_of_folder(&files, templates, ".in", arena_printf("%s/", templates));
    words_add(&files, home_image());
    words_add(&files, home_front());
    hash_text(hash, "library");
    hash_text(hash, name);
    hash_files(hash, &files);
}

const char *fingerprint_of_structure(struct build_inputs *inputs, bool ask)
{
    struct words named = compiler_named(inputs->options);
    if (!toolchain_find(&inputs->tools, &named, ask))
        return NULL;
    struct hash *hash = hash_begin();
    hash_text(hash, inputs->tools.identity);
    hash_words(hash, &inputs->compiler, 1);
    hash_emission(hash, inputs->emission);
    hash_text(hash, fingerprint_of_home());
    if (inputs->options->library)
        hash_library(hash, inputs->options->library);
    bool known = true;
    for (size_t i = 0; known && i < inputs->unit_count; i++) {
        struct translation_unit *unit = &inputs->units[i];
        unit->fingerprint = fingerprint_of_users(inputs, unit, ask);
        known = unit->fingerprint;
        if (known)
            hash_text(hash, unit->fingerprint);
    }
    const char *structure = hash_end(hash);
    return known ? structure : NULL;
}

const char *build_key(const struct emission *emission, const char *structure)
{
    struct hash *hash = hash_begin();
    hash_text(hash, structure);
    for (size_t i = 0; i < NUMBERS; i++)
        hash_add(hash, emission->numbers.list[i].bytes, emission->numbers.list[i].length);
    return hash_end(hash);
}

const char *object_name(const struct build_inputs *inputs, const struct translation_unit *unit)
{
    struct hash *hash = hash_begin();
    hash_text(hash, inputs->tools.identity);
    hash_text(hash, fingerprint_of_home());
    hash_words(hash, &inputs->compiler, 1);
    hash_text(hash, unit->fingerprint);
    hash_number(hash, inputs->options->library && unit->users);     /* they are compiled otherwise */
    return arena_printf("object-%s", hash_end(hash));
}

void keep_answers(const struct build_inputs *inputs)
{
    if (inputs->tools.memo)
        cache_keep(inputs->tools.name, inputs->tools.memo, strlen(inputs->tools.memo));
    for (size_t i = 0; i < inputs->unit_count; i++) {
        const struct translation_unit *unit = &inputs->units[i];
        if (unit->includes_memo)
            cache_keep(unit->includes_name, unit->includes_memo, strlen(unit->includes_memo));
    }
}
