#pragma once
/*
 * Enumerations in params. Each takes two spellings of a name, the protocol's ("graceful") and the
 * design notes' ("Graceful"). A value with members is {"type":NAME,MEMBERS} or {NAME:{MEMBERS}};
 * one without members may also be NAME alone, or {NAME:null}.
 */

#include "json/json.h"

struct variant_set {
    const char *name;         /* of the enumeration, for errors */
    const char *const *names; /* the protocol's spelling */
    size_t count;
};

/* Index of a name, or -EINVAL with e set (jsondec_variant()). */
MUST_CHECK int variant_name(const struct json_node *v, const struct variant_set *set,
                            struct err *e);

/*
 * Index of a value, or -EINVAL with e set. *members becomes the object that holds its members,
 * borrowed, or NULL when it has none.
 */
MUST_CHECK int variant_value(const struct json_node *v, const struct variant_set *set,
                             const struct json_node **members, struct err *e);
