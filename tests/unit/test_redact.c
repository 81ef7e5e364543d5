/* A planted secret never reaches the log, in whatever way a command line names it. */
#include "ops/redact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MARKER "hunter2" /* in every part of every secret */
#define SHOWN_MAX 4096

/* Puts `value` in the place of each % of `form`. */
static void fill(const char *form, const char *value, char *out, size_t size) {
    size_t n = 0;
    for (const char *p = form; *p != '\0'; p++) {
        int k = *p == '%' ? snprintf(out + n, size - n, "%s", value)
                          : snprintf(out + n, size - n, "%c", *p);
        n += (size_t)k;
        assert_true(n < size);
    }
    out[n] = '\0';
}

/* What is shown of one argument behind others; an assertion fails if the marker is in it. */
static void expect_hidden(struct redact r, const char *arg) {
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 16);
    assert_in_range(redact_arg(&r, str_of(arg), SHOWN_MAX, &b), 0, 1);
    if (memmem(b.p, b.len, MARKER, strlen(MARKER)) != NULL)
        fail_msg("of `%s` is shown `%.*s`", arg, (int)b.len, b.p);
}

static const char *const names[] = {
    "TOKEN",      "GITHUB_TOKEN", "secret",     "AWS_SECRET_ACCESS_KEY",
    "api-key",    "Password",     "PGPASS",     "MYSQL_PWD",
    "jwt",        "X_AUTH",       "_authToken", "client.credential",
    "passphrase", "PRIVATE"};

/* A value of a shell: in each the marker stands wherever text can. */
static const char *const values[] = {
    "hunter2",
    "'hunter2 hunter2'",
    "\"hunter2 hunter2\"",
    "\"hunter2\\\" hunter2\"hunter2",
    "hunter2\\ hunter2",
    "hunter2\\\nhunter2",
    "'hunter2\nhunter2\nhunter2'",
    "\"hunter2\n\nhunter2\"",
    "$'hunter2\\n\\'hunter2'",
    "$(echo hunter2)",
    "$(echo 'hunter2)' \"hunter2)\" hunter2)",
    "\"$(echo \"hunter2 hunter2\" hunter2)\"",
    "\"a $(b \"$(c 'hunter2')\" hunter2) hunter2\"",
    "`echo hunter2`",
    "\"`echo hunter2` hunter2\"",
    "hunter2`echo hunter2`hunter2",
    "${OTHER:-hunter2 hunter2}",
    "$((hunter2+hunter2))hunter2",
    "hunter2'hunter2 hunter2'\"hunter2 hunter2\"",
    "$(cat <<EOF\nhunter2\n)hunter2\nEOF\n)",
    "'hunter2", /* not closed */
    "\"hunter2 hunter2",
    "$(echo hunter2 hunter2",
    "`hunter2 hunter2",
};

/* Ways to name a value; % is the value, @ the name. */
static const char *const forms[] = {
    "@=%",
    "@+=%",
    "export @=%",
    "@=% make all",
    "make @=% all",
    "declare -x @=%",
    "env A=b @=% run",
    "cd /x && @=% run; ls",
    "(@=% run)",
    "ls\n@=% run\nls",
    "run --@=%",
    "run --@ % next",
    "run --@ \\\n %",
    "run -@=%",
    "arr[@]=%",
    "@[0]=%",
    "@ = %",
    "curl -d @=% http://h/",
    "curl --data-urlencode @=% u",
    "run --opt <(echo @=%)",
    "docker run -e @=% image",
};

static void put_name(const char *form, const char *name, char *out, size_t size) {
    size_t n = 0;
    for (const char *p = form; *p != '\0'; p++)
        n += (size_t)snprintf(out + n, size - n, *p == '@' ? "%s" : "%.1s", *p == '@' ? name : p);
    assert_true(n < size);
}

static void named_values_of_scripts(void **state) {
    (void)state;
    char form[1024], script[2048];
    for (size_t f = 0; f < ARRAY_LEN(forms); f++) {
        for (size_t n = 0; n < ARRAY_LEN(names); n++) {
            put_name(forms[f], names[n], form, sizeof form);
            for (size_t v = 0; v < ARRAY_LEN(values); v++) {
                fill(form, values[v], script, sizeof script);
                expect_hidden((struct redact){.script = true}, script);
            }
        }
    }
}

