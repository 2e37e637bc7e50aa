//# Adds up the sums of the SPLITS slices of a work-group, in halves, into those of slice 0. Uses
//# `staged` again: SPLITS / 2 * THREADS * tile[0] * tile[1] vec4s of it.
    //% for parts in [32, 16, 8, 4, 2, 1] if parts < SPLITS
    if (slice >= ${parts}u && slice < ${2 * parts}u) {
        //% for r in range(tile[1])
        //% for c in range(tile[0])
        staged[place + THREADS * (slice - ${parts}u + ${parts * (r * tile[0] + c)}u)] = sum${r}_${c};
        //% endfor
        //% endfor
    }
    ${barrier};
    if (slice < ${parts}u) {
        //% for r in range(tile[1])
        //% for c in range(tile[0])
        sum${r}_${c} = sum${r}_${c} + staged[place + THREADS * (slice + ${parts * (r * tile[0] + c)}u)];
        //% endfor
        //% endfor
    }
    ${barrier};
    //% endfor
