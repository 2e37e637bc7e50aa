//# What a warp of a `matrix_ptx` kernel does with its sums, vectors of `number`: the layers of the work-group add theirs up in local
//# memory, and neighbouring lanes exchange pairs, so that each has four channels of a pixel. Needs `slices`, the name of how many
//# fours of channels there are, and a macro `finish_of` that stores `sum`, of slice `slice` of pixel `to`.
    //% if LAYERS > 1
    __local ${number}4 parts[PARTS];
    const uint place = get_local_id(0) + WG_X * get_local_id(1);
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    parts[THREADS * (${tile[0] * tile[1]}u * layer + ${r * tile[0] + c}u) + place] = sum${r}_${c};
    //% endfor
    //% endfor
    ${barrier};
    //% endif
    const bool odd = lane % 2u == 1u;
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    //% if LAYERS > 1
    if (layer == ${(r * tile[0] + c) % LAYERS}u) {
        sum${r}_${c} = parts[THREADS * ${r * tile[0] + c}u + place];
        //% for l in range(1, LAYERS)
        sum${r}_${c} += parts[THREADS * ${tile[0] * tile[1] * l + r * tile[0] + c}u + place];
        //% endfor
    //% else
    {
    //% endif
        const ${number}2 given = odd ? sum${r}_${c}.xy : sum${r}_${c}.zw;
        ${number}2 taken;
        EXCHANGE(taken.x, given.x);
        EXCHANGE(taken.y, given.y);
        ${number}4 sum = odd ? (${number}4)(taken, sum${r}_${c}.zw) : (${number}4)(sum${r}_${c}.xy, taken);
        const uint to = first_pixel + ${16 * r}u + (odd ? 8u : 0u);
        const uint slice = 2u * (first_column + ${c}u) + lane % 4u / 2u;
        if (to < pixels && slice < ${slices}) {
            ${finish_of() | trim | indent(8)}
        }
    }
    //% endfor
    //% endfor