/* An argument that is an assignment, or follows an option, is hidden whole, with all its lines. */
static void arguments(void **state) {
    (void)state;
    static const char *const plain[] = {"TOKEN=%",
                                        "--token=%",
                                        "-Dpassword=%",
                                        "Authorization: Bearer %",
                                        "Cookie: a=%",
                                        "X-Api-Key:%",
                                        "Proxy-Authorization: Digest a=\"%\", b=\"%\"",
                                        "password: |\n  %\n  %",
                                        "aws_secret_access_key = %"};
    char arg[512];
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        fill(plain[i], "hunter2", arg, sizeof arg);
        expect_hidden((struct redact){0}, arg);
        fill(plain[i], "hunter2 'x\nhunter2\nhunter2", arg, sizeof arg);
        expect_hidden((struct redact){0}, arg);
    }
    struct redact r = {0};
    _cleanup_buf_ struct buf b = BUF_INIT(SHOWN_MAX);
    assert_int_equal(redact_arg(&r, STR_LIT("--password"), SHOWN_MAX, &b), 0);
    expect_hidden(r, "hunter2\nhunter2 hunter2");
}

static void other_notations(void **state) {
    (void)state;
    static const char *const texts[] = {
        "curl -H 'Authorization: Bearer hunter2' u",
        "curl -H \"Authorization: Digest a=hunter2, b=hunter2\" u",
        "curl -H 'Cookie: a=hunter2; b=hunter2' u",
        "curl --cookie 'a=hunter2; b=hunter2' u",
        "curl -b a=hunter2 u",
        "curl -u me:hunter2 u",
        "curl -ume:hunter2 u",
        "curl -sSu me:hunter2 u",
        "curl -sSume:hunter2 u",
        "curl -sSu'me:hunter2 hunter2' u",
        "ldapsearch -xLLLw hunter2 -b dc=x",
        "zip -rP hunter2 x.zip x",
        "sudo curl --user me:hunter2 u",
        "curl --proxy-user 'me:hunter2 hunter2' u",
        "mysql -uroot -phunter2 db",
        "/usr/bin/mysqldump -p'hunter2 hunter2' db",
        "sshpass -p hunter2 ssh h",
        "ls | redis-cli -a hunter2",
        "ldapsearch -x -w hunter2",
        "git clone https://me:hunter2@h/r",
        "git clone https://hunter2@h/r",
        "psql postgres://u:p%40hunter2@db/x",
        "fetch 'https://h/?access_token=hunter2&a=b'",
        "fetch https://h/?sig=1&signature=hunter2",
        "python3 -c 'import os; os.environ[\"TOKEN\"] = \"hunter2\"'",
        "python3 -c \"d['password']='hunter2 hunter2'\"",
        "python3 -c 'os.putenv(\"API_KEY\", \"hunter2\")'",
        "node -e \"x={password: 'hunter2 hunter2'}\"",
        "perl -e '$h{token} = \"hunter2\"; $k{secret} => \"hunter2\"'",
        "echo '{\"password\":\"hunter2\",\"a\":{\"token\":\"hunter2\"}}'",
        "echo \"{\\\"password\\\":\\\"hunter2 hunter2\\\"}\"",
        "echo '<password>hunter2\nhunter2</password><a/>'",
        "cat > f <<EOF\nhunter2\nanything hunter2\nEOF\nls",
        "cat > f <<'END' && ls\nhunter2\nEND",
        "cat <<-\\EOF\n\thunter2\n\tEOF\n",
        "cat <<A; cat <<B\nhunter2\nA\nhunter2\nB\n",
        "cat <<\"\"\nhunter2\n\n",
        "cat <<A <<B <<C <<D <<E\nhunter2",
        "ssh h \"cat > f <<EOF\nhunter2\nEOF\"",
        "docker login --password-stdin <<< hunter2",
        "docker login --password-stdin <<<\"hunter2 hunter2\"",
        "docker login -p hunter2 r",
        "echo '-----BEGIN PRIVATE KEY-----\nhunter2\nhunter2\n-----END PRIVATE KEY-----' > f",
        "printf -- -----BEGIN\\ X-----\\\\nhunter2\\\\n",
        "echo a-----BEGIN RSA PRIVATE KEY-----hunter2-----END RSA PRIVATE KEY-----b",
        "TOKENS=(hunter2 hunter2 'hunter2')",
        "run --token <(echo hunter2)",
        "git -c http.extraHeader='Authorization: Basic hunter2' fetch",
        "npm config set //r/:_authToken=hunter2",
        "set -x; TOKEN+=hunter2",
        "echo Bearer hunter2",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        expect_hidden((struct redact){.script = true}, texts[i]);
        expect_hidden((struct redact){0}, texts[i]);
    }
}

