/* completion.c: what may come next on a command line, and the scripts by which shells ask for it. */
#include "completion.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "fail.h"
#include "subcommand.h"

/* ---- what may come next */

/* A command line up to the word to complete. */
struct line {
    const struct program *program;
    const struct subcommand *subcommand;                /* or NULL: none was named yet, and nothing else is possible */
    unsigned arguments;                                 /* how many are given */
    const char *first;                                  /* of them; NULL: none */
    const char *expects;                                /* the argument of the option that the line ends with; NULL: it has it */
    bool only_arguments;                                /* "--" was given */
    const char *prefix;                                 /* of every word that is offered: "--dump=" */
};

static const char *prefix = "";                         /* of the line that is completed */

void completion_offer(const char *word, const char *about)
{
    printf("%s%s\t%.*s\n", prefix, word, about ? (int)strcspn(about, "\n") : 0, about ? about : "");
}

static void offer_words(const char *words)
{
    while (*words && *words != ' ') {
        size_t length = strcspn(words, "| ");
        completion_offer(arena_text(words, length), NULL);
        words += length + (words[length] == '|');
    }
}

/* Whether the name of an argument is one of a file; then `ending` is that of such files, "" if they have none. */
static bool is_file(const char *name, const char **ending)
{
    size_t word = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    *ending = name + word;
    if (!name[word])
        return !strcmp(name, "FILE") || !strcmp(name, "PATH");
    return word && name[word] == '.' && islower((unsigned char)name[word + 1]);
}

static void offer_argument(const struct line *line, const char *argument)
{
    const char *words = argument_words(argument), *ending;
    const char *name = arena_text(argument, strcspn(argument, " ]"));
    if (words)
        offer_words(words);
    else if (is_file(name, &ending))
        printf("/%s\n", ending);
    else if (line->program->offer)
        line->program->offer(name, line->first);
}

static const struct cli_option *option_of(const struct subcommand *s, const char *word)
{
    bool is_long = !strncmp(word, "--", 2);
    bool is_option = word[0] == '-' && word[1];
    for (const struct cli_option *o = s && is_option ? s->options : NULL; o && o->letter; o++) {
        const char *form = option_short(o);
        size_t length = strlen(o->name);
        if (is_long ? !strncmp(word + 2, o->name, length) && (!word[2 + length] || word[2 + length] == '=')
                    : form && word[1] == *form)
            return o;
    }
    return NULL;
}

/* Whether an option of a line has its argument in the same word: --dump=nodes, -O2. */
static bool has_value(const char *word)
{
    return strncmp(word, "--", 2) ? word[2] : strchr(word, '=') != NULL;
}

static bool is_given(const struct cli_option *option, const struct line *line, int count, char *const *words)
{
    for (int i = 0; i < count; i++)
        if (option_of(line->subcommand, words[i]) == option)
            return true;
    return false;
}

static void offer_options(const struct line *line, int count, char *const *words)
{
    for (const struct cli_option *o = line->subcommand ? line->subcommand->options : NULL; o && o->letter; o++)
        if (option_repeats(o) || !is_given(o, line, count, words))
            completion_offer(arena_printf("--%s", o->name), o->help);
    for (const struct cli_option *o = options_everywhere; o->letter; o++)
        completion_offer(arena_printf("--%s", o->name), o->help);
}

/* Returns argument number `index` of a subcommand, and what follows it: of "NAME.db STORE.db ..." STORE.db from 1 on. NULL: it
 * takes no more. */
static const char *argument_at(const char *arguments, unsigned index)
{
    const char *last = NULL;
    for (const char *at = arguments;; at += strcspn(at, " ]")) {
        at += strspn(at, " []");
        if (!strncmp(at, "...", 3))
            return last;
        if (!*at || *at == '-' || argument_words(last))
            return NULL;
        last = at;
        if (!index--)
            return last;
    }
}

static void offer_arguments(const struct line *line)
{
    const struct subcommand *s = line->subcommand;
    bool may_name = s == line->program->alone && !line->arguments && !line->only_arguments;
    for (const struct subcommand *const *one = line->program->subcommands; may_name && *one; one++)
        completion_offer((*one)->name, (*one)->summary);
    const char *argument = s ? argument_at(s->arguments, line->arguments) : NULL;
    if (argument)
        offer_argument(line, argument);
}

static struct line read_line(const struct program *program, int count, char *const *words)
{
    struct line line = {.program = program, .subcommand = program->alone};
    for (int i = 0; i < count; i++) {
        const char *word = words[i];
        const struct cli_option *option = NULL;
        if (line.expects) {
            line.expects = NULL;
        } else if (!line.only_arguments && word[0] == '-' && word[1]) {
            line.only_arguments = !strcmp(word, "--");
            option = option_of(line.subcommand, word);
            line.expects = option && !has_value(word) ? option->argument : NULL;
        } else if (i == 0 && subcommand_named(word)) {
            line.subcommand = subcommand_named(word);
        } else if (!line.arguments++) {
            line.first = word;
        }
    }
    return line;
}

