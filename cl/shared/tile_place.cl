//# Where an invocation of a `tiled` convolution stands in its work-group, and what it brings there:
//# LOADS_A vec4s of input slices of the ROWS pixels and LOADS_B of weights at every step. Needs the
//# output's `pixels` of all images and `total4`, the input slices to sum over, at all taps.
    const uint place = lid % THREADS;
    const uint slice = lid / THREADS;
    const uint x = place % LANES_X + LANES_X * (place / (LANES_X * LANES_Y) % (WG_X / LANES_X));
    const uint y = place / LANES_X % LANES_Y + LANES_Y * (place / (LANES_Y * WG_X));
    const uint column4 = TILE_X * WG_X * group.x;
    const uint row = TILE_Y * WG_Y * group.y;
    const uint own = SLICE * slice;
    const uint terms4 = DEPTH4 * ((total4 + DEPTH4 * SPLITS - 1u) / (DEPTH4 * SPLITS));
    const uint first4 = terms4 * slice;
    const uint last4 = min(first4 + terms4, total4);
    //% for l in range(LOADS_A)
    const uint a_item${l} = ${"place + " ~ l ~ "u * THREADS" if EVEN_A else "min(place + " ~ l ~ "u * THREADS, ROWS * DEPTH4 - 1u)"};
    const uint a_term${l} = first4 + a_item${l} / ROWS;
    const uint a_pixel${l} = min(row + a_item${l} % ROWS, pixels - 1u);
    const uint a_to${l} = own + 4u * A_ROW * (a_item${l} / ROWS) + a_item${l} % ROWS / 4u;
    //% endfor
    //% for l in range(LOADS_B)
    const uint b_item${l} = ${"place + " ~ l ~ "u * THREADS" if EVEN_B else "min(place + " ~ l ~ "u * THREADS, B_ROW * 4u * DEPTH4 - 1u)"};
    const uint b_term${l} = 4u * first4 + b_item${l} / B_ROW;
    const uint b_from${l} = min(column4 + b_item${l} % B_ROW, dst_c4 - 1u);
    const uint b_to${l} = own + B_FIRST + b_item${l};
    //% endfor
