//# The main loop of a `tiled` convolution: while one step is multiplied, the next travels through
//# registers into the other side of local memory, or into the only one. Needs a macro `pixels_of`
//# that loads what an invocation brings of the input; what lies beyond the last term is zero.
    //% macro fetch(ahead4)
    ${pixels_of(ahead4) | trim}
    //% for l in range(LOADS_B)
    b_next${l} = ${load4("weights", "b_from" ~ l ~ " + params.dst_c4 * min(b_term" ~ l ~ " + 4u * " ~ ahead4 ~ ", 4u * total4 - 1u)" if RAGGED else "b_from" ~ l ~ " + params.dst_c4 * (b_term" ~ l ~ " + 4u * " ~ ahead4 ~ ")")};
    //% endfor
    //% for l in range(LOADS_A) if RAGGED
    if (a_term${l} + ${ahead4} >= last4) {
        a_next${l} = ${zero4};
    }
    //% endfor
    //% endmacro
    //% macro stage(to)
    //% for l in range(LOADS_A)
    //% if not EVEN_A and loop.last
    if (place + ${l}u * THREADS < ROWS * DEPTH4) {
    //% endif
    //% for lane in ["x", "y", "z", "w"]
    ${set_lane("staged", "a_to" ~ l ~ " + " ~ to ~ " + " ~ loop.index0 ~ "u * A_ROW", "a_item" ~ l ~ " % 4u", "a_next" ~ l ~ "." ~ lane)}
    //% endfor
    //% if not EVEN_A and loop.last
    }
    //% endif
    //% endfor
    //% for l in range(LOADS_B)
    //% if not EVEN_B and loop.last
    if (place + ${l}u * THREADS < B_ROW * 4u * DEPTH4) {
    //% endif
    staged[b_to${l} + ${to}] = b_next${l};
    //% if not EVEN_B and loop.last
    }
    //% endif
    //% endfor
    //% endmacro
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    //% for l in range(LOADS_A)
    var a_next${l}: ${acc4} = ${zero4};
    //% endfor
    //% for l in range(LOADS_B)
    var b_next${l}: ${acc4} = ${zero4};
    //% endfor
    ${fetch("0u") | trim}
    ${stage("0u") | trim}
    ${barrier};
    var side: u32 = 0u;
    for (var done4: u32 = DEPTH4; done4 <= terms4; done4 += DEPTH4) {
        let ahead4: u32 = min(done4, terms4 - DEPTH4);
        ${fetch("ahead4") | trim | indent(4)}
        for (var part: u32 = 0u; part < 4u * DEPTH4 / STEP; part++) {
        let a_at: u32 = own + side + STEP * A_ROW * part + y;
        let b_at: u32 = own + side + B_FIRST + STEP * B_ROW * part + x;
        //% include "shared/multiply"
        }
        //% if SIDES > 1
        side = SIDE - side;
        //% else
        ${barrier};
        //% endif
        ${stage("side") | trim | indent(4)}
        ${barrier};
    }