void completion_offers(const struct program *program, int count, char *const *words)
{
    const char *word = count ? words[count - 1] : "";
    struct line line = read_line(program, count - 1, words);
    const struct cli_option *option = option_of(line.subcommand, word);
    if (line.expects) {
        offer_argument(&line, line.expects);
    } else if (word[0] == '-' && !line.only_arguments) {
        if (option && option->argument && !strncmp(word, "--", 2) && has_value(word)) {
            prefix = arena_printf("--%s=", option->name);
            offer_argument(&line, option->argument);
        } else {
            offer_options(&line, count - 1, words);
        }
    } else {
        offer_arguments(&line);
    }
}

/* ---- scripts */

/* In each script the last lines, and in zsh the first, name the program. bash cuts words at '=' and ':', and takes only what
 * is behind the last of them. */
static const char bash[] =
    "# Completion for bash: source <(%1$s --completion bash)\n"
    "_kbgen_complete()\n"
    "{\n"
    "    local before=${COMP_LINE:0:COMP_POINT} program=${1/#\\~\\//$HOME/} word about cut= mark\n"
    "    local -a words\n"
    "    read -ra words <<< \"$before\"\n"
    "    [[ $before == *[[:space:]] ]] && words+=('')\n"
    "    local current=${words[-1]}\n"
    "    for mark in = :; do\n"
    "        [[ $COMP_WORDBREAKS == *$mark* && $current == *$mark* ]] && word=${current%%$mark*}$mark &&\n"
    "            (( ${#word} > ${#cut} )) && cut=$word\n"
    "    done\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r word about; do\n"
    "        if [[ $word == /* ]]; then\n"
    "            compopt -o filenames\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(\n"
    "                compgen -d -- \"${current#\"$cut\"}\"\n"
    "                compgen -f -X \"!*${word#/}\" -- \"${current#\"$cut\"}\" | while read -r file; do\n"
    "                    [[ -d $file ]] || printf '%%s\\n' \"$file\"\n"
    "                done)\n"
    "        elif [[ $word == \"$current\"* ]]; then\n"
    "            COMPREPLY+=(\"${word#\"$cut\"}\")\n"
    "            [[ $word == *= ]] && compopt -o nospace\n"
    "        fi\n"
    "    done < <(\"$program\" --complete \"${words[@]:1}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _kbgen_complete %1$s\n";

static const char zsh[] =
    "#compdef %1$s\n"
    "# Completion for zsh: source <(%1$s --completion zsh), or a file _%1$s in a folder of $fpath\n"
    "_kbgen_complete()\n"
    "{\n"
    "    local line word about\n"
    "    local -a whole begun\n"
    "    for line in \"${(@f)$(${~words[1]} --complete \"${(@)words[2,CURRENT-1]}\" \"$PREFIX\" 2>/dev/null)}\"; do\n"
    "        if [[ $line == /* ]]; then\n"
    "            compset -P '--*='\n"
    "            _files -g \"*${line#/}(-.)\"\n"
    "        elif [[ -n $line ]]; then\n"
    "            word=${${line%%%%$'\\t'*}//:/\\\\:} about=${line#*$'\\t'}\n"
    "            if [[ $word == *= ]]; then\n"
    "                begun+=(\"$word${about:+:$about}\")\n"
    "            else\n"
    "                whole+=(\"$word${about:+:$about}\")\n"
    "            fi\n"
    "        fi\n"
    "    done\n"
    "    (( $#whole )) && _describe %1$s whole\n"
    "    (( $#begun )) && _describe %1$s begun -S ''\n"
    "}\n"
    "if [[ $funcstack[1] == _%1$s ]]; then\n"
    "    _kbgen_complete \"$@\"\n"
    "else\n"
    "    compdef _kbgen_complete %1$s\n"
    "fi\n";

static const char fish[] =
    "# Completion for fish: %1$s --completion fish | source\n"
    "function __kbgen_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    for line in ($words[1] --complete $words[2..] \"$current\" 2>/dev/null)\n"
    "        if string match -q '/*' -- $line\n"
    "            set -l option (string match -r -- '^--[^=]*=' $current)\n"
    "            set -l file (string replace -r -- '^--[^=]*=' '' $current)\n"
    "            for path in $file*\n"
    "                if test -d $path\n"
    "                    echo \"$option$path\"/\n"
    "                else if string match -q -- '*'(string sub -s 2 -- $line) $path\n"
    "                    echo \"$option$path\"\n"
    "                end\n"
    "            end\n"
    "        else\n"
    "            echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c %1$s -f -a '(__kbgen_complete)'\n";

void completion_print(const char *shell)
{
    if (!strcmp(shell, "bash"))
        printf(bash, program_name);
    else if (!strcmp(shell, "zsh"))
        printf(zsh, program_name);
    else if (!strcmp(shell, "fish"))
        printf(fish, program_name);
    else
        usage_error("--completion %s: bash, zsh or fish is needed", shell);
}
