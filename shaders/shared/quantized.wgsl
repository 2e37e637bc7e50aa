//# What the kernels of products with quantized weights share: numbers of `x`, and scales and zero points of a word.
//# Four numbers of a row of `x`, whose first one is at `from`, from number `at` on; zeros where it ends, if it may.
//% macro four(from, at)
//% if WIDE_SRC
//% if RAGGED
select(${zero4}, ${load4("src", from ~ " + min(" ~ at ~ " / 4u, params.k_row - 1u)")}, ${at} / 4u < params.k_row)
//% else
${load4("src", from ~ " + " ~ at ~ " / 4u")}
//% endif
//% else
vec4<f32>(
    //% for lane in range(4)
    //% if RAGGED
    select(0.0f, ${load("src", from ~ " + min(" ~ at ~ " + " ~ lane ~ "u, params.k_row - 1u)")}, ${at} + ${lane}u < params.k_row)${"," if lane < 3 else ""}
    //% else
    ${load("src", from ~ " + " ~ at ~ " + " ~ lane ~ "u")}${"," if lane < 3 else ""}
    //% endif
    //% endfor
)
//% endif
//% endmacro
//# The scale and the zero point of a word of a column.
//% macro scale_and_zero(name, column, word)
//% set block = (word ~ " / BLOCK") if BLOCK else "0u"
let block${name}: u32 = ${block};
let scale${name}: f32 = ${stored("scales", "params.blocks * " ~ column ~ " + block" ~ name)};
//% if ZEROS == 0
let zero${name}: f32 = params.zero;
//% elif ZEROS == 1
let zero${name}: f32 = ${stored("zeros", "params.blocks * " ~ column ~ " + block" ~ name)};
//% else
let zero${name}: f32 = f32((${stored("zeros", "params.zero_words * " ~ column ~ " + block" ~ name ~ " / PER_WORD")} >> (BITS * (block${name} % PER_WORD))) & MASK);
//% endif
//% endmacro
//# The integers of `word`, four from number `four` times four on, as numbers less the zero point.
//% macro unpacked(word, four, zero)
vec4<f32>((vec4<u32>(${word}) >> vec4<u32>(${4 * four}u * BITS, ${4 * four + 1}u * BITS, ${4 * four + 2}u * BITS, ${4 * four + 3}u * BITS)) & vec4<u32>(MASK)) - ${zero}
//% endmacro
//# Finishes the sum of row `row` and of the four columns from `column` on, a multiple of four, and stores it.
//% macro finish(sum, row, column)
if (${row} < params.m && ${column} < params.n) {
    //% if WIDE_DST
    let to_${sum}: u32 = params.n_row * ${row} + ${column} / 4u;
    //% for line in epilogue(sum, column ~ " / 4u", "to_" ~ sum)
    ${line}
    //% endfor
    ${store4("dst", "to_" ~ sum, sum)}
    //% else
    let to_${sum}: u32 = params.n_row * ${row} + ${column};
    //% for line in epilogue(sum, column ~ " / 4u", "0u")
    ${line}
    //% endfor
    //% for lane in ["x", "y", "z", "w"]
    if (${column} + ${loop.index0}u < params.n) {
        //% if residual
        ${sum}.${lane} += ${load("residual", "to_" ~ sum ~ " + " ~ loop.index0 ~ "u")};
        //% endif
        ${store("dst", "to_" ~ sum ~ " + " ~ loop.index0 ~ "u", sum ~ "." ~ lane)}
    }
    //% endfor
    //% endif
}
//% endmacro
