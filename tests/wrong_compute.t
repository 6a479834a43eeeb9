#!/usr/bin/python3
"""wrong_compute: undefined requests to the engines end with their message and line."""
import os

from harness import LANES, ROOT, is_refused, ok, run, small_machine, suite

KERNEL = os.path.join(ROOT, "tests", "kernels", "miscomputed.c")

# what, message.
WRONG = (
    ("exp_i32", r"tl_compute: exp of i32 is not defined: cast or dequant it first"),
    ("gelu_i8", r"gelu of i8 is not defined"),
    ("to_i32", r"add of f32 does not give i32: cast it"),
    ("mixed", r"mul of f32 and i32 is not defined: cast one of them first"),
    ("cmp_f32", r"cmp gives u8, not f32"),
    ("where_f32", r"the condition of where is u8, not f32"),
    ("quant_f32", r"quant does not give f32, but integers"),
    ("quant_scale", r"the scale of quant is i32; floats are"),
    ("dequant_i8", r"dequant does not give i8, but floats"),
    ("number_i32", r"add of i32 and a number that is no i32 is not defined"),
    ("number_low", r"add of i32 and a number that is no i32 is not defined"),
    ("first_number", r"x is a number; only the last of several operands can be one"),
    ("only_number", r"x is a number; only the last of several operands can be one"),
    ("row", r"y of 5 does not fit a result of 4 x 6"),
    ("bias_column", r"the second operand of bias is not a row"),
    ("bias_one", r"the second operand of bias is not a row"),
    ("scale_block", r"the second operand of scale is not a row or single element"),
    ("axis", r"x has 2 axes, there is no axis 2"),
    ("low_axis", r"x has 2 axes, there is no axis -3"),
    ("reduced", r"a result of 6 does not fit sum of 4 x 6 over axis 1"),
    ("reduced_over", r"the result overlaps a part of an operand"),
    ("two_reduced", r"there is no op 'mean' of this form"),
    ("missing", r"where takes 3 operands, but z is missing"),
    ("folded", r"elements of the result overlap"),
    ("row_over", r"the result overlaps a part of an operand"),
    ("look_axes", r"x has 2 axes; it is a buffer of one"),
    ("look_shape", r"y of 5 does not fit a result of 4 x 6"),
    ("look_dtype", r"gather of f32 does not give i32"),
    ("look_floats", r"the positions of gather are f32; a buffer of integers is needed"),
    ("look_number", r"the positions of gather are a number; a buffer of integers is needed"),
    ("look_over", r"the result overlaps a part of an operand"),
    ("look_self", r"y of 4 x 6 does not fit a result of 6"),
    ("look_pending", r"PENDING_RESULT .* the bytes at \S* are the pending result of mul, operation \d+ of kernel miscomputed"),
    ("relation", r"there is no relation number 6"),
    ("dot_shape", r"tl_dot: a of 4 x 6 and b of 4 x 6 do not give 4 x 5"),
    ("dot_dtypes", r"a is f16 and b is f32; they have to be the same"),
    ("dot_i16", r"a gemm of i16 is not supported; floats and i8 are"),
    ("dot_rank", r"a has 1 axes; a matrix has 2"),
    ("dot_over", r"the result overlaps a or b"),
    ("view", r"tl_composite: a is 8 x 8, but the op needs 9 x 8"),
    ("e_where", r"'where' is not an epilogue"),
    ("e_cmp", r"'cmp' is not an epilogue"),
    ("e_gather", r"'gather' is not an epilogue"),
    ("e_scope", r"epilogue relu has no scope"),
    ("e_operand", r"epilogue relu takes no operand, but one is given"),
    ("e_missing", r"epilogue add takes an operand, but none is given"),
    ("e_shape",
     r"the operand of an epilogue of 7 x 8 is not a block, row, column or single element for 8 x 8 elements"),
    ("e_bias", r"the operand of an epilogue of 8 x 8 is not a row for 8 x 8 elements"),
    ("e_far", r"BAD_ADDRESS .* the operand of an epilogue, \d+ bytes at \S+: it runs past the end of the memory"),
    ("e_over", r"c overlaps the operand of an epilogue"),
    ("e_quant", r"epilogue: quant does not give f32, but integers"),
    ("w_exp", r"epilogue: exp of i32 is not defined: cast or dequant it first"),
    ("w_bias", r"epilogue: bias of i32 and f32 is not defined"),
    ("w_number", r"epilogue: scale of i32 and a number that is no i32 is not defined"),
    ("w_once", r"epilogue dequant makes f32 of i32, for all of c: its scope has to be TL_OUTPUT_TILE"),
    ("m_op", r"'' is not an elementwise op of one or two operands"),
    ("m_sum", r"'sum' is not an elementwise op of one or two operands"),
    ("m_where", r"'where' is not an elementwise op of one or two operands"),
    ("m_gather", r"'gather' is not an elementwise op of one or two operands"),
    ("m_epilogue", r"math has no epilogues; a gemm has"),
    ("m_k", r"math has m and n, and tiles of two sizes, but k or tile\[2\] is given"),
    ("m_tile", r"tile\[1\] is 0"),
    ("m_second", r"exp takes one operand, but src2 is given"),
    ("m_missing", r"add takes two operands, but src2 is missing"),
    ("m_row", r"src2 of 3 x 8 is not a block, row, column or single element for 8 x 8 elements"),
    ("m_dtype", r"exp of f32 does not give i32: cast it"),
    ("m_transposed", r"src is transposed; only a and b of a gemm can be"),
    ("m_over", r"dst overlaps a part of an operand"),
)


def main():
    made = small_machine("miscomputed", [KERNEL], LANES)
    ended = run(made, "run", "miscomputed")
    ok(ended.returncode == 0, "the bench without a mistake ends well", ended.said)
    is_refused(made, "miscomputed", r"called at \S*\bmiscomputed\.c:\d+", [(what, 1, said) for what, said in WRONG])


suite(main)
