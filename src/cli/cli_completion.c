#include "cli/cli_completion.h"

#include "cli/cli_table.h"

#include <string.h>

static const char *kind_name(enum cli_complete kind) {
    static const char *const names[] = {
        [CLI_COMPLETE_NONE] = "none",     [CLI_COMPLETE_FILE] = "file",
        [CLI_COMPLETE_HOST] = "host",     [CLI_COMPLETE_NAME] = "name",
        [CLI_COMPLETE_REMOTE] = "remote", [CLI_COMPLETE_BOTH] = "both",
        [CLI_COMPLETE_WORDS] = "words",
    };
    return names[kind];
}

/* `kind=remote`, or `kind=words list='a b'`. */
static void print_kind(FILE *out, enum cli_complete kind, const char *words) {
    fprintf(out, "kind=%s", kind_name(kind));
    if (words != NULL)
        fprintf(out, " list='%s'", words);
}

/* Words that name an option after a command, or before it ("-"): `run -H`. */
static void print_value_case(FILE *out, enum cli_command command, enum cli_option option) {
    const struct cli_option_spec *o = &cli_table_options[option];
    const char *name = command == CLI_COMMANDS ? "" : cli_table_commands[command].name;
    fprintf(out, "        '%s --%s'", name, o->name);
    if (o->letter != '\0')
        fprintf(out, "|'%s -%c'", name, o->letter);
    fprintf(out, ") ");
    print_kind(out, o->complete, o->words);
    fprintf(out, " ;;\n");
}

static void print_option_words(FILE *out, enum cli_command command) {
    const char *blank = "";
    for (unsigned i = 0; i < CLI_OPTIONS; i++) {
        const struct cli_option_spec *o = &cli_table_options[i];
        if (!cli_table_takes(command, (enum cli_option)i))
            continue;
        if (o->letter != '\0')
            fprintf(out, "%s-%c --%s", blank, o->letter, o->name);
        else
            fprintf(out, "%s--%s", blank, o->name);
        blank = " ";
    }
}

static void print_commands(FILE *out, const char *between) {
    for (unsigned i = 0; i < CLI_COMMANDS; i++)
        fprintf(out, "%s%s", i > 0 ? between : "", cli_table_commands[i].name);
}

/* The part that bash and zsh share: it sets `command` from the words before the last one. */
static void print_find_command(FILE *out) {
    fprintf(out, "    for w in \"${before[@]}\"; do\n"
                 "        if [[ -n $skip ]]; then\n"
                 "            skip=\n"
                 "            continue\n"
                 "        fi\n"
                 "        case $w in\n");
    for (unsigned i = 0; i < CLI_OPTIONS; i++) {
        const struct cli_option_spec *o = &cli_table_options[i];
        if (o->commands != CLI_EVERYWHERE || o->value == NULL)
            continue;
        if (o->letter != '\0')
            fprintf(out, "            -%c|--%s) skip=1 ;;\n", o->letter, o->name);
        else
            fprintf(out, "            --%s) skip=1 ;;\n", o->name);
    }
    fprintf(out, "            -*) ;;\n");
    for (unsigned i = 0; i < CLI_COMMANDS; i++) {
        if (cli_table_commands[i].alias != NULL)
            fprintf(out, "            %s) command=%s; break ;;\n", cli_table_commands[i].alias,
                    cli_table_commands[i].name);
    }
    fprintf(out, "            *) command=$w; break ;;\n"
                 "        esac\n"
                 "    done\n");
}

/* The part that bash and zsh share: it sets `kind`, and `list` for words. */
static void print_choose(FILE *out) {
    fprintf(out, "    case \"$command $prev\" in\n");
    for (unsigned c = 0; c <= CLI_COMMANDS; c++) {
        for (unsigned i = 0; i < CLI_OPTIONS; i++) {
            if (cli_table_options[i].value != NULL &&
                cli_table_takes((enum cli_command)c, (enum cli_option)i))
                print_value_case(out, (enum cli_command)c, (enum cli_option)i);
        }
    }
    fprintf(out, "    esac\n"
                 "    if [[ -z $kind && $word == -* ]]; then\n"
                 "        kind=words\n"
                 "        case $command in\n"
                 "            '') list='");
    print_option_words(out, CLI_COMMANDS);
    fprintf(out, "' ;;\n");
    for (unsigned c = 0; c < CLI_COMMANDS; c++) {
        fprintf(out, "            %s) list='", cli_table_commands[c].name);
        print_option_words(out, (enum cli_command)c);
        fprintf(out, "' ;;\n");
    }
    fprintf(out, "        esac\n"
                 "    elif [[ -z $kind ]]; then\n"
                 "        case $command in\n"
                 "            '') kind=words list='");
    print_commands(out, " ");
    fprintf(out, "' ;;\n");
    for (unsigned c = 0; c < CLI_COMMANDS; c++) {
        const struct cli_command_spec *spec = &cli_table_commands[c];
        fprintf(out, "            %s) ", spec->name);
        print_kind(out, spec->complete, spec->choices);
        fprintf(out, " ;;\n");
    }
    fprintf(out, "        esac\n"
                 "    fi\n");
}