/* A value behind an option belongs to it to the end of the argument, blanks and all. */
static void options_with_values(void **state) {
    (void)state;
    static const char *const texts[] = {
        "-HAuthorization: Basic hunter2",
        "--header=Authorization: Basic hunter2 hunter2",
        "--set=db.password=a hunter2",
        "--env=API_KEY=a hunter2",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        _cleanup_buf_ struct buf b = BUF_INIT(SHOWN_MAX);
        struct redact r = {0};
        assert_int_equal(redact_arg(&r, STR_LIT("curl"), SHOWN_MAX, &b), 0);
        expect_hidden(r, texts[i]);
    }
}

/* A program's letters count for its own arguments. */
static void letters_of_programs(void **state) {
    (void)state;
    static const char *const argv[] = {"sudo", "mysql", "-h", "host", "-phunter2", "db"};
    static const char *const other[] = {"mkdir", "-p", "hunter2"};
    _cleanup_buf_ struct buf b = BUF_INIT(SHOWN_MAX);
    struct redact r = {0};
    for (size_t i = 0; i < ARRAY_LEN(argv); i++)
        assert_int_equal(redact_arg(&r, str_of(argv[i]), SHOWN_MAX, &b), 0);
    assert_int_equal(b.len, strlen("sudomysql-hhost-p[redacted]db"));
    assert_memory_equal(b.p, "sudomysql-hhost-p[redacted]db", b.len);
    b.len = 0;
    r = (struct redact){0};
    for (size_t i = 0; i < ARRAY_LEN(other); i++)
        assert_int_equal(redact_arg(&r, str_of(other[i]), SHOWN_MAX, &b), 0);
    assert_memory_equal(b.p, "mkdir-phunter2", b.len);
}

/* Wherever it is cut, and whatever stands before it. */
static void surrounded(void **state) {
    (void)state;
    static const char *const noise[] = {"ls -l; ",  "echo 'a' \"b\" && ", "x=1 y=$(date) ",
                                        "a | b | ", "if true; then ",     "cd /tmp\n",
                                        "f() { "};
    char form[1024], script[4096];
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        size_t n = 0;
        script[0] = '\0';
        for (int k = 0; k < 4; k++) {
            seed = seed * 1103515245 + 12345;
            n += (size_t)snprintf(script + n, sizeof script - n, "%s",
                                  noise[(seed >> 16) % ARRAY_LEN(noise)]);
        }
        seed = seed * 1103515245 + 12345;
        put_name(forms[(seed >> 16) % ARRAY_LEN(forms)], names[(seed >> 8) % ARRAY_LEN(names)],
                 form, sizeof form);
        fill(form, values[(seed >> 20) % ARRAY_LEN(values)], script + n, sizeof script - n);
        _cleanup_buf_ struct buf b = BUF_INIT(1u << 16);
        struct redact r = {.script = true};
        assert_in_range(redact_arg(&r, str_of(script), (size_t)round % 300, &b), 0, 1);
        assert_true(b.len <= (size_t)round % 300);
        if (b.len > 0 && memmem(b.p, b.len, MARKER, strlen(MARKER)) != NULL)
            fail_msg("of `%s` is shown `%.*s`", script, (int)b.len, b.p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_values_of_scripts), cmocka_unit_test(arguments),
        cmocka_unit_test(other_notations),         cmocka_unit_test(options_with_values),
        cmocka_unit_test(letters_of_programs),     cmocka_unit_test(surrounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
