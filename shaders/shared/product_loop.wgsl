//# Sums the products of a work-group's steps, staged twice over: while one side is multiplied, the next terms
//# travel through registers into the other. Of AHEAD steps the terms are on their way at once, each in registers
//# of its own. What a step's first products read is loaded before the last ones of the step before, across the
//# barrier. The masks are true of every index: with them a compiler knows that no sum overflows and folds what
//# is constant into the addresses. Slices are added up; only slice 0 goes on. Needs `x`, `y`, `own`, `slice`,
//# `place`, `terms4`, and macros `fetch` and `stage` for the terms of a step.
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    //% macro fetch_ahead(s, steps)
    //% if GUARDED
    let ahead4: u32 = done4 + ${steps}u * STEP / 4u;
    if (ahead4 < terms4) {
        ${fetch(s, "ahead4") | trim | indent(4)}
    }
    //% else
    let ahead4: u32 = min(done4 + ${steps}u * STEP / 4u, terms4 - STEP / 4u);
    ${fetch(s, "ahead4") | trim}
    //% endif
    //% endmacro
    //% for s in range(AHEAD)
    //% for l in range(LOADS_A)
    var a_next${s}_${l}: ${loaded} = ${none};
    //% endfor
    //% for l in range(LOADS_B)
    var b_next${s}_${l}: ${loaded} = ${none};
    //% endfor
    //% endfor
    ${fetch(0, "0u") | trim}
    ${stage(0, "0u") | trim}
    //% if not EARLY
    //% for s in range(AHEAD)
    ${fetch(s, "min(" ~ (s + 1) ~ "u * STEP / 4u, terms4 - STEP / 4u)") | trim}
    //% endfor
    //% endif
    ${barrier};
    var side: u32 = 0u;
    //% for r in range(tile[1] // 4)
    var a0_${r}: ${acc4} = staged[own + y + ${r}u * WG_Y];
    //% endfor
    //% for c in range(tile[0])
    var b0_${c}: ${acc4} = staged[own + B_FIRST + x + ${c}u * WG_X];
    //% endfor
    for (var done4: u32 = STEP / 4u; done4 <= terms4; done4 += STEP / 4u) {
        //% for s in range(AHEAD)
        //% if s > 0
        done4 += STEP / 4u;
        if (done4 > terms4) {
            break;
        }
        //% endif
        {
        //% if EARLY
        ${fetch_ahead(s, 0) | trim | indent(4)}
        //% endif
        let a_at0: u32 = (own + side + y) & MASK;
        let b_at0: u32 = (own + side + B_FIRST + x) & MASK;
        side = SIDE - side;
        let a_at1: u32 = (own + side + y) & MASK;
        let b_at1: u32 = (own + side + B_FIRST + x) & MASK;
        //% for t in range(STEP)
        //% set last = 1 if t + 1 == STEP else 0
        //% if last
        ${stage(s, "side") | trim | indent(4)}
        ${barrier};
        //% if not EARLY
        ${fetch_ahead(s, AHEAD) | trim | indent(4)}
        //% endif
        //% endif
        //% for r in range(tile[1] // 4)
        let a${t + 1}_${r}: ${acc4} = staged[a_at${last} + ${(t + 1) % STEP}u * A_ROW + ${r}u * WG_Y];
        //% endfor
        //% for c in range(tile[0])
        let b${t + 1}_${c}: ${acc4} = staged[b_at${last} + ${(t + 1) % STEP}u * B_ROW + ${c}u * WG_X];
        //% endfor
        //% include "shared/products"
        //% endfor
        //% for r in range(tile[1] // 4)
        a0_${r} = a${STEP}_${r};
        //% endfor
        //% for c in range(tile[0])
        b0_${c} = b${STEP}_${c};
        //% endfor
        }
        //% endfor
    }
    //% if SPLITS > 1
    ${barrier};
    //% endif
    //% include "shared/add_splits"
    if (slice > 0u) {
        return;
    }