static void print_bash(FILE *out) {
    fprintf(out, "# bash completion of xs; `xs completion bash` printed it.\n"
                 "_xs() {\n"
                 "    local line=${COMP_LINE:0:COMP_POINT} word prev command= skip= w kind= list=\n"
                 "    local -a words before found\n"
                 "    COMPREPLY=()\n"
                 "    read -ra words <<<\"$line\"\n"
                 "    [[ $line == *[[:space:]] ]] && words+=('')\n"
                 "    word=${words[${#words[@]} - 1]}\n"
                 "    prev=${words[${#words[@]} - 2]}\n"
                 "    before=(\"${words[@]:1:${#words[@]} - 2}\")\n");
    print_find_command(out);
    print_choose(out);
    fprintf(out,
            "    case $kind in\n"
            "        words) mapfile -t COMPREPLY < <(compgen -W \"$list\" -- \"$word\") ;;\n"
            "        file) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
            "        none) ;;\n"
            "        *)\n"
            "            mapfile -t found < <(\"${words[0]}\" completion complete \"$kind\" "
            "\"$word\" 2>/dev/null)\n"
            "            [[ $kind == both ]] && mapfile -t -O ${#found[@]} found < <(compgen -f -- "
            "\"$word\")\n"
            "            # readline replaces only what follows the last colon\n"
            "            if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then\n"
            "                found=(\"${found[@]#\"${word%%:*}:\"}\")\n"
            "            fi\n"
            "            COMPREPLY=(\"${found[@]}\")\n"
            "            [[ ${#found[@]} == 1 && ${found[0]} == *[/:] ]] && compopt -o nospace\n"
            "            ;;\n"
            "    esac\n"
            "}\n"
            "complete -o filenames -F _xs xs\n");
}

static void print_zsh(FILE *out) {
    fprintf(out, "#compdef xs\n"
                 "# zsh completion of xs; `xs completion zsh` printed it.\n"
                 "_xs() {\n"
                 "    local word=${words[CURRENT]} prev=${words[CURRENT-1]} command= skip= w kind= "
                 "list=\n"
                 "    local -a before found\n"
                 "    before=(\"${(@)words[2,CURRENT-1]}\")\n"
                 "    (( CURRENT == 2 )) && prev=\n");
    print_find_command(out);
    print_choose(out);
    fprintf(out, "    case $kind in\n"
                 "        words) compadd -- ${=list} ;;\n"
                 "        file) _files ;;\n"
                 "        none) ;;\n"
                 "        *)\n"
                 "            found=(\"${(@f)$(\"${words[1]}\" completion complete \"$kind\" "
                 "\"$word\" 2>/dev/null)}\")\n"
                 "            compadd -S '' -- \"${(@)found:#}\"\n"
                 "            [[ $kind == both ]] && _files\n"
                 "            ;;\n"
                 "    esac\n"
                 "}\n"
                 "if [[ ${funcstack[1]} == _xs ]]; then\n"
                 "    _xs \"$@\"\n"
                 "else\n"
                 "    compdef _xs xs\n"
                 "fi\n");
}

/* Text for single quotes of fish, on one line. */
static void print_fish_text(FILE *out, const char *text) {
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\'' || *p == '\\')
            fputc('\\', out);
        fputc(*p == '\n' ? ' ' : *p, out);
    }
}

static void print_fish_source(FILE *out, enum cli_complete kind, const char *words) {
    switch (kind) {
    case CLI_COMPLETE_HOST:
    case CLI_COMPLETE_NAME:
    case CLI_COMPLETE_REMOTE:
    case CLI_COMPLETE_BOTH:
        fprintf(out, " -a '(xs completion complete %s (commandline -ct) 2>/dev/null)'",
                kind_name(kind));
        break;
    case CLI_COMPLETE_WORDS: fprintf(out, " -a '%s'", words); break;
    case CLI_COMPLETE_NONE:
    case CLI_COMPLETE_FILE: break;
    }
}

static void print_fish_option(FILE *out, enum cli_option option) {
    const struct cli_option_spec *o = &cli_table_options[option];
    fprintf(out, "complete -c xs");
    if (o->commands != CLI_EVERYWHERE) {
        fprintf(out, " -n '__fish_seen_subcommand_from");
        for (unsigned c = 0; c < CLI_COMMANDS; c++) {
            const struct cli_command_spec *spec = &cli_table_commands[c];
            if ((o->commands & CLI_OF(c)) != 0)
                fprintf(out, " %s%s%s", spec->name, spec->alias ? " " : "",
                        spec->alias ? spec->alias : "");
        }
        fprintf(out, "'");
    }
    if (o->letter != '\0')
        fprintf(out, " -s %c", o->letter);
    fprintf(out, " -l %s -d '", o->name);
    print_fish_text(out, o->help);
    fprintf(out, "'");
    if (o->value != NULL) {
        fprintf(out, o->complete == CLI_COMPLETE_FILE ? " -r" : " -x");
        print_fish_source(out, o->complete, o->words);
    }
    fprintf(out, "\n");
}

static void print_fish(FILE *out) {
    fprintf(out, "# fish completion of xs; `xs completion fish` printed it.\n"
                 "complete -c xs -f\n");
    for (unsigned c = 0; c < CLI_COMMANDS; c++) {
        const struct cli_command_spec *spec = &cli_table_commands[c];
        fprintf(out, "complete -c xs -n __fish_use_subcommand -a %s -d '", spec->name);
        print_fish_text(out, spec->help);
        fprintf(out, "'\n");
        if (spec->complete == CLI_COMPLETE_NONE)
            continue;
        fprintf(out, "complete -c xs -n '__fish_seen_subcommand_from %s'%s", spec->name,
                spec->complete == CLI_COMPLETE_BOTH ? " -F" : "");
        print_fish_source(out, spec->complete, spec->choices);
        fprintf(out, "\n");
    }
    for (unsigned i = 0; i < CLI_OPTIONS; i++)
        print_fish_option(out, (enum cli_option)i);
}

bool cli_completion_print(FILE *out, const char *shell) {
    if (strcmp(shell, "bash") == 0)
        print_bash(out);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(out);
    else if (strcmp(shell, "fish") == 0)
        print_fish(out);
    else
        return false;
    return true;
}
