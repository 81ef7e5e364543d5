#include "execserver.h"

const char *xs_version(void) {
    return EXEC_SERVER_VERSION;
}
