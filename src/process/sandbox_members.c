#include "process/sandbox_members.h"

#define MEMBERS_NAME_MAX 64 /* bytes of a name that count */

/* Parts of names, in lower case and without `_` and `-`. */
static const char *const members_words[] = {
    "sandbox",    "permission",    "confine",     "isolat",          "landlock",     "seccomp",
    "filesystem", "networkpolicy", "networkmode", "networkrestrict", "writableroot", "readableroot",
    "readonly",   "denyread",      "denywrite",   "managednetwork",
};

/* Members that may stand beside a `sandboxPolicy`: its context has the shape of April 2026. */
static const char *const members_policy[] = {
    "sandboxPolicy",         "sandboxPolicyCwd",  "fileSystemSandboxPolicy",
    "additionalPermissions", "useLegacyLandlock",
};

static bool members_is_listed(struct str name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (str_eqz(name, list[i]))
            return true;
    }
    return false;
}

static bool members_is_known(struct str name, const struct jsondec_struct *known) {
    for (size_t i = 0; i < known->count; i++) {
        if (str_eqz(name, known->fields[i].name))
            return true;
    }
    return false;
}

/* Whether a member sounds like confinement. A false asks for nothing, except for no network. */
static bool members_asks(struct str name, enum json_type value) {
    char folded[MEMBERS_NAME_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < name.n && n < MEMBERS_NAME_MAX; i++) {
        char c = name.p[i];
        if (c != '_' && c != '-')
            folded[n++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    folded[n] = '\0';
    if (strncmp(folded, "windows", 7) == 0)
        return false;
    if (strcmp(folded, "network") == 0 || strstr(folded, "networkaccess") != NULL)
        return true;
    for (size_t i = 0; value != JSON_FALSE && i < ARRAY_LEN(members_words); i++) {
        if (memmem(folded, n, members_words[i], strlen(members_words[i])) != NULL)
            return true;
    }
    return false;
}

int sandbox_members_check(const struct json_node *params, const struct jsondec_struct *known,
                          const struct json_node **sandbox, struct err *e) {
    bool takes = sandbox != NULL && members_is_known(STR_LIT("sandbox"), known);
    const struct json_node *policy = takes ? json_get(params, "sandboxPolicy") : NULL;
    bool has_policy = policy != NULL && policy->type != JSON_NULL;
    json_for_each_member(key, params) {
        struct str name = json_str(key);
        if (key[1].type == JSON_NULL || members_is_known(name, known) ||
            !members_asks(name, key[1].type))
            continue;
        if (!has_policy || !members_is_listed(name, members_policy, ARRAY_LEN(members_policy)))
            return err_about(e, ERR_INVALID_PARAMS, "`", name,
                             "` asks for a confinement that this method does not have");
    }
    if (!has_policy)
        return 0;
    if (*sandbox != NULL)
        return err_set(e, ERR_INVALID_PARAMS, "sandbox and sandboxPolicy exclude each other");
    /* planted: ignored-policy */
    *sandbox = params;
    return 0;
}
