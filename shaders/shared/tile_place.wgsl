//# Where an invocation of a `tiled` convolution stands in its work-group, and what it brings there:
//# LOADS_A vec4s of input slices of the ROWS pixels and LOADS_B of weights at every step. Needs the
//# output's `pixels` of all images and `total4`, the input slices to sum over, at all taps.
    let place: u32 = lid % THREADS;
    let slice: u32 = lid / THREADS;
    let x: u32 = place % LANES_X + LANES_X * (place / (LANES_X * LANES_Y) % (WG_X / LANES_X));
    let y: u32 = place / LANES_X % LANES_Y + LANES_Y * (place / (LANES_Y * WG_X));
    let column4: u32 = TILE_X * WG_X * group.x;
    let row: u32 = TILE_Y * WG_Y * group.y;
    let own: u32 = SLICE * slice;
    let terms4: u32 = DEPTH4 * ((total4 + DEPTH4 * SPLITS - 1u) / (DEPTH4 * SPLITS));
    let first4: u32 = terms4 * slice;
    let last4: u32 = min(first4 + terms4, total4);
    //% for l in range(LOADS_A)
    let a_item${l}: u32 = ${"place + " ~ l ~ "u * THREADS" if EVEN_A else "min(place + " ~ l ~ "u * THREADS, ROWS * DEPTH4 - 1u)"};
    let a_term${l}: u32 = first4 + a_item${l} / ROWS;
    let a_pixel${l}: u32 = min(row + a_item${l} % ROWS, pixels - 1u);
    let a_to${l}: u32 = own + 4u * A_ROW * (a_item${l} / ROWS) + a_item${l} % ROWS / 4u;
    //% endfor
    //% for l in range(LOADS_B)
    let b_item${l}: u32 = ${"place + " ~ l ~ "u * THREADS" if EVEN_B else "min(place + " ~ l ~ "u * THREADS, B_ROW * 4u * DEPTH4 - 1u)"};
    let b_term${l}: u32 = 4u * first4 + b_item${l} / B_ROW;
    let b_from${l}: u32 = min(column4 + b_item${l} % B_ROW, params.dst_c4 - 1u);
    let b_to${l}: u32 = own + B_FIRST + b_item${l};
    //% endfor
