#include "execserver.h"

#include <stdio.h>

int main(void) {
    printf("xs %s\n", xs_version());
    return 2;
}
