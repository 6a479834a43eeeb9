/* refs.c: a bench that compares what a file holds with a reference of what others hold. */
#include <kb/host.h>

#include <stdlib.h>
#include <string.h>

/* "2x3x4" */
static struct kb_dims dims_of(const char *text)
{
    struct kb_dims dims = {0};
    for (char *end; *text; text = *end ? end + 1 : end)
        dims.size[dims.rank++] = strtoull(text, &end, 10);
    return dims;
}

/* "f16:2x3:x.npy": a tensor with what a file holds. */
static kb_tensor given(const char *name, const char *what)
{
    char text[400];
    strncpy(text, what, sizeof text - 1);
    text[sizeof text - 1] = 0;
    char *dtype = strtok(text, ":"), *dims = strtok(NULL, ":"), *path = strtok(NULL, ":");
    if (!path)
        return NULL;
    kb_tensor tensor = kb_tensor_new(name, kb_dtype(dtype), dims_of(dims), kb_rows(KB_HBM, kb_pes("*")));
    kb_load_npy(tensor, path);
    return tensor;
}

static const double counted[] = {1, 2, 3, 4, 5, 6};

/* What a gemm or a product element by element becomes by steps, a letter each: n: neg, m: times y, by rows; +: the sum with what it was before the last step,
 * b, r: the product itself gets a bias of y, or relu, after what was made of it; B, R: the last step's result does. */
static kb_ref steps(kb_ref product, const char *how, kb_tensor y)
{
    kb_ref now = product, before = product;
    for (; *how; how++) {
        kb_ref was = now;
        switch (*how) {
        case 'n': now = kb_ref_unary("neg", now); break;
        case 'm': now = kb_ref_binary("mul", now, y); break;
        case '+': now = kb_ref_binary("add", now, before); break;
        case 'b': kb_ref_bias(product, y); break;
        case 'B': kb_ref_bias(now, y); break;
        case 'r': kb_ref_relu(product); break;
        default: kb_ref_relu(now);
        }
        before = was;
    }
    return now;
}

static kb_ref reference(const char *what, const char *op, kb_tensor x, kb_tensor y, kb_tensor z)
{
    uint32_t axis = (uint32_t)kb_int(axis);
    if (!strcmp(what, "unary")) return kb_ref_unary(op, x);
    if (!strcmp(what, "binary")) return kb_ref_binary(op, x, y);
    if (!strcmp(what, "number")) return kb_ref_binary(op, x, 2.5);
    if (!strcmp(what, "whole_number")) return kb_ref_binary(op, x, 3);
    if (!strcmp(what, "where")) return kb_ref_where(x, y, z);
    if (!strcmp(what, "gemm")) return kb_ref_gemm(x, y);
    if (!strcmp(what, "steps")) return steps(kb_ref_gemm(x, y), op, z);
    if (!strcmp(what, "scaled_steps")) return steps(kb_ref_binary("mul", x, y), op, z);
    if (!strcmp(what, "gemm_at")) return kb_ref_gemm(kb_ref_transpose(x), y);
    if (!strcmp(what, "gemm_bt")) return kb_ref_gemm(x, kb_ref_transpose(y));
    if (!strcmp(what, "conv2d")) {                      /* op: height, kernel, stride and pad */
        uint64_t how[5] = {0};
        for (char *at = (char *)op, i = 0; i < 5; i++)
            how[(int)i] = strtoull(at, &at, 10);
        return kb_ref_conv2d(x, y, how[0], how[1], how[2], how[3], how[4]);
    }
    if (!strcmp(what, "transpose")) return kb_ref_transpose(x);
    if (!strcmp(what, "sum")) return kb_ref_sum(x, axis);
    if (!strcmp(what, "mean")) return kb_ref_mean(x, axis);
    if (!strcmp(what, "max")) return kb_ref_max(x, axis);
    if (!strcmp(what, "min")) return kb_ref_min(x, axis);
    if (!strcmp(what, "softmax")) return kb_ref_softmax(x);
    if (!strcmp(what, "layernorm")) return kb_ref_layernorm(x, y, z, 1e-5);
    if (!strcmp(what, "rmsnorm")) return kb_ref_rmsnorm(x, 2, 1e-5);
    if (!strcmp(what, "cast")) return kb_ref_cast(x, kb_dtype(op));
    if (!strcmp(what, "quant")) return kb_ref_quant(x, y, kb_dtype(op));
    if (!strcmp(what, "dequant")) return kb_ref_binary("dequant", x, y);
    if (!strcmp(what, "given")) return kb_ref_given(counted, kb_2d(2, 3));
    if (!strcmp(what, "empty")) return kb_ref_given(counted, kb_2d(2, 0));
    if (!strcmp(what, "huge")) return kb_ref_given(counted, kb_2d(UINT64_C(1) << 40, UINT64_C(1) << 30));
    if (!strcmp(what, "npy")) return kb_ref_npy(op);
    if (!strcmp(what, "exchange")) return kb_ref_exchange(x);
    if (!strcmp(what, "reduce")) return kb_ref_reduce(x, op);
    if (!strcmp(what, "biased")) {
        kb_ref product = kb_ref_gemm(x, y);
        kb_ref_bias(product, z);
        kb_ref_relu(product);
        return product;
    }
    if (!strcmp(what, "attention")) {
        kb_ref scores = kb_ref_binary("mul", kb_ref_gemm(x, kb_ref_transpose(y)), 0.25);
        return kb_ref_gemm(kb_ref_softmax(scores), z);
    }
    if (!strcmp(what, "heads"))
        return kb_ref_attention(x, y, z, .heads = 4, .kv_heads = 2, .causal = strstr(op, "causal"),
                                .side_by_side = strstr(op, "side"));
    if (!strcmp(what, "exact")) return kb_ref_gemm(kb_ref_exact(kb_ref_gemm(x, y)), z);
    if (!strcmp(what, "null")) return kb_ref_unary("exp", (kb_ref)NULL);
    return kb_ref_copy(x);
}

KB_BENCH(refs, "what a file holds, against a reference", KB_TEXT(what, "copy", "reference"), KB_TEXT(op, "", "op"),
         KB_TEXT(x, "", "DTYPE:SHAPE:FILE"), KB_TEXT(y, "", "the same"), KB_TEXT(z, "", "the same"),
         KB_TEXT(out, "", "the same"), KB_INT(axis, 0, 0, 9, "of a reduction"))
{
    kb_tensor x = given("x", kb_text(x)), y = given("y", kb_text(y)), z = given("z", kb_text(z));
    kb_expect_close(given("out", kb_text(out)), reference(kb_text(what), kb_text(op), x, y, z));
}
