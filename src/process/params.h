#pragma once
/* Shorthand for the field tables of params structs (json/jsondec.h). */

#include "json/jsondec.h"

/* Must be given. */
#define PARAM(type, member, wire, kind_)                                                           \
    {                                                                                              \
        .name = (wire), .kind = (kind_), .flags = JSONDEC_REQUIRED,                                \
        .offset = offsetof(struct type, member), .present = JSONDEC_NO_PRESENT                     \
    }

/* May be absent; flags_ is 0 or JSONDEC_NULLABLE. */
#define PARAM_OPT(type, member, wire, kind_, flags_)                                               \
    {                                                                                              \
        .name = (wire), .kind = (kind_), .flags = (flags_),                                        \
        .offset = offsetof(struct type, member), .present = JSONDEC_NO_PRESENT                     \
    }

/* Like PARAM_OPT, with a bool that tells whether the member was given. */
#define PARAM_HAS(type, member, has, wire, kind_, flags_)                                          \
    {                                                                                              \
        .name = (wire), .kind = (kind_), .flags = (flags_),                                        \
        .offset = offsetof(struct type, member), .present = offsetof(struct type, has)             \
    }

/* Like PARAM and PARAM_OPT, with a check (jsondec_field.check). */
#define PARAM_CHECKED(type, member, wire, kind_, check_)                                           \
    {                                                                                              \
        .name = (wire), .kind = (kind_), .flags = JSONDEC_REQUIRED,                                \
        .offset = offsetof(struct type, member), .present = JSONDEC_NO_PRESENT, .check = (check_)  \
    }
#define PARAM_OPT_CHECKED(type, member, wire, kind_, flags_, check_)                               \
    {                                                                                              \
        .name = (wire), .kind = (kind_), .flags = (flags_),                                        \
        .offset = offsetof(struct type, member), .present = JSONDEC_NO_PRESENT, .check = (check_)  \
    }

/* A nested struct. */
#define PARAM_SUB(type, member, wire, sub_, flags_)                                                \
    {                                                                                              \
        .name = (wire), .kind = JSONDEC_STRUCT, .flags = (flags_),                                 \
        .offset = offsetof(struct type, member), .present = JSONDEC_NO_PRESENT, .sub = (sub_)      \
    }
#define PARAM_SUB_HAS(type, member, has, wire, sub_, flags_)                                       \
    {                                                                                              \
        .name = (wire), .kind = JSONDEC_STRUCT, .flags = (flags_),                                 \
        .offset = offsetof(struct type, member), .present = offsetof(struct type, has),            \
        .sub = (sub_)                                                                              \
    }

#define PARAM_STRUCT(wire_name, fields)                                                            \
    { (wire_name), (fields), ARRAY_LEN(fields) }
