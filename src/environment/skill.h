#pragma once
/* The texts of a skill: the front matter of its SKILL.md, and its agents/openai.yaml. */

#include "base/buf.h"
#include "yaml/yaml.h"

#define SKILL_NAME_MAX 64                            /* characters of a name */
#define SKILL_QUALIFIED_MAX (2 * SKILL_NAME_MAX + 1) /* with its namespace and a colon */
#define SKILL_ARENA_MAX (2 * YAML_ARENA_MAX + (4u << 20))
#define SKILL_FIELD_MAX 1024 /* characters of a text in a dependency */

/* What a skill says of itself, each in one line; borrowed from the arena. */
struct skill_front {
    struct str name, description;
    struct str short_description; /* p NULL: none */
};

/*
 * Reads the front matter: YAML between two lines "---". `fallback` is the name of a skill that
 * gives none. A line that is prose with a colon, or begins like a list that it is not, counts as
 * quoted. 0; -EINVAL: this is no skill; -ENOMEM.
 */
int skill_read_front(struct arena *a, struct str text, struct str fallback,
                     struct skill_front *out);

/*
 * Appends the members `dependencies` and `policy` as JSON. Both are null if the metadata `yaml`
 * (p NULL: there are none) is not as it should be. 0, -ENOMEM, or as buf_reserve().
 */
int skill_put_metadata(struct arena *a, struct str yaml, struct buf *b);

/* Copies a text with each run of white space as one blank, none at the ends. NULL p: no memory. */
struct str skill_one_line(struct arena *a, struct str text);

/* Without the leading and trailing white space, as Unicode has it. */
struct str skill_trim(struct str text);

/* The number of code points of valid UTF-8. */
size_t skill_chars(struct str text);
