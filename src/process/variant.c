#include "process/variant.h"

#include "json/jsondec.h"

#include <ctype.h>

/* The design notes capitalise the first letter of a name. */
static bool variant_is_notes_spelling(struct str text, const char *name) {
    return text.n > 1 && text.p[0] == toupper((unsigned char)name[0]) &&
           str_eqz((struct str){text.p + 1, text.n - 1}, name + 1);
}

int variant_name(const struct json_node *v, const struct variant_set *set, struct err *e) {
    for (size_t i = 0; v->type == JSON_STRING && i < set->count; i++) {
        if (variant_is_notes_spelling(json_str(v), set->names[i]))
            return (int)i;
    }
    return jsondec_variant(v, set->names, set->count, e);
}

int variant_value(const struct json_node *v, const struct variant_set *set,
                  const struct json_node **members, struct err *e) {
    *members = NULL;
    if (v->type != JSON_OBJECT)
        return variant_name(v, set, e);
    const struct json_node *type = json_get(v, "type");
    if (type != NULL) {
        *members = v;
        return variant_name(type, set, e);
    }
    if (v->count != 1)
        return err_set(e, ERR_INVALID_PARAMS, "missing field `type`");
    int r = variant_name(v + 1, set, e);
    if (r >= 0 && v[2].type == JSON_OBJECT)
        *members = v + 2;
    else if (r >= 0 && v[2].type != JSON_NULL)
        return jsondec_type_error(v + 2, set->name, e);
    return r;
}
