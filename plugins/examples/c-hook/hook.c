/* A hook in C without any library: it denies every tool call whose name begins
 * with "delete". The three imports and the one export below are all of the ABI
 * that a small hook needs.
 *
 * The input is copied into memory that the guest owns. A larger plugin would use a
 * JSON library; this one only looks for the tool's name, in the one place where
 * the host writes it. */

typedef unsigned int u32;
typedef int i32;

#define IMPORT(name) __attribute__((import_module("lh1"), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

IMPORT("input_read") i32 input_read(void *ptr, u32 len, u32 off);
IMPORT("output_write") void output_write(const void *ptr, u32 len);
IMPORT("error_write") void error_write(const void *ptr, u32 len);

enum { OP_HOOK = 1 };
enum { STATUS_OK = 0, STATUS_ERROR = 1, STATUS_UNSUPPORTED = 2 };

static char input[256 << 10];

#define WRITE(write, text) write(text, sizeof(text) - 1)

/* find gives the place behind the first occurrence of text, or 0. */
static const char *find(const char *from, const char *end, const char *text) {
    for (; from < end; from++) {
        const char *a = from, *b = text;
        while (*b && a < end && *a == *b) a++, b++;
        if (!*b) return a;
    }
    return 0;
}

EXPORT("lh1_call") i32 lh1_call(i32 op, i32 in_len) {
    if (op != OP_HOOK) return STATUS_UNSUPPORTED;
    if (in_len < 0 || (u32)in_len > sizeof input) {
        WRITE(error_write, "{\"kind\":\"invalid_request\",\"message\":\"the input is over 256 KiB\"}");
        return STATUS_ERROR;
    }
    u32 have = 0;
    while (have < (u32)in_len) {
        i32 n = input_read(input + have, (u32)in_len - have, have);
        if (n <= 0) {
            WRITE(error_write, "{\"kind\":\"invalid_request\",\"message\":\"the input is shorter than announced\"}");
            return STATUS_ERROR;
        }
        have += (u32)n;
    }
    /* The document of before_tool is {"id":…,"name":…,"arguments":…}. Quotes inside
     * strings are escaped, so this finds the document's own name: it comes before
     * the arguments. */
    const char *end = input + have;
    const char *document = find(input, end, "\"document\":");
    const char *name = document ? find(document, end, "\"name\":\"") : 0;
    if (name && find(name, name + 6 <= end ? name + 6 : end, "delete")) {
        WRITE(output_write, "{\"action\":\"deny\",\"reason\":\"c-hook: tools that delete are not allowed\"}");
        return STATUS_OK;
    }
    WRITE(output_write, "{\"action\":\"continue\"}");
    return STATUS_OK;
}
