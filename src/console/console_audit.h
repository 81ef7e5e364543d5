#pragma once
/*
 * console/audit and console/auditLine: the newest lines of the audit log. A viewer that is slow, or
 * a flood of lines, loses lines (`lost` tells how many); nobody waits for it.
 */

#include "console/console.h"

#define CONSOLE_AUDIT_MAX (1u << 20) /* bytes of lines in an answer */

/* New lines are there: sends them, soon, to those who follow. */
void console_audit_news(void *console);

/* The connection of a viewer has room again. */
void console_audit_resume(struct session *s);

/* The task of console->news. */
void console_audit_spread(struct loop_task *t);
