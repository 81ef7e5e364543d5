#pragma once
/* A decoded profile, and what the profile_*.c files share. Nobody else includes this. */

#include "sandbox/policy/profile.h"

#define PROFILE_ROOTS_MAX 1024                /* workspace roots */
#define PROFILE_TEXT_MAX (PLAN_BYTES_MAX / 2) /* bytes of all paths and patterns */

/* Marks a glob that applies below each workspace root. */
#define PROFILE_ROOTS_PREFIX "codex-project-roots://"

/* Either `native` or `foreign` is set; both NULL: absent. */
struct profile_path {
    const char *native;  /* absolute, normalised */
    const char *foreign; /* no path of this host: the text that says so */
    struct str uri;      /* the URI in that text */
};

enum profile_target {
    PROFILE_PATH,
    PROFILE_GLOB,
    PROFILE_ROOT,
    PROFILE_MINIMAL,
    PROFILE_PROJECT_ROOTS,
    PROFILE_TMPDIR,
    PROFILE_SLASH_TMP,
    PROFILE_UNKNOWN,
};

struct profile_entry {
    enum profile_target target;
    enum plan_access access;
    struct profile_path path; /* PROFILE_PATH */
    struct str text;          /* PROFILE_GLOB: the pattern; PROFILE_PROJECT_ROOTS: below a root */
};

enum profile_kind {
    PROFILE_OPEN,       /* all files */
    PROFILE_RESTRICTED, /* by the entries */
};

struct profile {
    enum profile_kind kind;
    bool network; /* unrestricted */
    bool mxc;
    bool cwd_is_root;    /* older shapes: the only workspace root is the policy's cwd */
    uint32_t glob_depth; /* 0 = no limit */
    struct profile_path cwd;
    struct profile_path *roots;
    size_t root_count;
    struct profile_entry *entries;
    size_t entry_count, entry_cap;
    bool dynamic; /* an entry depends on the cwd or the workspace roots */
    bool foreign; /* an entry has a foreign path */
    bool full_read, full_write;
};

/* A profile being decoded. */
struct profile_decoder {
    struct profile *p;
    struct arena *a;
    struct err *e;
    size_t text;   /* bytes of paths and patterns so far */
    bool buffered; /* inside `permissions`, where the reference's texts name numbers more exactly */
};

/* The decoder of one member of an object; `out` is the caller's struct. */
struct profile_member {
    const char *name;
    bool required;
    bool nullable; /* null counts as absent */
    int (*decode)(struct profile_decoder *d, const struct json_node *v, void *out);
};

/* Decodes the members of object `v` in document order, then reports missing ones in table order.
 * All decoders return 0, -EINVAL with e set, or -ENOMEM. */
MUST_CHECK int profile_decode_members(struct profile_decoder *d, const struct json_node *v,
                                      const struct profile_member *table, size_t count, void *out);

/* "invalid type: ..., expected <expected>". Returns -EINVAL. */
int profile_decode_type_error(struct profile_decoder *d, const struct json_node *v,
                              const char *expected);

/* As jsondec_variant(). */
MUST_CHECK int profile_decode_variant(struct profile_decoder *d, const struct json_node *v,
                                      const char *const *variants, size_t count);

/* Index of the variant that member `tag` of object v names; `name` is the enum's name. */
MUST_CHECK int profile_decode_tag(struct profile_decoder *d, const struct json_node *v,
                                  const char *tag, const char *name, const char *const *variants,
                                  size_t count);

/* Decode into `out`: a struct str, a bool, a struct profile_path. */
MUST_CHECK int profile_decode_text(struct profile_decoder *d, const struct json_node *v, void *out);
MUST_CHECK int profile_decode_bool(struct profile_decoder *d, const struct json_node *v, void *out);
MUST_CHECK int profile_decode_path(struct profile_decoder *d, const struct json_node *v, void *out);

/* Sets the bool at `out`: "enabled", not "restricted". */
MUST_CHECK int profile_decode_network(struct profile_decoder *d, const struct json_node *v,
                                      void *out);

/* windowsSandboxLevel goes into the profile; useLegacyLandlock has no effect here. */
MUST_CHECK int profile_decode_level(struct profile_decoder *d, const struct json_node *v,
                                    void *out);
MUST_CHECK int profile_decode_landlock(struct profile_decoder *d, const struct json_node *v,
                                       void *out);

/* Add to the profile: an entry; every entry of an array; the depth limit of globs. */
MUST_CHECK int profile_decode_add(struct profile_decoder *d, struct profile_entry entry);
MUST_CHECK int profile_decode_entries(struct profile_decoder *d, const struct json_node *v,
                                      void *out);
MUST_CHECK int profile_decode_depth(struct profile_decoder *d, const struct json_node *v,
                                    void *out);

/* Whether permissions without a `type` are the shape of April 2026, and their decoder. */
bool profile_legacy_is_untagged(const struct json_node *permissions);
MUST_CHECK int profile_legacy_untagged(struct profile_decoder *d, const struct json_node *v);

/* Whether a context without `permissions` has the oldest shape, and its decoder. */
bool profile_legacy_is(const struct json_node *v);
MUST_CHECK int profile_legacy(struct profile_decoder *d, const struct json_node *v);

/* Decodes today's shape. */
MUST_CHECK int profile_decode_wire(struct profile_decoder *d, const struct json_node *v);

/* Whether the subpath of a token is absolute, or has "." or ".." as a component. */
bool profile_plan_subpath_is_odd(struct str path);
